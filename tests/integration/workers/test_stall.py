"""A worker whose model hangs says so and ends; after the record is skipped nothing else is missing."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Callable

import orjson
import pytest

from tests.integration import processes
from tests.integration.hanging import HANG, hang, hang_with_lock
from tests.integration.site import Site, stop

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KEY = b"key-of-a-patient"


def live(port: int) -> int:
    """The status of /health/live; 0 without an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=2) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def produce(site: Site, *ids: str) -> None:
    records = [{"id": i, "text": f"zoloft {HANG}" if i == "bad" else "zoloft gave me insomnia"} for i in ids]
    site.produce("posts", [(KEY, orjson.dumps(r)) for r in records])


def outputs(site: Site) -> set[str]:
    return {record["id"] for record in site.records("mentions")}


def ended(site: Site, before: Callable[[], None], *, statuses: set[int]) -> str:
    """What a worker logs that hangs and ends; `statuses` must be among the answers about its liveness."""
    start = len(site.log.read_text()) if site.log.exists() else 0
    seen = set()
    with site.running_broken(before, "worker", "--stage", "ner") as worker:

        def has_ended() -> bool:
            seen.add(live(site.port))
            return worker.poll() is not None

        processes.wait_until(has_ended, "the end of the process", 180)
        assert worker.returncode == 1
    processes.leave_for_all(site.kafka.bootstrap)  # otherwise the next waits for the end of the session
    assert statuses <= seen
    return site.log.read_text()[start:]


def test_a_worker_without_state_whose_model_hangs_names_the_records_and_ends(tiny_site: Site) -> None:
    site = tiny_site
    no_folder = site.folder / "file"
    no_folder.touch()
    # Without one, nothing that died is known.
    site.env |= {"PV_INFERENCE_DEADLINE": "3", "PV_SESSION_TIMEOUT": "6", "PV_STATE": str(no_folder)}
    produce(site, "0", "1")
    with site.running("worker", "--stage", "ner") as worker:
        site.wait_count(2, "mentions")
        stop(worker)
    produce(site, "2", "bad", "3", "4")
    (partition,) = {m.partition for m in site.read_all("posts")}

    log = ended(site, hang, statuses={200, 503})
    assert f"records posts/{partition} 2-5 are delivered again" in log
    assert "run one worker with PV_BATCH=1" in log
    assert f"for offset in 2 3 4 5; do pvstream skip posts {partition} $offset --group ner; done" in log
    assert "in hanging" in log, "where the model hangs"
    site.env["PV_BATCH"] = "1"
    log = ended(site, hang, statuses={200, 503})
    assert KEY.decode() not in log
    assert HANG + " " not in log
    (command,) = re.findall(r"run: pvstream (skip posts .*)$", log, re.MULTILINE)
    assert command == f"skip posts {partition} 3 --group ner"
    assert outputs(site) == {"0", "1", "2"}

    site.must(*command.split())
    with site.running_broken(hang, "worker", "--stage", "ner"):
        processes.wait_until(lambda: outputs(site) == {"0", "1", "2", "3", "4"}, "every other record")
    (letter,) = site.read_all("posts.dead")
    assert orjson.loads(letter.value)["id"] == "bad"


def test_a_model_that_holds_the_interpreter_lock_ends_its_process_too(tiny_site: Site) -> None:
    site = tiny_site
    site.env["PV_INFERENCE_DEADLINE"] = "3"
    produce(site, "bad")
    (partition,) = {m.partition for m in site.read_all("posts")}
    log = ended(site, hang_with_lock, statuses={200, 0})
    assert f'File "<batch: posts/{partition} 0>"' in log
    assert outputs(site) == set()
