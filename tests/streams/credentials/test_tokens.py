from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.credentials.tokens import Client, ClientCredentials, FileTokens, TokenError, client_credentials
from tests.fakes import Clock
from tests.streams.cli.command_line import closed_port
from tests.streams.credentials.token_server import CLIENT, SCOPE, SECRET, TokenServer


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with TokenServer(lifetime=100) as running:
        yield running


def tokens(server: TokenServer, clock: Clock, secret: str = SECRET) -> ClientCredentials:
    return ClientCredentials(Client(server.url, CLIENT, secret, SCOPE), clock)


@pytest.mark.parametrize(("lifetime", "renewed_before"), [(100, 20), (7200, 60)])
async def test_a_token_is_requested_once_and_renewed_shortly_before_it_expires(
    server: TokenServer, lifetime: int, renewed_before: int
) -> None:
    """In the last fifth, and of hours in the last minute."""
    clock, server.lifetime = Clock(), lifetime
    provider = tokens(server, clock)
    first = await provider.token()
    clock.now += lifetime - renewed_before - 1
    assert await provider.token() == first
    assert server.issued == [first]
    clock.now += 2
    assert await provider.token() == server.issued[1]
    assert len(server.issued) == 2


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock that counts a suspension")
async def test_a_token_that_expired_while_the_machine_was_suspended_is_not_used(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = ClientCredentials(Client(server.url, CLIENT, SECRET, SCOPE))
    first = await provider.token()
    read = time.clock_gettime
    monkeypatch.setattr(
        time, "clock_gettime", lambda clock: read(clock) + (200 if clock == time.CLOCK_BOOTTIME else 0)
    )
    assert await provider.token() != first
    assert len(server.issued) == 2


async def test_while_the_server_fails_the_token_is_used_until_it_expires(server: TokenServer) -> None:
    clock = Clock()
    provider = tokens(server, clock)
    first = await provider.token()
    server.failing = True
    clock.now += 99
    assert await provider.token() == first
    clock.now += 1
    with pytest.raises(TokenError, match="it answers 503"):
        await provider.token()
    server.failing = False
    assert await provider.token() == server.issued[1]


async def test_a_refusal_names_the_error_and_no_secret(server: TokenServer) -> None:
    with pytest.raises(TokenError, match=r"it answers 401 \(invalid_client\)$") as refused:
        await tokens(server, Clock(), "wrong-word").token()
    assert "wrong-word" not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"access_token": 3},
        {"access_token": ""},
        {"access_token": "a\x01b"},
        {"access_token": "a", "expires_in": []},
    ],
)
async def test_an_answer_without_a_usable_token_is_an_error(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    monkeypatch.setattr(server, "answer", lambda form, authorization: (200, answer))
    with pytest.raises(TokenError, match="its answer has no access_token"):
        await tokens(server, Clock()).token()


async def test_an_answer_that_comes_in_parts_is_read_whole(server: TokenServer) -> None:
    server.pause = 0.1
    assert [await tokens(server, Clock()).token()] == server.issued


async def test_a_server_that_cannot_be_reached_is_an_error() -> None:
    provider = ClientCredentials(Client(f"http://127.0.0.1:{closed_port()}/", CLIENT, SECRET, ""))
    with pytest.raises(TokenError, match="ClientConnectorError"):
        await provider.token()


async def test_a_file_is_read_again_for_every_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    provider = FileTokens(file)
    assert await provider.token() == "first"
    file.write_text("second")
    assert await provider.token() == "second"
    file.unlink()
    with pytest.raises(TokenError, match="cannot be read: No such file"):
        await provider.token()


def test_the_clients_of_a_process_share_a_provider() -> None:
    one = Client("https://host/token", "a", "b", "")
    assert client_credentials(one) is client_credentials(Client("https://host/token", "a", "b", ""))
    assert client_credentials(one) is not client_credentials(one._replace(id="c"))
