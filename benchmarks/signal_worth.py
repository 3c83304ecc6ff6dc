"""How soon does each criterion find effects that are there, and how many signals are false?

Reports come week by week, with one drug and one term each, found with the measured precision and recall of
tagger and coder together. Some pairs become more frequent at a known week. Beside them comes what makes
signals of nothing: repeats, stimulated reporting, and campaigns of copied texts. Each stream is counted
twice: every report, and with repeats merged. Needs no data: python -m benchmarks.signal_worth
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.machine import print_and_write, provenance
from streams.signals.reference import scores
from streams.signals.statistics.criteria import CRITERIA, evaluate
from streams.signals.statistics.fitting import prior_of
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.ratios import Counts
from streams.signals.watch import WEEKS, sequential_test
from training.common.program_help import run_program

DRUGS, TERMS, REPORTS = 40, 60, 1500
ONSET, END, NEWS = 8, 34, 14
RISKS, PLANTED = (2.0, 4.0, 8.0), 8
#: Reports a week of a pair before it is planted or written about, at least and at most.
RATES = (0.1, 2.0)
#: Weeks between two fits of the prior.
REFIT = 6
#: Share of reports that are repeated, and of repeats and copies that are known as such.
REPEATED, KNOWN = 0.1, 0.9
#: Pairs that are written about, for how many weeks, and how many times as often.
PAIRS, NEWS_WEEKS, STIMULUS = 8, 4, 5.0
#: Copies of one text about each of PAIRS, in one week.
COPIES = 60
MONTH = 365.25 / 12 / 7
ALPHA, LEAST = 0.05, 3
SCENARIOS = ("repeats", "stimulated reporting", "campaigns")
DEFINITIONS = {
    "found": "share of planted pairs that meet the criterion in any week from the onset on",
    "weeks": "median weeks from the onset to the first such week; null: fewer than half are found",
    "false a month": f"other pairs that meet it in any week, a month of all {END} weeks, of {DRUGS * TERMS} "
    f"pairs and {REPORTS} reports a week",
    "misled": "share of the pairs with stimulated reports or copies that meet it, which have no effect",
    "repeats": f"{REPEATED:.0%} of the reports come twice; in all scenarios",
    "stimulated reporting": f"{PAIRS} pairs are reported {STIMULUS:g} times as often for {NEWS_WEEKS} weeks",
    "campaigns": f"{COPIES} copies of one text about each of {PAIRS} pairs in one week",
    "merged": f"repeats and copies are known as such with probability {KNOWN:g}, which is assumed",
    "auc": f"share of the couples of a planted pair and another one, of {LEAST} reports each, in which the "
    "statistic of the planted one is the greater after the last week",
    "maxsprt": f"sequential test over the last {WEEKS} weeks, alpha {ALPHA} for each pair",
}
Cells = NDArray[Any]
"""Weeks x drugs x terms, or drugs x terms."""


@dataclass(frozen=True)
class Stream:
    """Reports as they are found, with and without what is known as a repeat."""

    every: Cells
    merged: Cells
    planted: dict[tuple[int, int], float]
    """Pairs with an effect, and how many times as frequent they become."""
    misleading: list[tuple[int, int]]


def measured() -> tuple[float, float]:
    """Precision and recall of coded events, from the committed result."""
    name = "results/normalization/evaluation_normalization_end_to_end.json"
    rows = json.loads((Path(__file__).parent / name).read_bytes())["rows"]
    return rows["precision"]["value"], rows["recall"]["value"]


def simulated(rng: np.random.Generator, scenario: str, precision: float, recall: float) -> Stream:
    drugs, terms = (rng.permutation(1 / np.arange(3, n + 3)) for n in (DRUGS, TERMS))
    rate = REPORTS * np.outer(drugs / drugs.sum(), terms / terms.sum())
    frequent = rng.permutation(np.argwhere((rate > RATES[0]) & (rate < RATES[1])))
    pairs = [(int(d), int(t)) for d, t in frequent[: PLANTED * len(RISKS) + PAIRS]]
    planted = {pair: RISKS[i % len(RISKS)] for i, pair in enumerate(pairs[PAIRS:])}
    misleading = pairs[:PAIRS] if scenario != "repeats" else []
    rates = np.repeat(rate[None], END, axis=0)
    for place, risk in planted.items():
        rates[(slice(ONSET, None), *place)] *= risk
    if scenario == "stimulated reporting":
        for place in misleading:
            rates[(slice(NEWS, NEWS + NEWS_WEEKS), *place)] *= STIMULUS
    wrong = rate * recall * (1 - precision) / precision
    unique = rng.binomial(rng.poisson(rates), recall) + rng.poisson(wrong, rates.shape)
    repeats = rng.binomial(unique, REPEATED)
    if scenario == "campaigns":
        for place in misleading:
            repeats[(NEWS, *place)] += rng.binomial(COPIES, recall)
    unknown = rng.binomial(repeats, 1 - KNOWN)
    return Stream(unique + repeats, unique + unknown, planted, misleading)


def flags(weeks: Cells, prior: Mixture | None) -> tuple[dict[str, Cells], Mixture]:
    """Which pairs meet each criterion after the last of the weeks; `prior` None: fitted anew."""
    total, counts = tables(weeks)
    rows, columns = np.nonzero(total)
    prior = prior or prior_of(counts)[0]
    found = evaluate(counts, prior)
    met: dict[str, Cells] = {name: criterion(found) for name, criterion in CRITERIA.items()}
    recent = weeks[-WEEKS:].astype(float)
    margins = recent.sum(axis=2)[:, :, None] * recent.sum(axis=1)[:, None, :]
    expected = margins / recent.sum(axis=(1, 2))[:, None, None]
    names = [str(i) for i in range(len(recent))]
    watched = sequential_test(names, recent[:, rows, columns].T, expected[:, rows, columns].T, ALPHA)
    met["maxsprt"] = watched.signalled
    squares = {name: np.zeros(total.shape, bool) for name in met}
    for name, flag in met.items():
        squares[name][rows, columns] = flag
    return squares, prior


def tables(weeks: Cells) -> tuple[Cells, Counts]:
    """The reports of all pairs, and the tables of those that have any."""
    total = weeks.sum(axis=0).astype(float)
    rows, columns = np.nonzero(total)
    margins = total.sum(axis=1)[rows], total.sum(axis=0)[columns], np.full(len(rows), total.sum())
    return total, Counts(total[rows, columns], *margins)


def areas(weeks: Cells, planted: Iterable[tuple[int, int]]) -> dict[str, float]:
    """For each criterion the area under the curve of its statistic after the last week."""
    total, counts = tables(weeks)
    effects = np.zeros(total.shape, bool)
    for place in planted:
        effects[place] = True
    chosen = np.flatnonzero(counts.n >= LEAST)
    rated = scores(evaluate(counts, prior_of(counts)[0]), chosen, effects[np.nonzero(total)][chosen])
    return {name: row["auc"] for name, row in rated.items()}


def weeks_met(weeks: Cells) -> dict[str, Cells]:
    """For each criterion the pairs that meet it after each week."""
    met: defaultdict[str, list[Cells]] = defaultdict(list)
    prior = None
    for week in range(len(weeks)):
        found, prior = flags(weeks[: week + 1], None if (week - ONSET) % REFIT == 0 else prior)
        for name, flag in found.items():
            met[name].append(flag)
    return {name: np.stack(rows) for name, rows in met.items()}


def row_of(streams: list[Stream], met: list[Cells]) -> dict[str, Any]:
    """The figures of one criterion over streams of a scenario."""
    delays: dict[float, list[float]] = {risk: [] for risk in RISKS}
    false, misled = 0, []
    for stream, one in zip(streams, met, strict=True):
        at_any_time: Cells = np.any(one, axis=0)
        for place, risk in stream.planted.items():
            found = np.flatnonzero(one[(slice(ONSET, None), *place)])
            delays[risk].append(float(found[0]) if len(found) else np.inf)
        # What meets it before the onset is a false signal too.
        false += int(at_any_time.sum()) - sum(bool(at_any_time[place]) for place in stream.planted)
        misled += [bool(at_any_time[place]) for place in stream.misleading]
    row: dict[str, Any] = {}
    for risk, weeks in delays.items():
        middle = float(np.median(weeks))
        row[f"found, risk {risk:g}"] = round(float(np.isfinite(weeks).mean()), 3)
        row[f"weeks, risk {risk:g}"] = middle if np.isfinite(middle) else None
    row["false a month"] = round(false / (len(streams) * END / MONTH), 2)
    return row | ({"misled": round(float(np.mean(misled)), 3)} if misled else {})


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    runs: Annotated[int, typer.Option(min=1, help="simulated streams for each scenario")] = 2,
) -> None:
    precision, recall = measured()
    rows: dict[str, dict[str, Any]] = {}
    for scenario in SCENARIOS:
        streams = [simulated(np.random.default_rng(i), scenario, precision, recall) for i in range(runs)]
        for counted in ("every report", "merged"):
            cells = [s.every if counted == "every report" else s.merged for s in streams]
            met = [weeks_met(weeks) for weeks in cells]
            rated = [areas(weeks, s.planted) for s, weeks in zip(streams, cells, strict=True)]
            for name in met[0]:
                row = row_of(streams, [one[name] for one in met])
                if name in rated[0]:
                    row["auc"] = round(float(np.mean([one[name] for one in rated])), 3)
                rows[f"{name}, {scenario}, {counted}"] = row
    figures = {
        "runs": runs,
        "precision": precision,
        "recall": recall,
        "definitions": DEFINITIONS,
        "rows": rows,
    }
    print_and_write({**figures, **provenance("signal_worth")}, result)


if __name__ == "__main__":
    run_program(main)
