"""Processes that are started while the broker is away: they wait for it, say so once, and go on."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import pytest

from streams.agents.pipeline import STAGES
from tests.integration import processes
from tests.integration.kafka_server import USER
from tests.integration.site import Site, stop
from tests.integration.store.test_store import stored

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
WAITS, GOES_ON = "does not answer: waiting for it", "answers again, after"
#: Seconds within which a process that waits has to end: it takes a hundredth, but the machine may be busy.
END_S = 10.0
POSTS = 20


class Started:
    """A process with a log and ports for itself."""

    def __init__(self, site: Site, name: str, *arguments: str, **more: str) -> None:
        self.name = name
        self.log = site.folder / f"{name}.log"
        self.port, self.web_port = processes.free_port(), processes.free_port()
        env = site.env | {"PV_HTTP_PORT": str(self.port), "PV_WEB_PORT": str(self.web_port)} | more
        self.process = processes.started(*arguments, env=env, log=self.log, forked=True)

    def said(self, words: str) -> int:
        """How many lines of the log have the words and name the broker."""
        return sum(words in line and "the broker at 127.0.0.1:" in line for line in self.text.splitlines())

    @property
    def text(self) -> str:
        return self.log.read_text()


def commands(folder: Path) -> list[tuple[str, ...]]:
    """Twelve processes, which together bring the posts of a file onto a page."""
    lines = [orjson.dumps({"id": f"p{i}", "text": "zoloft gave me insomnia"}) for i in range(POSTS)]
    (folder / "posts.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    source = ("source", "ndjson", "--path", str(folder / "posts.jsonl"), "--all")
    stages = [*(stage.name for stage in STAGES), "ner", "ner", "normalization"]
    return [*(("worker", "--stage", name) for name in stages), ("up",), ("store",), source, ("web",)]


@contextmanager
def all_started(site: Site) -> Iterator[list[Started]]:
    with ExitStack() as stack:
        found = []
        for i, arguments in enumerate(commands(site.folder)):
            one = Started(site, f"{i}-{arguments[0]}", *arguments)
            stack.callback(one.process.wait, processes.STOP_S)
            stack.callback(one.process.kill)
            found.append(one)
        yield found


def have_said(all_: list[Started], words: str) -> None:
    """Waits until each has said it; none may end."""

    def done() -> bool:
        for one in all_:
            assert one.process.poll() is None, (one.name, one.text)
        return all(one.said(words) for one in all_)

    try:
        processes.wait_until(done, words, 240)
    except AssertionError:
        print([one.name for one in all_ if not one.said(words)])
        raise


def is_served(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def test_of_twelve_processes_started_without_a_broker_none_ends_and_all_go_on(tiny_site: Site) -> None:
    site = tiny_site
    site.env |= {"PV_PARTITIONS": "4"}
    site.kafka.kill()
    with all_started(site) as found:
        have_said(found, WAITS)
        assert [one.said(WAITS) for one in found] == [1] * len(found)
        site.kafka.restart()
        have_said(found, GOES_ON)
        processes.wait_until(
            lambda: stored(site.env["PV_DATABASE"]) == POSTS, "the posts are in the store", 240
        )
        page = found[-1]
        processes.wait_until(lambda: is_served(page.web_port), "the page")
        for one in found:
            assert one.process.poll() is None, (one.name, one.text)
        # A broker that has just started may be slow: a process that waits once more also says when it ends.
        processes.wait_until(
            lambda: all(one.said(WAITS) == one.said(GOES_ON) for one in found), "as many ends as waits"
        )
        for one in found:
            stop(one.process)
    assert site.count("posts") == POSTS


@pytest.mark.parametrize("command", ["worker", "store", "source", "web"])
def test_a_process_that_waits_for_the_broker_ends_when_it_is_told_to(tiny_site: Site, command: str) -> None:
    site = tiny_site
    (arguments, *_) = [line for line in commands(site.folder) if line[0] == command]
    site.kafka.kill()
    try:
        one = Started(site, command, *arguments)
        try:
            have_said([one], WAITS)
            one.process.terminate()
            assert one.process.wait(END_S) == 0, one.text
        finally:
            one.process.kill()
    finally:
        site.kafka.restart()


def test_a_worker_whose_broker_is_away_ends_long_before_its_grace_and_loses_nothing(tiny_site: Site) -> None:
    site, n = tiny_site, 2000
    ids = {f"p{i}" for i in range(n)}
    arguments = ("worker", "--stage", "ner")
    site.produce(
        "posts", [(i.encode(), orjson.dumps({"id": i, "text": "zoloft gave me a rash"})) for i in ids]
    )
    one = Started(site, "first", *arguments, PV_GRACE=str(10 * END_S))
    try:
        site.wait_count(1, "mentions")
        site.kafka.kill()
        try:
            have_said([one], WAITS)
            one.process.terminate()
            assert one.process.wait(3 * END_S) == 0, one.text
        finally:
            site.kafka.restart()
    finally:
        one.process.kill()
    assert "not waited for any longer" in one.text
    with site.running(*arguments):
        processes.wait_until(lambda: {r["id"] for r in site.records("mentions")} == ids, "all posts", 240)


@pytest.mark.parametrize("command", ["worker", "web"])
def test_a_login_that_the_broker_refuses_is_not_waited_for(tiny_site: Site, command: str) -> None:
    site = tiny_site
    (arguments, *_) = [line for line in commands(site.folder) if line[0] == command]
    secure = {
        "PV_BROKER": f"kafka://{site.kafka.secure_bootstrap}",
        "PV_SECURITY": "SASL_SSL",
        "PV_SASL_MECHANISM": "PLAIN",
        "PV_SASL_USERNAME": USER,
        "PV_SASL_PASSWORD": "wrong",
        "PV_SSL_CAFILE": str(site.kafka.certificate),
    }
    answer = processes.forked_command(*arguments, env=site.env | secure)
    assert answer.returncode == 1, answer.stderr
    assert "Authentication failed" in answer.stderr.splitlines()[-1], answer.stderr
