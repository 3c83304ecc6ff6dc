"""Formats a comparison as an HTML page, and its scores as a table for the console."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.table import Table
from rich.text import Text

from streams.replay.comparison import Comparison
from streams.replay.diff import CodingChange
from streams.replay.markup import article, terms
from streams.replay.page import page
from streams.replay.page import table as html_table
from streams.replay.scoring import Estimate, Score

#: Reports with different decisions, and changes of coding, that a page shows at most.
RECORDS_SHOWN = 200
CODINGS_SHOWN = 100


def html(comparison: Comparison) -> str:
    """A page without scripts and without external resources. It quotes the texts of reports."""
    return page(
        f"Replay of {comparison.source.topic}",
        *_head(comparison),
        *_scores(comparison),
        *_codings(comparison.coding),
        *_changed(comparison),
    )


def table(comparison: Comparison) -> Table:
    """The scores with their intervals, one row each."""
    two = comparison.other is not None
    scores = Table("score", "records", *(("base", "other", "difference") if two else ("value",)))
    for score in comparison.scores:
        scores.add_row(*(Text(cell) for cell in _score_cells(score)))
    return scores


def facts(comparison: Comparison) -> list[tuple[str, str]]:
    """What was replayed and how much of it is decided otherwise, as names and values."""
    source = comparison.source
    rows = [("Range", f"{source.start} to {source.stop}"), ("Records", str(source.records))]
    for name, chain in zip(_names(comparison), comparison.chains, strict=True):
        releases = ", ".join(f"{stage} {version}" for stage, version in chain.releases.items())
        rows.append((f"{name}: releases", releases))
        rows.append((f"{name}: dead letters", str(len(chain.result.dead))))
    if comparison.gold is not None:
        of = len(comparison.gold.records)
        rows.append(("Gold", f"{comparison.in_gold} of its {of} records are in the range"))
    if comparison.other is not None:
        changed = f"{len(comparison.differences)} of {comparison.compared} reports"
        rows.append(("Different decisions", f"{changed}; agreement {comparison.agreement:.1%}"))
    return rows


def _head(comparison: Comparison) -> list[str]:
    items = [f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts(comparison)]
    return ["<dl>", *items, "</dl>"]


def _scores(comparison: Comparison) -> list[str]:
    if not comparison.scores:
        return []
    names = [*_names(comparison), *(["Difference"] if comparison.other else [])]
    return [
        "<h2>Scores against gold</h2>",
        "<p>In brackets: the 95 % bootstrap interval, with records drawn with replacement.</p>",
        *html_table(
            ("Score", "Records", *names, "Definition"),
            [[*_score_cells(s), s.definition] for s in comparison.scores],
        ),
    ]


def _score_cells(score: Score) -> list[str]:
    """Name, number of records, a value for each chain, and the difference where there are two chains."""
    cells = [score.name, str(score.records), *(_estimate(e) for e in score.values)]
    if score.difference:
        cells.append(f"{_estimate(score.difference, sign=True)}, {_verdict(score.difference)}")
    return cells


def _codings(changes: Sequence[CodingChange]) -> list[str]:
    if not changes:
        return []
    rows = [
        [
            c.text,
            terms(c.old_pt, c.old_llt),
            terms(c.new_pt, c.new_llt),
            str(c.count),
            ", ".join(c.examples),
        ]
        for c in changes[:CODINGS_SHOWN]
    ]
    names = ("Mention", "Base: preferred (lowest-level) term", "Other", "Times", "Reports")
    more = len(changes) - CODINGS_SHOWN
    return [
        "<h2>Changes of coding</h2>",
        *html_table(names, rows),
        *([f"<p>{more} more changes are not shown.</p>"] if more > 0 else []),
    ]


def _changed(comparison: Comparison) -> list[str]:
    if comparison.other is None:
        return []
    shown = comparison.differences[:RECORDS_SHOWN]
    more = len(comparison.differences) - len(shown)
    order = "most gold decisions lost first" if comparison.gold else "most changes first"
    return [
        f"<h2>Reports with different decisions, {order}</h2>",
        *([] if shown else ["<p>None.</p>"]),
        *(article(d) for d in shown),
        *([f"<p>{more} more reports are not shown.</p>"] if more > 0 else []),
    ]


def _names(comparison: Comparison) -> tuple[str, ...]:
    """The headings of the chains."""
    return ("Base", "Other") if comparison.other else ("Replay",)


def _estimate(estimate: Estimate, *, sign: bool = False) -> str:
    form = "+.3f" if sign else ".3f"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def _verdict(difference: Estimate) -> str:
    if difference.low > 0:
        return "better"
    return "worse" if difference.high < 0 else "no clear difference"
