"""A signal as one file: its numbers, history, decisions, reports with their neighbours, and what was done."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson

from streams import __version__
from streams.html import document
from streams.records import Signal
from streams.signals.checklist import checklist
from streams.signals.facts import PARTS_TEXT, Facts
from streams.signals.particulars import particulars
from streams.signals.population import Pair
from streams.signals.states import RULE, Standing
from streams.signals.surveillance import CAVEAT, Outcome
from streams.store.database import Database
from streams.web import reports
from streams.web.signal_table import LISTED, Signals, limits_line

#: Reports that a file has at most, the latest.
REPORTS = 1000
REPORT = (
    "id", "source", "reported_at", "language", "country", "report_group", "duplicate_of", "permalink", "text",
    "record_id", "releases", "mentions",
)  # fmt: skip
EVENT = (
    "words", "llt", "pt", "soc", "score", "flags", "drugs", "drug_evidence", "review", "candidates",
    "span_start", "span_end",
)  # fmt: skip
Dossier = dict[str, Any]


def dossier(pair: Pair, outcome: Outcome, standing: Standing, stored: Dossier, known: Signals) -> Dossier:
    """What both forms of the file have; `stored` is what `query` gives."""
    facts, listed = known.facts.get(pair, Facts()), LISTED[known.lists.is_listed(*pair)]
    return stored | {
        "drug": pair[0], "term": pair[1], "caveat": CAVEAT, "exported_at": datetime.now(UTC),
        "status": standing.status, "reopened": standing.reopened, "rule": RULE,
        "decisions": standing.decisions,
        "listed": listed,
        "complete": facts.complete, "complete_of": PARTS_TEXT, "countries": dict(facts.countries),
        "signal": next((s for s in outcome.signals if (s.drug, s.term) == pair), None),
        "particulars": dict(particulars(outcome, stored["releases"], __version__))
        | _of_pair(pair, stored, listed),
        "readus_pv": checklist(),
    }  # fmt: skip


def _of_pair(pair: Pair, stored: Dossier, listed: str) -> dict[str, str]:
    """What READUS-PV asks for of this pair beside its statistics."""
    numbers, found = stored["numbers"], stored["reports"]
    fields = (orjson.loads(report["case_fields"] or "[]") for report in found)
    told = [one for of_report in fields for one in {(f["field"], f["value"]) for f in of_report}]
    sexes = Counter(value for field, value in told if field == "sex")
    ages = [str(value).partition(".")[0][:3] for field, value in told if field == "age"]
    years = sorted(int(age) for age in ages if age.isdecimal())
    serious = sum(any(event["serious"] for event in report["events"]) for report in found)
    return {
        "Title": f"Disproportionality analysis of {pair[0]} and {pair[1]} in reports that models read",
        "Label": f"has the term: {listed}",
        "Numbers": (
            f"{numbers['reports']} reports have the pair; {numbers['all_reports']} affirmed ones of the "
            f"writer count, {numbers['unique_reports']} after duplicates"
        ),
        "Persons": (
            f"as the texts of the {len(found)} reports here state: {sexes['female']} female, "
            f"{sexes['male']} male; {len(years)} ages{f' from {years[0]} to {years[-1]}' if years else ''}; "
            f"serious events in {serious} reports"
        ),
        "Caveat": CAVEAT,
    }


def query(database: Database, pair: Pair, *, texts: bool) -> Dossier:
    """The reports of a pair and how many there are, and the releases behind all reports."""
    with database.snapshot():
        numbers, reported = reports.of_pair(database, *pair, texts=texts, most=REPORTS)
        return {"numbers": numbers, "reports": reported, "releases": reports.releases(database)}


def as_json(made: Dossier) -> bytes:
    """Indented; times are in UTC."""
    shown = [
        {name: report[name] for name in REPORT}
        | {"events": [{name: event[name] for name in EVENT} for event in report["events"]]}
        for report in made["reports"]
    ]
    return orjson.dumps(made | {"reports": shown}, option=orjson.OPT_INDENT_2 | orjson.OPT_NAIVE_UTC)


def as_html(made: Dossier) -> str:
    """A page without scripts and external resources."""
    signal: Signal | None = made["signal"]
    windows = [
        (
            name,
            s.n,
            s.expected,
            *(_interval(asdict(x)) for x in (s.prr, s.ror, s.ic, s.ebgm)),
            ", ".join(s.criteria),
        )
        for name, s in (signal.windows.items() if signal else ())
    ]
    history = signal.history if signal else None
    weeks = zip(history.weeks, history.n, history.ic025, history.eb05, strict=True) if history else ()
    title = f"{made['drug']} and {made['term']}"
    return document(
        "signal.html",
        title=title,
        windows=windows,
        weeks=list(weeks),
        line=limits_line(history),
        items=[item.values() for item in made["readus_pv"]],
        **made,
    )


def _interval(limits: dict[str, float]) -> str:
    return f"{limits['value']:.2f} [{limits['low']:.2f}, {limits['high']:.2f}]"
