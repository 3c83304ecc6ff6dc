"""Clients that open connections and say nothing, send half of a request, or never read the answer."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from streams import metrics
from streams.monitoring import http, server
from streams.monitoring.connection import Limits
from tests.streams.web.conftest import fill, reports

#: Seconds of patience for what must happen at once.
PATIENCE = 60.0
HALF = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
WHOLE = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BRIEF = Limits(connections=8, request=0.2, idle=0.6, reading=0.2, least=1 << 16, unread=4 << 20)
FORM = b"POST /form HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
LARGE = b"x" * (8 << 20)


def connected(port: int, sent: bytes, buffer: int | None = None) -> socket.socket:
    client = socket.socket()
    if buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(PATIENCE)
    client.connect(("127.0.0.1", port))
    client.sendall(sent)
    return client


def half_open(port: int, count: int) -> list[socket.socket]:
    """Connections with nothing, half of a request or none of its body."""
    return [connected(port, sent) for sent in (b"", HALF, HALF[:9], FORM) * (count // 4)]


def is_closed(client: socket.socket) -> bool:
    """Waits for the end of a connection."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    return True


async def live(port: int, path: str = "/health/live") -> int:
    async with (
        asyncio.timeout(PATIENCE),
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        await answer.read()
        return answer.status


async def until(done: Callable[[], Awaitable[bool] | bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            found = done()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.02)


@asynccontextmanager
async def served(limits: Limits = BRIEF, **handlers: Any) -> AsyncIterator[int]:
    async def healthy(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=LARGE)

    async def form(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.post())))

    async def forever(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.05)

    app = web.Application()
    app.add_routes([web.get("/health/live", healthy), web.get("/large", large), web.get("/forever", forever)])
    app.add_routes([web.post("/form", form)])
    runner, port = await server.serve(app, "127.0.0.1", 0, limits)
    try:
        yield port
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("descriptors", "attackers"), [(64, 80), (1024, 300)])
async def test_half_open_connections_stop_nothing(tmp_path: Path, descriptors: int, attackers: int) -> None:
    database = tmp_path / "events.duckdb"
    fill(database, reports(1))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.streams.monitoring.bounded", str(database), str(descriptors),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            ports = [int(port) for port in (await process.stdout.readline()).split()]
        with ExitStack() as attack:
            for port, path in zip(ports, ("/health/live", "/"), strict=True):
                opened = await asyncio.to_thread(half_open, port, attackers)
                for client in opened:
                    attack.enter_context(client)
                assert await live(port, path) == 200
            async with asyncio.timeout(PATIENCE):
                lines = [(await process.stderr.readline()).decode()]
    finally:
        process.terminate()
        _, printed = await process.communicate()
    lines += printed.decode().splitlines()
    assert [line for line in lines if "were closed" not in line] == []
    assert len(lines) <= 4  # of each server one a minute


@pytest.mark.parametrize("sent", [HALF, HALF[:3], FORM + b"a"])
async def test_half_a_request_ends_its_connection(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with served() as port:
        for _ in range(3):
            with connected(port, sent) as client:
                assert await asyncio.to_thread(is_closed, client)
        await until(lambda: "without a whole request" in caplog.text)
    assert caplog.text.count("connections to the HTTP server were closed") == 1, "one line a minute"


async def test_a_connection_may_be_idle_and_closes_without_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async with served(replace(BRIEF, request=0.05)) as port:
        with connected(port, WHOLE) as client:
            assert (await asyncio.to_thread(client.recv, 1 << 16)).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.2)
            client.sendall(WHOLE)
            assert (await asyncio.to_thread(client.recv, 1 << 16)).startswith(b"HTTP/1.1 200")
            assert await asyncio.to_thread(is_closed, client)
        with connected(port, b"") as client:
            assert await asyncio.to_thread(is_closed, client)
    assert caplog.text.count("closed") == 0


async def test_what_waits_longest_makes_room_for_the_next_and_a_stream_goes_on() -> None:
    limits = replace(BRIEF, request=PATIENCE, idle=PATIENCE)
    async with served(limits) as port, aiohttp.ClientSession() as client:
        with ExitStack() as attack:
            stream = await client.get(f"http://127.0.0.1:{port}/forever")
            opened = [attack.enter_context(connected(port, HALF)) for _ in range(40)]
            for _ in range(3):
                assert await live(port) == 200
            assert await asyncio.to_thread(is_closed, opened[0])
            assert await stream.content.readany() and await stream.content.readany()
            stream.close()


async def test_connections_that_are_all_being_answered_leave_no_room() -> None:
    async with served() as port, aiohttp.ClientSession() as client:
        streams = [await client.get(f"http://127.0.0.1:{port}/forever") for _ in range(BRIEF.connections)]
        with connected(port, WHOLE) as late:
            assert await asyncio.to_thread(is_closed, late)
        streams[0].close()
        await until(lambda: _answers(port))
        for stream in streams:
            stream.close()


async def _answers(port: int) -> bool:
    try:
        return await live(port) == 200
    except aiohttp.ClientError:
        return False


@pytest.mark.parametrize("path", ["/large", "/forever"])
async def test_a_client_that_reads_nothing_is_left(path: str, caplog: pytest.LogCaptureFixture) -> None:
    async with served() as port:
        asked = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        with ExitStack() as readers:
            for _ in range(4 if path == "/large" else 1):
                readers.enter_context(connected(port, asked, buffer=4096))
            if path == "/large":
                await until(lambda: "did not read" in caplog.text or "left too much unread" in caplog.text)
            assert await live(port) == 200


async def test_a_client_that_reads_slowly_gets_everything() -> None:
    async with served(replace(BRIEF, reading=0.5, least=1024, unread=1 << 30)) as port:
        got, asked = 0, b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        with connected(port, asked, buffer=1 << 16) as client:
            while part := await asyncio.to_thread(client.recv, 1 << 16):
                got += len(part)
                if got < 3 << 20:
                    await asyncio.sleep(0.02)
        assert got > len(LARGE)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x1b[2J planted\r\n\r\n", b"GET / HTTP/9.9 planted\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nplanted\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nCookie: planted\x1b[2J\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nCookie: planted" + b"x" * 9000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"Cookie: planted\r\n" * 100 + b"\r\n",
        b"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: planted\r\n\r\n",
    ],
)  # fmt: skip
async def test_what_is_no_request_is_refused_and_its_bytes_are_not_in_the_log(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as port:
        with connected(port, sent) as client:
            assert (await asyncio.to_thread(client.recv, 1 << 12)).startswith(b"HTTP/1.0 400")
        await until(lambda: "that sent no HTTP" in caplog.text)
    assert "planted" not in caplog.text and "Traceback" not in caplog.text


LIVE = {"ner": {"version": "0123456789ab"}}


async def test_health_releases_and_metrics_show_the_state_of_the_stages() -> None:
    stages, stalled = {"ner": False}, list[str]()
    metrics.prepare("ner")
    runner, port = await http.start("127.0.0.1", 0, lambda: stages, lambda: LIVE, lambda: stalled)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            async with client.get("/health/live") as answer:
                assert answer.status == 200
            stalled.append("ner")
            async with client.get("/health/live") as answer:
                assert (answer.status, await answer.json()) == (503, {"live": False, "stalled": ["ner"]})
            async with client.get("/health/ready") as answer:
                assert (answer.status, await answer.json()) == (503, {"ner": False})
            stages["ner"] = True
            async with client.get("/health/ready") as answer:
                assert answer.status == 200
            stages.clear()
            async with client.get("/health/ready") as answer:
                assert answer.status == 503, "without stages it is not ready"
            async with client.get("/releases") as answer:
                assert await answer.json() == LIVE
            async with client.get("/metrics") as answer:
                families = {f.name for f in text_string_to_metric_families(await answer.text())}
            named = {"pv_records", "pv_dead_letters", "pv_latency_seconds", "process_resident_memory_bytes"}
            assert named <= families
    finally:
        await runner.cleanup()


async def test_a_port_that_is_in_use_is_named_with_its_setting() -> None:
    runner, port = await http.start("127.0.0.1", 0, dict, dict, tuple)
    try:
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port} is in use.*set PV_HTTP_PORT to"):
            await http.start("127.0.0.1", port, dict, dict, tuple)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
async def test_an_address_that_is_not_of_this_machine_is_named_with_its_setting(host: str) -> None:
    with pytest.raises(OSError, match=rf"^nothing can be served at {host}:0 \(PV_HTTP_HOST"):
        await http.start(host, 0, dict, dict, tuple)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("ner", {("ner", label) for label in ("ADE", "DRUG", "INDICATION", "WITHDRAWAL", "SYMPTOM")}),
        ("normalization", {(x,) for x in ("coded", "nil", "unsupported_language", "kept", "searched")}),
    ],
)
def test_a_rate_sees_the_first_mention_and_the_first_report_in_another_language(
    stage: str, expected: set[tuple[str, ...]]
) -> None:
    counters = (metrics.MENTIONS, metrics.EVENTS, metrics.WORDINGS)
    for counter in counters:
        counter.clear()
    metrics.prepare(stage)
    samples = [s for counter in counters for family in counter.collect() for s in family.samples]
    assert {tuple(s.labels.values()) for s in samples if s.name.endswith("_total")} == expected
    assert {s.value for s in samples if s.name.endswith("_total")} == {0.0}
