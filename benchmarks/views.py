"""How long each view of the page takes with 100,000 events in DuckDB. 1,000 of them are assigned, 1,000 more
are decided, and of these 200 are disputed.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote, urlencode

import typer
from aiohttp import ClientSession

from benchmarks.machine import print_and_write, provenance
from models.terminology import Term, load
from models.types import Candidate, Mention
from streams.broker.embedded import EmbeddedBroker
from streams.order import revision_of
from streams.records import (
    SECOND,
    Assignment,
    CodedEvent,
    CodedReport,
    Decision,
    Origin,
    Review,
    ReviewedEvent,
)
from streams.reviews.chain import linked
from streams.reviews.tail import Tail
from streams.settings import Settings
from streams.store.changes import Batch, Read, fold
from streams.store.decisions import apply_decisions, fingerprint
from streams.store.open_database import open_database
from streams.topics import REVIEWS
from streams.web.app import application, start

EVENTS, BATCH, REPEATS, NOW = 100_000, 5000, 15, datetime.now(UTC)
ASSIGNED, DECIDED, DISPUTED = 1000, 1000, 200
DRUGS = ("sertraline", "lithium", "metformin", "ibuprofen", "warfarin", "tramadol", "quetiapine")
VIEWS = (
    "/", "/report?id=post-77", "/search", "/search?text=ibuprofen&state=undecided", "/search?owner=local",
    "/search?drug=lithium&term={term}", "/figures", "/figures?drug=lithium", "/signals", "/review?order=mine",
    "/signals?drug=lithium&window=90d", "/pair?drug=lithium&term={term}", "/signal?drug=lithium&term={term}",
    "/review?order=uncertainty", "/review?order=random", "/review?order=seriousness", "/case?id=post-77",
    "/search?sort=completeness", "/signals?format=csv", "/signals?count=all", "/review/same?{place}",
    "/review?order=second", "/review?order=disputed",
)  # fmt: skip


def report(i: int, terms: list[Term], rng: random.Random) -> CodedReport:
    drug, term, score = rng.choice(DRUGS), terms[int(rng.expovariate(0.02))], round(rng.uniform(0.5, 0.99), 3)
    text = f"Day {i % 30} on {drug}, and now {(effect := term.llt.lower())}. Anyone else?"
    named = Mention(at := text.rindex(effect), at + len(effect), effect, "ADE", 0.9)
    found = tuple(Candidate(t.llt, t.pt, t.soc, score - k / 20) for k, t in enumerate([term, *terms[:4]]))
    event = CodedEvent(
        mention=0, drugs=(drug,), drug_evidence="text", llt=term.llt, pt=term.pt, soc=term.soc, score=score,
        nil=False, serious=term.serious, candidates=found,
    )  # fmt: skip
    return CodedReport(
        id=f"post-{i}", text=text, source="posts", received_at=NOW, origin=Origin("posts", 0, i),
        created_at=NOW - timedelta(minutes=3 * i), releases={"ner": "0" * 12}, events=(event,),
        record_id=f"posts/post-{i}/{i:08x}/n@1", mentions=(named,),
    )  # fmt: skip


def place(of: CodedReport) -> dict[str, Any]:
    (found,) = of.mentions
    return {"report": of.id, "start": found.start, "end": found.end, "fingerprint": fingerprint(of.record_id)}


def decisions(made: list[CodedReport]) -> Iterator[Decision]:
    for one in made[:ASSIGNED]:
        yield Assignment(
            sequence=0, report_id=one.id, reviewer="ann", decided_at=NOW, before="", owner="local"
        )
    for i, one in enumerate(made[ASSIGNED : ASSIGNED + DECIDED]):
        where, (event,) = place(one), one.events
        before = ReviewedEvent(
            llt=event.llt, pt=event.pt, soc=event.soc, negated=False, hypothetical=False,
            other_experiencer=False, serious=event.serious,
        )  # fmt: skip
        first = Review(
            sequence=0, report_id=where.pop("report"), **where, reviewer="ann", decided_at=NOW,
            action="accept", before=before, after=replace(before, review="accept"),
        )  # fmt: skip
        yield first
        if i < DISPUTED:
            after = replace(before, review="reject")
            yield replace(first, reviewer="bob", action="reject", after=after, reading=SECOND)


def fill(settings: Settings) -> tuple[dict[str, str], list[Decision]]:
    """Fills the store; returns the parameters of the views, and the decisions."""
    rng, last, terms = random.Random(0), None, load()
    random.Random(1).shuffle(terms)
    chain: list[Decision] = []
    database = open_database(settings, write=True)
    for first in range(0, EVENTS, BATCH):
        made = [report(i, terms, rng) for i in range(first, first + BATCH)]
        database.write(fold([Read(r.id, revision_of(r), r) for r in made], {}))
        chain = chain or [last := linked(one, last) for one in decisions(made)]
    apply_decisions(database, batch := Batch(), chain)
    database.write(batch)
    database.close()
    return {"term": quote(terms[0].pt), "place": urlencode(place(made[-1]))}, chain


async def measured(
    settings: Settings, parameters: dict[str, str], chain: list[Decision]
) -> dict[str, dict[str, int]]:
    """Milliseconds of each view, to its last byte, and of the processor; the first signals are computed."""
    tail = Tail(settings, REVIEWS)
    await tail.start()
    for one in chain:
        await tail.send("", one)
    await tail.stop()
    (runner, port), found = await start(application(settings, load())), {}
    async with ClientSession(f"http://127.0.0.1:{port}") as client:
        for path in ("/signals", *VIEWS):
            clock, processor = [time.perf_counter()], [time.process_time()]
            for _ in range(REPEATS):
                async with client.get(path.format(**parameters)) as answer:
                    assert answer.ok and await answer.read(), path
                clock.append(time.perf_counter())
                processor.append(time.process_time())
            taken, used = ([b - a for a, b in pairwise(times)] for times in (clock, processor))
            ms = {"median_ms": median(taken), "largest_ms": max(taken), "processor_ms": median(used)}
            found[path] = {name: round(1000 * value) for name, value in ms.items()}
    await runner.cleanup()
    return found


def main(json: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="pvstream-") as name, EmbeddedBroker() as broker:
        path, address = f"{name}/events.duckdb", f"kafka://{broker.bootstrap}"
        settings = Settings(database=path, broker=address, web_port=0, state=Path(name))
        rows = asyncio.run(measured(settings, *fill(settings)))
    print_and_write({"events": EVENTS, "repeats": REPEATS, "rows": rows} | provenance("views"), json)


if __name__ == "__main__":
    typer.run(main)
