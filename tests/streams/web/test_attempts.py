"""Guessing of tokens: who sends wrong ones must wait, and nobody else."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from streams.reviews.leases import MAX_SESSIONS, Leases
from streams.settings import Settings
from streams.web import access, attempts
from streams.web.access import SESSION_SECONDS, Access, User
from streams.web.attempts import FORGET, FREE, LONGEST, MAX_ADDRESSES, Attempts
from tests.fakes import Clock
from tests.streams.web.conftest import Client, Page

TOKEN = "t" * 16


async def signed_in(client: Client, token: str, **headers: str) -> int:
    data = {"token": token, "name": "ann"}
    async with client.post("/login", data=data, headers=headers, allow_redirects=False) as answer:
        if answer.status == 429:
            assert 1 <= int(answer.headers["Retry-After"]) <= LONGEST
        return answer.status


async def test_200_wrong_tokens_are_not_all_looked_at(stored: Page, caplog: pytest.LogCaptureFixture) -> None:
    async with stored.served(web_token=SecretStr(TOKEN)) as browser:
        client = browser()
        statuses = [await signed_in(client, f"wrong-{n}") for n in range(200)]
        assert set(statuses[:FREE]) == {403}
        assert statuses.count(403) < 20 and statuses.count(429) > 180
        assert await signed_in(client, TOKEN) == 429
        assert (await client.get("/login")).status == 200
        other = {"X-Forwarded-For": "203.0.113.9"}
        assert await signed_in(browser(), TOKEN, **other) == 303, "another address"
    assert caplog.messages.count("sign-in: so many wrong tokens from one address that it must wait") == 1


async def test_addresses_that_a_client_invents_do_not_help(stored: Page) -> None:
    async with stored.served(web_token=SecretStr(TOKEN)) as browser:
        client = browser()
        statuses = [
            await signed_in(client, "wrong", **{"X-Forwarded-For": f"203.0.113.{n % 250}, 198.51.100.{n}"})
            for n in range(200)
        ]
        assert statuses.count(403) < 120
    async with stored.served(web_token=SecretStr(TOKEN), web_proxies="192.0.2.1") as browser:
        client = browser()
        statuses = [
            await signed_in(client, "wrong", **{"X-Forwarded-For": f"203.0.113.{n}"}) for n in range(50)
        ]
        assert statuses.count(403) < 10


def test_waits_grow_to_a_limit_and_are_forgotten_and_addresses_are_bounded() -> None:
    clock = Clock()
    tried = Attempts(clock)
    for _ in range(FREE):
        assert tried.wait(["a"]) <= 0
        tried.failed(["a"])
    waits = []
    for _ in range(12):
        waits.append(tried.wait(["a"]))
        clock.now += tried.wait(["a"])
        tried.failed(["a"])
    assert waits[:4] == [1, 2, 4, 8] and waits[-1] == LONGEST
    assert tried.wait(["b"]) <= 0
    clock.now += FORGET
    tried.failed(["a"])
    assert tried.wait(["a"]) <= 0
    tried = Attempts(Clock())
    for n in range(2 * MAX_ADDRESSES):
        tried.failed([str(n)])
    assert len(tried._failed) == MAX_ADDRESSES


@pytest.mark.parametrize(
    ("address", "network"),
    [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64")],
)
def test_an_ipv6_network_counts_as_one_address(address: str, network: str) -> None:
    assert attempts._network(address) == network


def test_a_session_ends_unless_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, clock = Access(Settings(web_token=SecretStr(TOKEN))), Clock()
    monkeypatch.setattr(access, "_now", clock)
    first = rules.cookie(User("ann", "reviewer", "s"))
    clock.now += SESSION_SECONDS / 4
    used = rules._from_cookie(first)
    assert used is not None and rules.cookie(used) == first, "no new cookie for each request"
    clock.now += SESSION_SECONDS / 2
    used = rules._from_cookie(first)
    assert used is not None
    renewed = rules.cookie(used)
    assert renewed != first
    clock.now += SESSION_SECONDS / 2
    assert rules._from_cookie(first) is None
    assert rules._from_cookie(renewed) is not None
    clock.now += SESSION_SECONDS
    assert rules._from_cookie(renewed) is None


async def test_sessions_without_end_leave_nothing_behind() -> None:
    leases = Leases(Settings())
    for n in range(2 * MAX_SESSIONS):
        leases._chosen([("r", 0, 1, "f")], f"s{n}")
        await leases.skip((f"r{n}", 0, 1, "f"), f"t{n}")
        await leases.skip((f"r{n}", 0, 1, "f"), "same")
    assert len(leases._skipped) <= MAX_SESSIONS
    assert len(leases._skipped["same"]) <= MAX_SESSIONS
