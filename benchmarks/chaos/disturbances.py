"""What the soak does to a pipeline apart from kills: hostile records, aborted transactions, a store that is
away and a model that hangs.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from models.ner.model import NerModel
from tests.integration import processes
from tests.integration.workers.test_hostile_records import (
    FAR_PAST,
    produce_hostile_header,
    produce_raw,
    produce_transactions,
    report,
)

DEAD = "posts.dead"
#: Id of the record of the aborted transactions.
ABORTED = "aborted"
#: Every text of the benchmark has this word, and no canary input.
WORD = "edition"
#: The batch in which a hanging model hangs.
HANGING_BATCH = 2


def send_hostile(bootstrap: str, number: int, rng: random.Random) -> set[bytes]:
    """Sends records that no producer should write; returns the keys of those that must become dead letters
    or deletions that are passed on.
    """
    values: list[tuple[bytes | None, int]] = [
        (None, 0),
        (b"", 0),
        (b"\xff\xfe", 0),
        (b"[" * 3000, 0),
        (b'{"id":"\\ud800","text":"x"}', 0),
        (report(" "), 0),
        (report("past"), FAR_PAST),
    ]
    tag = rng.randrange(1 << 30)
    records = [(f"bad-{number}-{tag}-{i}".encode(), value, at) for i, (value, at) in enumerate(values)]
    produce_raw(bootstrap, list(records))
    asyncio.run(produce_hostile_header(bootstrap))
    return {key for key, _, _ in records}


def abort_transaction(bootstrap: str) -> None:
    """A transaction that is aborted between two that are committed."""
    asyncio.run(produce_transactions(bootstrap))


def letters(bootstrap: str) -> set[bytes]:
    """The keys of all dead letters."""
    return {m.key for m in processes.read_all(bootstrap, DEAD) if m.key is not None}


@contextmanager
def store_away(store: Path) -> Iterator[None]:
    """For the time of the block the store is not there."""
    away = store.with_name("store-away")
    store.rename(away)
    try:
        yield
    finally:
        away.rename(store)


def hang_soon() -> None:
    """The tagger of this process hangs in one of its first batches, for ever."""
    predict = NerModel.predict
    seen: list[str] = []

    def hanging(self: NerModel, batch: Sequence[str], *arguments: Any) -> Any:
        seen.extend(batch[:1] if any(WORD in text for text in batch) else [])
        if len(seen) >= HANGING_BATCH:
            time.sleep(3600)
        return predict(self, batch, *arguments)

    NerModel.predict = hanging  # type: ignore[method-assign, assignment]
