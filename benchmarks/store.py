"""How many reports a second does the store take, and how large does it get?

Records of a size as the stages write them are applied in batches of the store's size: decoding, the order of
origins, and the transaction, without Kafka. Compare the ratios, not the seconds.
"""

from __future__ import annotations

import gc
import json
import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.types import Candidate, Mention, Relation
from streams.cli.demo.run import samples
from streams.codec import encode
from streams.records import CodedEvent, CodedReport, Inbound, Origin
from streams.settings import Settings
from streams.store.batches import read_all
from streams.store.database import Database, open_database
from streams.store.follow import BATCH, Follower
from tests.postgres_server import postgres
from training.common.program_help import run_program

NOW = datetime(2026, 3, 4, tzinfo=UTC)
SIZE = "SELECT sum(pg_total_relation_size(c)) FROM unnest(ARRAY['reports', 'events', 'pairs']) AS c"
DEFINITIONS = {
    "reports_per_second": "new reports, from the bytes of the messages to the end of the last transaction",
    "reports_per_cpu_second": "the same over the processor time of this process; a server's is not in it",
    "decoding_share": "share of that time in which messages are decoded and checked",
    "revised_per_second": "the same for a later revision of a tenth of the reports",
    "bytes_per_report": "size of the database with its indexes, over its reports",
    "bytes_per_message": "mean size of the messages",
}


def message(i: int, texts: list[str], rng: random.Random, offset: int) -> Inbound:
    """A report with two mentions and, as two of three have one, an event with five candidates."""
    text = texts[i % len(texts)][:400] + f" {i}"
    mentions = (Mention(0, 5, text[:5], "DRUG", 0.98, "sertraline"), Mention(6, 12, text[6:12], "ADE", 0.9))
    terms = [f"Preferred term {rng.randrange(2000)}" for _ in range(5)]
    found = tuple(Candidate(f"{t}, lowest", t, "Nervous system disorders", 0.81) for t in terms)
    event = CodedEvent(
        mention=1, drugs=(f"drug {rng.randrange(500)}",), drug_evidence="relation", llt=found[0].llt,
        pt=terms[0], soc=found[0].soc, score=0.81, nil=False, candidates=found,
    )  # fmt: skip
    record = CodedReport(
        id=f"https://example.org/post/{i}", text=text, source="posts", received_at=NOW,
        created_at=NOW - timedelta(minutes=i % 500_000),
        releases={"ner": "0" * 12, "normalization": "1" * 12},
        record_id=f"posts/{i}/0123abcd/normalization@{'0' * 12}+{'1' * 12}",
        origin=Origin("posts", 0, offset), generations={"ner": 3, "normalization": 4}, mentions=mentions,
        relations=(Relation(0, 1, 0.9),), events=(event,) if i % 3 else (),
    )  # fmt: skip
    return Inbound("events", 0, offset, record.id.encode(), encode(record), NOW.timestamp())


def measured(database: Database, messages: list[Inbound], revised: list[Inbound]) -> dict[str, Any]:
    follower = Follower(Settings(), database)
    started, cpu = time.perf_counter(), time.process_time()
    for i in range(0, len(messages), BATCH):
        follower.apply(messages[i : i + BATCH])
    database.release()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    read_all(messages)
    decoding = time.perf_counter() - started
    started = time.perf_counter()
    for i in range(0, len(revised), BATCH):
        follower.apply(revised[i : i + BATCH])
    revising = time.perf_counter() - started
    assert follower.counts["written"] == len(messages) + len(revised)
    return {
        "reports": len(messages),
        "reports_per_second": round(len(messages) / seconds),
        "reports_per_cpu_second": round(len(messages) / cpu),
        "decoding_share": round(decoding / seconds, 2),
        "revised_per_second": round(len(revised) / revising),
    }


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    reports: Annotated[int, typer.Option(min=100, help="number of reports")] = 100_000,
    postgresql: Annotated[
        bool, typer.Option("--postgres", help="also measure PostgreSQL, with a server that is started")
    ] = False,
) -> None:
    rng = random.Random(1)
    lines = samples()["posts"].read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    messages = [message(i, texts, rng, i) for i in range(reports)]
    revised = [message(i, texts, rng, reports + i) for i in range(0, reports, 10)]
    rows = {}
    gc.collect()
    gc.freeze()  # as the command does
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.duckdb"
        database = open_database(Settings(database=str(path)), write=True)
        rows["DuckDB"] = measured(database, messages, revised)
        database.close()
        rows["DuckDB"]["bytes_per_report"] = round(path.stat().st_size / reports)
    if postgresql:
        with postgres() as url:
            database = open_database(Settings(database=url), write=True)
            rows["PostgreSQL"] = measured(database, messages, revised)
            (size,) = next(iter(database.query(SIZE)[1]))
            rows["PostgreSQL"]["bytes_per_report"] = round(int(size) / reports)
            database.close()
    size = round(sum(len(m.value or b"") for m in messages) / reports)
    figures = {"bytes_per_message": size, "definitions": DEFINITIONS, "rows": rows}
    print_and_write({**figures, **provenance("store")}, result)


if __name__ == "__main__":
    run_program(main)
