"""What is in inference, kept in PV_STATE, so that a record which ends the process is known to the next one.

Each process has a file there, locked as long as it lives. The file of one that has died says what it inferred
then, until those records are processed. Each of them is inferred alone from then on, so an end that it did
not cause is counted against it only where it comes at just the moment of that inference. Ends of processes
that inferred a record at once, none of which knew of another's end, count as one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import orjson
from pydantic import ValidationError

from streams.codec import adapter
from streams.records import Inbound

T = TypeVar("T")
log = logging.getLogger(__name__)


class Placed(Protocol):
    """What has a place in a topic."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


def described(places: Iterable[Placed]) -> str:
    """The offsets of some records, without their keys: `posts/0 17-24, posts/2 5`."""
    return ", ".join(
        f"{topic}/{partition} {', '.join(_ranges(offsets))}"
        for topic, partition, offsets in by_partition(places)
    )


def by_partition(places: Iterable[Placed]) -> Iterator[tuple[str, int, list[int]]]:
    """For each partition its topic, its number and the offsets in their order."""
    found: dict[tuple[str, int], list[int]] = {}
    for place in places:
        found.setdefault((place.topic, place.partition), []).append(place.offset)
    for (topic, partition), offsets in sorted(found.items()):
        yield topic, partition, offsets


def _ranges(offsets: Sequence[int]) -> Iterator[str]:
    """Ascending numbers as ranges: 1, 2, 3, 7 gives `1-3`, `7`."""
    start = 0
    for i in range(1, len(offsets) + 1):
        if i == len(offsets) or offsets[i] != offsets[i - 1] + 1:
            first, last = offsets[start], offsets[i - 1]
            yield str(first) if first == last else f"{first}-{last}"
            start = i


#: Seconds for which the file of a dead process is kept: its records may have gone another way.
KEPT_SECONDS = 7 * 24 * 3600.0


class Place(NamedTuple):
    """A source record of a stage; the time tells it from that of a topic created again."""

    stage: str
    topic: str
    partition: int
    offset: int
    timestamp: float


class InFlight:
    """The file of this process, and those of dead ones. Without a folder, or where it cannot be written,
    nothing is noted, and no record has deaths. Any thread may use it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._path = Path()
        self._running: dict[int, bytes] = {}
        """What each thread infers."""
        self._deaths: dict[Place, int] = {}
        self._lock = threading.Lock()

    def open(self) -> None:
        """Creates the file of this process."""
        if self._folder is None:
            return
        self._path = self._folder / f"{uuid.uuid4().hex}.json"
        # Others see the file only when it is locked.
        hidden = self._path.with_suffix(".new")
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(self._path)
            self._descriptor = descriptor
        except OSError as error:
            log.warning("%s cannot be used: %s", self._folder, error.strerror)
            log.warning("a record that ends its process again and again must then be skipped by hand")

    def close(self) -> None:
        """Removes the file, unless something is in inference still."""
        with self._lock:
            if self._descriptor is not None and not self._running:
                _replace(self._path, {})
                os.close(self._descriptor)
                self._descriptor = None

    def noted(self, stage: str, batch: Sequence[Inbound], work: Callable[[], T]) -> T:
        """Runs `work` in the calling thread, with a note of its batch for that time."""
        if self._descriptor is None:
            return work()
        thread = threading.get_ident()
        places = [((stage, r.topic, r.partition, r.offset, r.timestamp), r.deaths) for r in batch]
        self._write(thread, orjson.dumps(places)[1:-1])
        try:
            return work()
        finally:
            self._write(thread, b"")

    def with_deaths(self, stage: str, records: Sequence[Inbound]) -> Sequence[Inbound]:
        """The records, each with the number of its deaths as read last."""
        if not self._deaths:
            return records
        return [replace(record, deaths=self._deaths.get(_place(stage, record), 0)) for record in records]

    def read(self) -> None:
        """Reads what the processes that have died were inferring, and removes files that say nothing."""
        found: dict[Place, int] = {}
        for path, places in self._dead():
            for place, before in places.items():
                found[place] = max(before + 1, found.get(place, 0))
            if not places:
                _replace(path, {})
        new = found.keys() - self._deaths.keys()
        for stage in sorted({place.stage for place in new}):
            offsets = described(sorted(place for place in new if place.stage == stage))
            log.warning("%s: a process died while it inferred %s: each is inferred alone", stage, offsets)
        self._deaths = found

    def forget(self, stage: str, record: Inbound) -> None:
        """Ends the count of a record that is processed."""
        place = _place(stage, record)
        self._deaths.pop(place, None)
        for path, places in self._dead():
            if place in places:
                del places[place]
                _replace(path, places)

    def _dead(self) -> list[tuple[Path, dict[Place, int]]]:
        """The files of dead processes, and what each was inferring with the deaths that it knew of."""
        if self._folder is None or self._descriptor is None:
            return []
        found = []
        for path in self._folder.glob("*.json"):
            # Where locks belong to the process, closing another descriptor would release that of its file.
            if path != self._path:
                with suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    is_old = time.time() - os.fstat(file.fileno()).st_mtime > KEPT_SECONDS
                    found.append((path, {} if is_old else _places_in(file.readline())))
        return found

    def _write(self, thread: int, places: bytes) -> None:
        """Notes what a thread infers. The first line of the file is replaced in one piece, which the end of
        the process does not divide; that of the machine may, and such a line is not read.
        """
        with self._lock:
            if places:
                self._running[thread] = places
            else:
                self._running.pop(thread, None)
            if self._descriptor is not None:
                with suppress(OSError):
                    os.pwrite(self._descriptor, b"[%b]\n" % b",".join(self._running.values()), 0)


def _place(stage: str, record: Inbound) -> Place:
    return Place(stage, record.topic, record.partition, record.offset, record.timestamp)


def _places_in(line: bytes) -> dict[Place, int]:
    """Empty where the machine ended while the line was written."""
    try:
        return dict(adapter(list[tuple[Place, int]]).validate_json(line, strict=True))
    except ValidationError:
        return {}


def _replace(path: Path, places: Mapping[Place, int]) -> None:
    """Never leaves a part of a file: two workers may do this at once."""
    with suppress(OSError):
        if places:
            new = path.with_suffix(f".{uuid.uuid4().hex}")
            new.write_bytes(orjson.dumps([(tuple(place), n) for place, n in places.items()]) + b"\n")
            new.replace(path)
        else:
            path.unlink(missing_ok=True)
