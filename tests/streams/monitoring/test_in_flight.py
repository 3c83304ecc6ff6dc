"""What a process was inferring when it died, and what the next one makes of that."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streams.monitoring.in_flight import KEPT_SECONDS, InFlight
from streams.records import Inbound
from tests.fakes import inbound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "in_flight"


@pytest.fixture
def own(folder: Path) -> Iterator[InFlight]:
    """That of a process which lives."""
    mine = InFlight(folder)
    mine.open()
    yield mine
    mine.close()


def in_a_process(work: Callable[[], None]) -> None:
    """Runs it in a process that is forked, and which ends as the work does."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(30)
    assert process.exitcode is not None


def die(folder: Path, stage: str, batch: Sequence[Inbound], done: Sequence[Inbound] = ()) -> None:
    """A process that infers some records, and dies in the inference of others."""

    def work() -> None:
        one = InFlight(folder)
        one.open()
        one.noted(stage, done, int)
        one.noted(stage, batch, lambda: os._exit(1))

    in_a_process(work)


def deaths(own: InFlight, stage: str, records: Sequence[Inbound]) -> list[int]:
    return [record.deaths for record in own.with_deaths(stage, records)]


def records(n: int) -> list[Inbound]:
    return [inbound(i, b"{}") for i in range(n)]


def test_what_a_dead_process_inferred_is_known_until_it_is_processed(
    folder: Path, own: InFlight, caplog: pytest.LogCaptureFixture
) -> None:
    batch = records(5)
    die(folder, "ner", batch[2:4], done=batch[:2])
    assert deaths(own, "ner", batch) == [0] * 5, "read after a rebalance only"
    own.read()
    assert deaths(own, "ner", batch) == [0, 0, 1, 1, 0]
    assert "ner: a process died while it inferred posts/0 2-3: each is inferred alone" in caplog.text
    assert deaths(own, "relation", batch) == [0] * 5
    assert deaths(own, "ner", [replace(one, timestamp=1.0) for one in batch]) == [0] * 5, "another topic"
    for known in (1, 2):
        die(folder, "ner", [r for r in own.with_deaths("ner", batch) if r.offset == 2])
        own.read()
        assert deaths(own, "ner", batch) == [0, 0, known + 1, 1, 0]
    own.forget("ner", batch[3])
    assert deaths(own, "ner", batch) == [0, 0, 3, 0, 0]
    own.read()
    assert deaths(own, "ner", batch) == [0, 0, 3, 0, 0]
    own.forget("ner", batch[2])
    assert len(list(folder.iterdir())) == 1, "that of this process"


def test_processes_that_inferred_a_record_at_once_count_as_one(folder: Path, own: InFlight) -> None:
    """As when a batch passes on in rebalances while its first workers are suspended, and then all end."""
    for _ in range(3):
        die(folder, "ner", records(2))
    own.read()
    assert deaths(own, "ner", records(2)) == [1, 1]
    for _ in range(3):
        die(folder, "ner", own.with_deaths("ner", records(1)))
    own.read()
    assert deaths(own, "ner", records(2)) == [2, 1]


def test_a_process_that_lives_or_dies_without_an_inference_is_no_death(folder: Path, own: InFlight) -> None:
    def idle() -> None:
        one = InFlight(folder)
        one.open()
        one.noted("ner", records(2), int)
        os._exit(1)

    in_a_process(idle)
    other = InFlight(folder)
    other.open()

    def look() -> None:
        other.read()
        own.read()
        assert deaths(own, "ner", records(2)) == deaths(other, "ner", records(2)) == [0, 0]
        assert len(list(folder.iterdir())) == 2, "those of the living"

    own.noted("ner", records(2), look)
    other.close()
    own.close()
    assert not list(folder.iterdir())


def test_a_process_that_is_to_end_while_it_infers_counts_only_if_it_does_not_return(folder: Path) -> None:
    def late() -> None:
        one = InFlight(folder)
        one.open()
        one.noted("ner", records(1), one.close)
        os._exit(1)

    in_a_process(late)
    own = InFlight(folder)
    own.open()
    own.read()
    assert deaths(own, "ner", records(1)) == [0]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\0" * 4096, b"{", b"null", b"[1]\n", b'[[["ner","posts",0,0,1760000000.0',
        b'[[["ner","posts",0,"0",1.0],0]]\n',
    ],
    ids=repr,
)  # fmt: skip
def test_a_damaged_file_is_ignored_and_removed(folder: Path, own: InFlight, content: bytes) -> None:
    damaged = folder / "0123.json"
    damaged.write_bytes(content)
    own.read()
    assert deaths(own, "ner", records(1)) == [0]
    assert not damaged.exists()


def test_the_file_of_a_dead_process_is_not_kept_for_ever(folder: Path, own: InFlight) -> None:
    before = set(folder.iterdir())
    die(folder, "ner", records(1))
    (dead,) = set(folder.iterdir()) - before
    long_ago = time.time() - KEPT_SECONDS - 60
    os.utime(dead, (long_ago, long_ago))
    own.read()
    assert deaths(own, "ner", records(1)) == [0]
    assert len(list(folder.iterdir())) == 1


def test_without_a_folder_or_where_it_cannot_be_written_nothing_is_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (None, file / "in_flight"):
        own = InFlight(folder)
        own.open()
        assert own.noted("ner", records(1), lambda: 7) == 7
        own.read()
        assert deaths(own, "ner", records(1)) == [0]
        own.forget("ner", records(1)[0])
        own.close()
    assert f"{file}/in_flight cannot be used: Not a directory" in caplog.text
