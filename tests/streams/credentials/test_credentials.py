"""Tokens and certificates with which a client shows who it is."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.credentials.files import tls_context
from streams.credentials.tokens import Client, ClientCredentials, FileTokens, TokenError, client_credentials
from tests.fakes import Clock
from tests.streams.cli.command_line import CommandLine, closed_port
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


def files(**given: Path) -> dict[str, Any]:
    return {"authorities": None, "certificate": None, "key": None, "password": "", **given}


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"authorities": "no"}, "PV_SSL_CAFILE"),
        ({"certificate": "no"}, "PV_SSL_CERTFILE"),
        ({"certificate": "cert", "key": "no"}, "PV_SSL_KEYFILE"),
    ],
)
def test_a_missing_file_is_named_with_setting(tmp_path: Path, given: dict[str, str], setting: str) -> None:
    (tmp_path / "cert").write_text("a certificate")
    with pytest.raises(FileNotFoundError, match=f"^{setting}: {tmp_path}/no: No such file"):
        tls_context(**files(**{name: tmp_path / file for name, file in given.items()}))


@pytest.mark.parametrize("content", [b"", b"no certificate\n", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\n"])
def test_a_file_that_is_no_certificate_is_named_with_its_setting(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pem").write_bytes(content)
    with pytest.raises(ssl.SSLError, match=f"^PV_SSL_CAFILE: {tmp_path}/pem: "):
        tls_context(**files(authorities=tmp_path / "pem"))
    with pytest.raises(ssl.SSLError, match=f"^PV_SSL_CERTFILE: {tmp_path}/pem: .*PV_SSL_KEY_PASSWORD"):
        tls_context(**files(certificate=tmp_path / "pem"))


def test_a_command_names_the_setting_of_a_file_that_it_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pvstream = CommandLine(monkeypatch, capsys)
    pvstream.set("PV_BROKER", "kafka://127.0.0.1:1")
    pvstream.set("PV_SECURITY", "SSL")
    pvstream.set("PV_SSL_CAFILE", str(tmp_path / "no.pem"))
    answer = pvstream("topics")
    assert answer.code == 1
    assert answer.error_line == f"error: PV_SSL_CAFILE: {tmp_path}/no.pem: No such file or directory"


def test_a_key_without_its_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^PV_SSL_KEYFILE: .*/key: .*PV_SSL_CERTFILE$"):
        tls_context(**files(key=tmp_path / "key"))
    assert tls_context(**files()).verify_mode is ssl.CERT_REQUIRED, "the authorities of the system"
