"""A record that ends the process of its stage becomes a dead letter, without an operator."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from tests.integration import processes
from tests.integration.hanging import HANG, die, hang
from tests.integration.site import Site, stop

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: Starts that a supervisor may need.
STARTS = 5


def supervised(site: Site, before: Callable[[], None], done: Callable[[], bool]) -> int:
    """Starts a worker again whenever it ends, until `done`; returns how many have ended."""
    for ended in range(STARTS):
        with site.running_broken(before, "worker", "--stage", "ner") as worker:
            processes.wait_until(lambda w=worker: done() or w.poll() is not None, "an end", 120)  # type: ignore[misc]
            if worker.poll() is None:
                stop(worker)
                return ended
        processes.leave_for_all(site.kafka.bootstrap)  # otherwise the next waits for the end of the session
    raise AssertionError(f"{STARTS} processes have ended")


def test_a_record_that_ends_its_process_three_times_is_a_dead_letter(tiny_site: Site) -> None:
    """By a signal, as one that needs too much memory, or by a hang. That a hang with the lock of the
    interpreter ends its process too is tested in test_stall.py.
    """
    site = tiny_site
    site.env |= {"PV_INFERENCE_DEADLINE": "2", "PV_SESSION_TIMEOUT": "6", "PV_WORKERS": "2"}
    sent = 0
    for before in (die, hang):
        name = before.__name__
        ids = [f"{name}-{i}" for i in range(40)]
        texts = {i: "zoloft gave me insomnia" for i in ids} | {ids[20]: f"zoloft {HANG}"}
        site.produce("posts", [(i.encode(), orjson.dumps({"id": i, "text": t})) for i, t in texts.items()])
        sent += len(ids)
        fine = set(ids) - {ids[20]}

        def is_done(wanted: set[str] = fine, letters: int = sent // 40) -> bool:
            made = {record["id"] for record in site.records("mentions")}
            return wanted <= made and site.count("posts.dead") >= letters

        assert supervised(site, before, is_done) == 3
        *_, letter = site.read_all("posts.dead")
        headers = dict(letter.headers)
        assert (letter.key.decode(), headers["pv-reason"]) == (ids[20], b"process_died")
    assert site.count("posts.dead") == 2, "no other record"
    assert "process_died" in site.must("dead", "posts.dead")
