"""The page that `up` and `demo --keep` serve beside the stages."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from tests.integration import processes
from tests.integration.site import Site, stop

pytestmark = pytest.mark.slow
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/(?=\s|$)")


def text_of(address: str) -> str:
    """What the page says, also that there is no such report."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def page_in(log: Path) -> str:
    """The address of the page that a process has printed."""
    processes.wait_until(lambda: ADDRESS.search(log.read_text()) is not None, "the address of the page")
    found = ADDRESS.search(log.read_text())
    assert found is not None
    return found.group()


def environment(pinned: str) -> dict[str, str]:
    return processes.environment("unused:1", 0, PV_BROKER="embedded", PV_RELEASES=pinned)


@contextmanager
def taken(port: int) -> Iterator[None]:
    """The port is in use, unless somebody else uses it already."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
            server.listen()
        except OSError:
            pass
        yield


def test_up_shows_what_is_ingested_in_a_page_that_needs_nothing_else(tmp_path: Path, pinned: str) -> None:
    log, file = tmp_path / "up.log", tmp_path / "posts.jsonl"
    lines = [orjson.dumps({"id": f"p{i}", "text": f"took zoloft and felt sick {i}"}) for i in range(5)]
    file.write_bytes(b"\n".join(lines) + b"\n")
    with taken(8080), processes.running("up", env=environment(pinned), log=log, forked=True) as up:
        address = page_in(log)
        assert "Overview" in text_of(address)  # it answers as soon as it is printed
        found = re.search(r"PV_BROKER=kafka://(\S+)", log.read_text())
        assert found is not None
        ingest = processes.forked_command(
            "ingest", "posts", str(file), env=processes.environment(found.group(1), 0)
        )
        assert ingest.returncode == 0, ingest.stderr
        report = f"{address}report?id=p4"
        processes.wait_until(lambda: "no such report" not in text_of(report), "the report on the page")
        stop(up)
    with pytest.raises(urllib.error.URLError):
        text_of(address)


def test_the_demo_that_is_kept_shows_its_results(tmp_path: Path, pinned: str) -> None:
    log = tmp_path / "demo.log"
    arguments = ("demo", "--limit", "3", "--show", "0", "--keep")
    with processes.running(*arguments, env=environment(pinned), log=log, forked=True) as demo:
        processes.wait_until(lambda: "still running" in log.read_text(), "the end of the demo", 300)
        address = page_in(log)
        processes.wait_until(lambda: re.search(r"<[^>]*>\s*9\s*<", text_of(address)) is not None, "9 reports")
        stop(demo)


@pytest.mark.kafka
def test_up_on_a_broker_serves_the_page_of_its_store_unless_told_not_to(tiny_site: Site) -> None:
    with tiny_site.running("up", "--store", PV_WEB_PORT="0") as worker:
        address = page_in(tiny_site.log)
        assert "Overview" in text_of(address)
        stop(worker)
    tiny_site.log.write_text("")
    with tiny_site.running("up", "--store", "--no-web") as worker:
        tiny_site.wait_ready()
        assert ADDRESS.search(tiny_site.log.read_text()) is None
        stop(worker)
