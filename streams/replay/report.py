"""A comparison for people: a page to read and to keep, and a table for the console."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from rich.table import Table
from rich.text import Text

from streams.replay.comparison import Comparison
from streams.replay.diff import CodingChange
from streams.replay.markup import article, terms
from streams.replay.scoring import Estimate, Score
from streams.replay.style import STYLE

#: Changed records on a page, and changes of coding.
RECORDS_SHOWN = 200
CODINGS_SHOWN = 100


def html(comparison: Comparison) -> str:
    """One page without scripts or anything from elsewhere. It quotes the texts of reports."""
    topic = escape(comparison.source.topic)
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Replay of {topic}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
        f"<h1>Replay of {topic}</h1>",
        *_head(comparison),
        *_scores(comparison),
        *_codings(comparison.coding),
        *_changed(comparison),
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def table(comparison: Comparison) -> Table:
    """The scores with their intervals, one row each."""
    two = comparison.other is not None
    found = Table("score", "records", *(("base", "other", "difference") if two else ("value",)))
    for score in comparison.scores:
        cells = [_estimate(e) for e in score.values]
        if score.difference:
            cells.append(f"{_estimate(score.difference, sign=True)}, {_verdict(score.difference)}")
        found.add_row(*(Text(cell) for cell in (score.name, str(score.records), *cells)))
    return found


def _head(comparison: Comparison) -> list[str]:
    source = comparison.source
    rows = [("Range", f"{source.start} to {source.stop}"), ("Records", str(source.records))]
    for name, chain in zip(_names(comparison), comparison.chains, strict=True):
        releases = ", ".join(f"{stage} {version}" for stage, version in chain.releases.items())
        rows.append((f"{name}: releases", releases))
        rows.append((f"{name}: dead letters", str(len(chain.replayed.dead))))
    if comparison.other is not None:
        changed = f"{len(comparison.differences)} of {comparison.compared} reports"
        rows.append(("Decided otherwise", f"{changed}; {comparison.agreement:.1%} are decided alike"))
    items = [f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows]
    return ["<dl>", *items, "</dl>"]


def _scores(comparison: Comparison) -> list[str]:
    if not comparison.scores:
        return []
    names = [*_names(comparison), *(["Difference"] if comparison.other else [])]
    return [
        "<h2>Scores against gold</h2>",
        "<p>In brackets the 95 % interval, by drawing records with replacement.</p>",
        *_rows(("Score", "Records", *names, "What it counts"), [_score_cells(s) for s in comparison.scores]),
    ]


def _score_cells(score: Score) -> list[str]:
    cells = [score.name, str(score.records), *(_estimate(e) for e in score.values)]
    if score.difference:
        cells.append(f"{_estimate(score.difference, sign=True)}, {_verdict(score.difference)}")
    return [*cells, score.definition]


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
    names = ("Words", "Base: preferred and lowest level term", "Other", "Times", "Reports")
    more = len(changes) - CODINGS_SHOWN
    return [
        "<h2>Changes of coding</h2>",
        *_rows(names, rows),
        *([f"<p>{more} changes more are left out.</p>"] if more > 0 else []),
    ]


def _changed(comparison: Comparison) -> list[str]:
    if comparison.other is None:
        return []
    shown = comparison.differences[:RECORDS_SHOWN]
    more = len(comparison.differences) - len(shown)
    order = "most gold decisions lost first" if comparison.gold else "most changes first"
    return [
        f"<h2>Reports decided otherwise, {order}</h2>",
        *([] if shown else ["<p>None.</p>"]),
        *(article(d, comparison.gold) for d in shown),
        *([f"<p>{more} reports more are left out.</p>"] if more > 0 else []),
    ]


def _rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return [
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>',
        *body,
        "</tbody>\n</table></div>",
    ]


def _names(comparison: Comparison) -> tuple[str, ...]:
    return ("Base", "Other") if comparison.other else ("Replay",)


def _estimate(estimate: Estimate, *, sign: bool = False) -> str:
    form = "+.3f" if sign else ".3f"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def _verdict(difference: Estimate) -> str:
    if difference.low > 0:
        return "better"
    return "worse" if difference.high < 0 else "no clear difference"
