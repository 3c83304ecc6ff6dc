"""Formats a comparison as an HTML page, and its scores as a table for the console."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from streams.html import document
from streams.replay.comparison import Comparison
from streams.replay.diff import CodingChange
from streams.replay.markup import changes, highlighted, terms
from streams.replay.scoring import Estimate, Score

#: Reports with different decisions, and changes of coding, that a page shows at most.
RECORDS_SHOWN = 200
CODINGS_SHOWN = 100


def html(comparison: Comparison) -> str:
    """A page without scripts and without external resources. It quotes the texts of reports."""
    two, order = comparison.other is not None, ""
    if two:
        order = "most gold decisions lost first" if comparison.gold else "most changes first"
    return document(
        "replay.html",
        title=f"Replay of {comparison.source.topic}",
        pairs=facts(comparison),
        score_names=("Score", "Records", *_names(comparison), *["Difference"] * two, "Definition"),
        scores=[[*_score_cells(s), s.definition] for s in comparison.scores],
        codings=[_coding_cells(c) for c in comparison.coding[:CODINGS_SHOWN]],
        more_codings=len(comparison.coding) - CODINGS_SHOWN,
        order=order,
        shown=comparison.differences[:RECORDS_SHOWN],
        more=len(comparison.differences) - RECORDS_SHOWN,
        highlighted=highlighted,
        terms=terms,
        changes=changes,
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


def _score_cells(score: Score) -> list[str]:
    """Name, number of records, a value for each chain, and the difference where there are two chains."""
    cells = [score.name, str(score.records), *(_estimate(e) for e in score.values)]
    if score.difference:
        cells.append(f"{_estimate(score.difference, sign=True)}, {_verdict(score.difference)}")
    return cells


def _coding_cells(change: CodingChange) -> tuple[str, ...]:
    before, after = terms(change.old_pt, change.old_llt), terms(change.new_pt, change.new_llt)
    return change.text, before, after, str(change.count), ", ".join(change.examples)


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
