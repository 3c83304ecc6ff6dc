"""Access to the review queue: secrets of forms, hosts, tokens, roles, names, and a trusted proxy."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import SecretStr

from streams.settings import Settings
from streams.web.access import Access, AccessError
from tests.streams.web.conftest import Page
from tests.streams.web.test_review import given, secret, sent

TOKEN, READER = "t" * 16, "r" * 16
#: A form with one field, whose part has a header.
PART = b'--b\r\nContent-Disposition: form-data; name="token"\r\n%s\r\n\r\n\\udcff\r\n--b--\r\n'


async def test_a_form_without_its_secret_or_of_another_site_is_refused(brokered: Page) -> None:
    async with brokered.served() as browser:
        client = browser()
        form = await given(client)
        wrong = form | {"action": "accept", "csrf": "0" * 64}
        assert await sent(client, "/review", wrong) == 403
        assert await sent(client, "/review/undo", wrong) == 403
        assert await sent(client, "/login", wrong | {"name": "eve"}) == 403
        other = {"Sec-Fetch-Site": "cross-site"}
        answer = await client.post("/review", data=form | {"action": "accept"}, headers=other)
        assert answer.status == 403
        assert (await client.get("/", headers={"Host": "evil.example"})).status == 200  # the session is known
        assert (await browser().get("/", headers={"Host": "evil.example"})).status == 403


@pytest.mark.parametrize("host", ["[::1", "[x]", "evil.example"])
async def test_a_host_that_is_not_this_machine_is_refused_without_an_error(stored: Page, host: str) -> None:
    async with stored.served() as browser:
        assert (await browser().get("/", headers={"Host": host})).status == 403
        assert (await browser().get("/", headers={"Host": "[::1]:8080"})).status == 200


async def test_tokens_give_roles(brokered: Page) -> None:
    tokens = {"web_token": SecretStr(TOKEN), "web_reader_token": SecretStr(READER)}
    async with brokered.served(**tokens) as browser:
        nobody, reader, reviewer = browser(), browser(), browser()
        assert (await nobody.get("/", allow_redirects=False)).headers["Location"] == "/login"
        assert (await nobody.post("/review", data={})).status == 403
        assert (await nobody.get("/live", allow_redirects=False)).status == 303
        assert await sent(nobody, "/login", {"token": "x" * 16, "name": "eve"}) == 403
        assert await sent(reader, "/login", {"token": READER, "name": "ann"}) == 303
        assert (await reader.get("/")).status == 200
        assert (await reader.get("/review")).status == 403
        assert await sent(reviewer, "/login", {"token": TOKEN, "name": "bob"}) == 303
        form = await given(reviewer)
        forged = form | {"action": "accept", "csrf": await secret(reader)}
        assert await sent(reader, "/review", forged) == 403
        assert await sent(reviewer, "/review", form | {"action": "accept"}) == 303


async def test_users_have_the_name_they_sign_in_under_or_a_trusted_proxy_states(stored: Page) -> None:
    async with stored.served() as browser:
        client = browser()
        assert await sent(client, "/login", {"csrf": await secret(client), "name": "ann"}) == 303
        assert "ann, reviewer" in await (await client.get("/")).text()
    header = {"web_user_header": "X-User", "web_reviewers": "bob"}
    async with stored.served(**header) as browser:
        client = browser()
        assert (await client.get("/")).status == 403
        assert "ann, reader" in await (await client.get("/", headers={"X-User": "ann"})).text()
        assert "bob, reviewer" in await (await client.get("/", headers={"X-User": "bob"})).text()
    async with stored.served(**header, web_proxies="192.0.2.1") as browser:
        assert (await browser().get("/", headers={"X-User": "bob"})).status == 403


def test_an_open_page_is_refused_on_an_outer_address() -> None:
    with pytest.raises(AccessError):
        Access(Settings(web_host="0.0.0.0"))
    assert Access(Settings(web_host="0.0.0.0", web_token=SecretStr(TOKEN))).by_token
    with pytest.raises(ValueError, match="PV_WEB_TOKEN"):
        Settings(web_token=SecretStr("short"))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"csrf=\xff"),
        ("application/x-www-form-urlencoded; charset=none", b"csrf=1"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nx"),
        ("multipart/form-data; boundary=b", PART % b"Content-Transfer-Encoding: x"),
        ("multipart/form-data; boundary=b", PART % b"Content-Type: text/plain; charset=unicode_escape"),
        ("application/x-www-form-urlencoded; charset=unicode_escape", b"token=\\udcff"),
    ],
)
async def test_bytes_that_are_no_form_or_cookie_are_refused(stored: Page, kind: str, body: bytes) -> None:
    async with stored.served() as browser:
        client = browser()
        answer = await client.post("/login", data=body, headers={"Content-Type": kind})
        assert answer.status == 400 and "The form cannot be read" in await answer.text()
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: pvstream=\xff.a.b\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
