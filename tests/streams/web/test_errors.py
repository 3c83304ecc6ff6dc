"""Every answer that is an error is a page with the header and a way back."""

from __future__ import annotations

import logging
import re
from io import BytesIO
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from streams.web.site import SITE
from tests.streams.web.conftest import Client, Page
from tests.streams.web.test_review import given, secret

TOKENS = {"web_token": SecretStr("t" * 16), "web_reader_token": SecretStr("r" * 16)}


def way_back(html: str) -> str:
    """The address in the contents of a page that has the header."""
    assert '<nav aria-label="Pages">' in html and '<a href="/signals"' in html
    main = html[html.index("<main") :]
    assert re.findall(r"<h1>([^<]+)</h1>\n<p role=\"alert\">[A-Z][^<]+</p>", main), main
    (address,) = re.findall(r'<a href="([^"]+)">', main)
    return str(address)


async def failing(client: Client, method: str, path: str, status: int, **sent: Any) -> str:
    answer = await client.request(method, path, allow_redirects=False, **sent)
    assert (answer.status, answer.content_type) == (status, "text/html"), (path, await answer.text())
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    return way_back(await answer.text())


async def test_refusals_have_the_header_and_a_way_back(brokered: Page) -> None:
    async with brokered.served() as browser:
        client = browser()
        form = await given(client)
        for method, path, status in (
            ("GET", "/nowhere", 404), ("GET", "/%2f%2fevil.example/x", 404),
            ("GET", "/report?id=nobody", 404), ("GET", "/case?id=nobody", 404),
            ("DELETE", "/signals", 403), ("PUT", "/static/style.css", 403),
        ):  # fmt: skip
            assert await failing(client, method, path, status) == "/", path
        large, kind = BytesIO(b"x" * 2_000_000), {"Content-Type": "application/x-www-form-urlencoded"}
        assert await failing(client, "POST", "/login", 413, data=large, headers=kind) == "/"
        csrf = {"csrf": await secret(client)}
        assert await failing(client, "POST", "/signals", 405, data=csrf) == "/"
        answer = await client.post("/signals", data=csrf)
        assert answer.headers["Allow"] == "GET,HEAD"
        for changes, status in (({"csrf": "0"}, 403), ({"start": "x"}, 400), ({"action": "x"}, 400)):
            assert await failing(client, "POST", "/review", status, data=form | changes) == "/review"
        lost = form | {"action": "accept", "order": "random", "shown": "0"}
        assert await failing(client, "POST", "/review", 409, data=lost) == "/review?order=random"
        undo = csrf | {"sequence": "7", "order": "seriousness"}
        assert await failing(client, "POST", "/review/undo", 409, data=undo) == "/review?order=seriousness"


async def test_who_is_not_signed_in_or_may_not_review_is_told_so_on_a_page(stored: Page) -> None:
    async with stored.served(**TOKENS) as browser:
        client = browser()
        assert await failing(client, "POST", "/review", 403) == "/login"
        answer = await client.post("/login", data={"token": "r" * 16, "name": "ann"})
        assert answer.status == 200
        assert await failing(client, "GET", "/review", 403) == "/"
    async with stored.served(web_user_header="X-User") as browser:
        assert await failing(browser(), "GET", "/", 403) == "/"


async def test_a_fault_is_a_page_and_a_traceback_in_the_log(
    stored: Page, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret words")

    async def many(*_: object, **__: object) -> None:
        raise web.HTTPTooManyRequests(headers={"Retry-After": "7"}, text="too many tokens")

    async with stored.served() as browser:
        client = browser()
        site = client.app[SITE] if client.app else None
        assert site is not None
        monkeypatch.setattr("streams.web.reports.report_of", breaks)
        with caplog.at_level(logging.ERROR):
            answer = await client.get("/report?id=r3")
        assert answer.status == 500 and "secret" not in (html := await answer.text())
        assert way_back(html) == "/" and "ZeroDivisionError: secret words" in caplog.text
        monkeypatch.setattr("streams.web.signal_table.Signals.outcome", many)
        answer = await client.get("/signals")
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert way_back(await answer.text()) == "/"
