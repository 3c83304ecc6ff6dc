"""How long does each view of the page take with 100,000 events in DuckDB?

Reports of a written pattern with drugs and terms of the terminology go into a new store; a client on this
machine asks for each view again and again. With --pictures it takes screenshots of the views in Chromium.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from aiohttp import ClientSession

from benchmarks.machine import print_and_write, provenance
from models.terminology import Term, load
from models.types import Candidate, Mention
from streams.broker.embedded import EmbeddedBroker
from streams.order import revision_of
from streams.records import CodedEvent, CodedReport, Origin
from streams.settings import Settings
from streams.store.batches import Read, fold
from streams.store.database import open_database
from streams.web.app import application, start
from training.common.program_help import run_program

BATCH = 5000
DENIED = 0.1
SHORTEST = 5
DRUGS = (
    "sertraline",
    "lithium",
    "metformin",
    "ibuprofen",
    "warfarin",
    "tramadol",
    "quetiapine",
    "prednisone",
)
VIEWS = {
    "overview": "/",
    "report": "/report?id=post-77",
    "signals": "/signals?sort=ic025",
    "signals_of_a_drug": "/signals?drug=sertraline&window=90d",
    "pair": "/pair?drug=sertraline&term={term}",
    "review": "/review?order=uncertainty",
    "review_random": "/review?order=random",
    "terms": "/terms?q=pain",
}
DEFINITIONS = {
    "median_ms, largest_ms": "time of a view, from the request to the last byte",
    "processor_ms": "median processor time of this process meanwhile: the page, DuckDB and the client",
    "first_signals_ms": "from the start of the page to its first table of signals, which it computes",
    "first_signals_processor_ms": "processor time of this process meanwhile",
}


def report(i: int, terms: list[Term], rng: random.Random, now: datetime) -> CodedReport:
    """A report with a drug and one event, of which one in ten is denied."""
    drug, term = rng.choice(DRUGS), terms[min(int(rng.expovariate(0.02)), len(terms) - 1)]
    negated = rng.random() < DENIED
    text = f"Day {i % 30} on {drug}, {'no' if negated else 'and now'} {term.llt.lower()}. Anyone else?"
    effect, start = term.llt.lower(), text.index(drug)
    at = text.index(effect, start + len(drug))
    score = round(rng.uniform(0.55, 0.99), 3)
    others = rng.sample(terms, 4)
    further = [Candidate(t.llt, t.pt, t.soc, 0.5) for t in others]
    found = (Candidate(term.llt, term.pt, term.soc, score), *further)
    status = "negated" if negated else "own"
    event = CodedEvent(
        mention=1, drugs=(drug,), drug_evidence="relation", llt=term.llt, pt=term.pt, soc=term.soc,
        score=score, nil=False, candidates=found, negated=negated, serious=term.serious,
    )  # fmt: skip
    mentions = (
        Mention(start, start + len(drug), drug, "DRUG", 0.98, drug),
        Mention(at, at + len(effect), effect, "ADE", 0.9, status=status, status_score=0.9),
    )
    return CodedReport(
        id=f"post-{i}", text=text, source="posts", language="en", received_at=now,
        created_at=now - timedelta(minutes=3 * i), releases={"ner": "0" * 12, "normalization": "1" * 12},
        record_id=f"posts/post-{i}/{i:08x}/normalization@{'1' * 12}", origin=Origin("posts", 0, i),
        mentions=mentions, events=(event,),
    )  # fmt: skip


def fill(path: Path, count: int) -> str:
    """Writes the store; returns the commonest term."""
    rng, now = random.Random(0), datetime.now(UTC)
    terms = [t for t in load() if len(t.llt) >= SHORTEST]
    random.Random(1).shuffle(terms)
    database = open_database(Settings(database=str(path)), write=True)
    for first in range(0, count, BATCH):
        made = [report(i, terms, rng, now) for i in range(first, min(first + BATCH, count))]
        database.write(fold([Read(r.id, revision_of(r), r) for r in made], {}))
    database.close()
    return terms[0].pt


async def measure(base: str, term: str, repeats: int) -> dict[str, dict[str, int]]:
    """Milliseconds of each view."""
    found = {}
    async with ClientSession() as client:
        for name, path in VIEWS.items():
            taken = [await timed(client, base + path.format(term=term)) for _ in range(repeats)]
            wall, processor = zip(*taken, strict=True)
            found[name] = {
                "median_ms": round(median(wall)), "largest_ms": round(max(wall)),
                "processor_ms": round(median(processor)),
            }  # fmt: skip
    return found


async def timed(client: ClientSession, url: str) -> tuple[float, float]:
    """Milliseconds on the clock, and of processor time, of one request."""
    started, processor = time.perf_counter(), time.process_time()
    async with client.get(url) as answer:
        await answer.read()
        assert answer.ok, (url, answer.status)
    return (time.perf_counter() - started) * 1000, (time.process_time() - processor) * 1000


async def pictures(base: str, folder: Path) -> None:
    """Screenshots at 1280 and 360 pixels, light and dark."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  only for pictures

    async with async_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, path, width, scheme in (
            ("overview", "/", 1280, "light"), ("overview", "/", 360, "dark"),
            ("signals", "/signals", 1280, "dark"), ("review", "/review", 1280, "light"),
            ("review", "/review", 360, "light"),
        ):  # fmt: skip
            page = await browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            await page.goto(base + path)
            await page.screenshot(path=folder / f"web_{name}_{width}.png")
            await page.close()
        await browser.close()


async def run(settings: Settings, term: str, repeats: int, folder: Path | None) -> dict[str, Any]:
    runner, port = await start(application(settings, load()))
    try:
        base = f"http://127.0.0.1:{port}"
        async with ClientSession() as client:
            wall, processor = await timed(client, f"{base}/signals")
        first = {"first_signals_ms": round(wall), "first_signals_processor_ms": round(processor)}
        found = await measure(base, term, repeats)
        if folder is not None:
            await pictures(base, folder)
        return first | {"rows": found}
    finally:
        await runner.cleanup()


def main(
    events: Annotated[int, typer.Option(help="number of events in the store")] = 100_000,
    repeats: Annotated[int, typer.Option(help="requests of each view")] = 15,
    shots: Annotated[Path | None, typer.Option("--pictures", help="folder for screenshots")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="pvstream-web-") as name, EmbeddedBroker() as broker:
        path = Path(name) / "events.duckdb"
        term = fill(path, events)
        settings = Settings(database=str(path), broker=f"kafka://{broker.bootstrap}", web_port=0)
        found = asyncio.run(run(settings, term, repeats, shots))
    result = {"definitions": DEFINITIONS, "events": events, "repeats": repeats} | found
    print_and_write(result | provenance("web"), json)


if __name__ == "__main__":
    run_program(main)
