"""How soon does each criterion find planted signals, and how many signals are false?

A stream of reports is simulated week by week, with one drug and one term in each. Some pairs become more
frequent at a known week. In the first scenario a report is found as it is; in the second with the measured
precision and recall of tagger and coder together, and a part of the reports is repeated without being known
as a repeat. Everything is counted from the first week on, and looked at each week.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.machine import print_and_write, provenance
from streams.signals.statistics.criteria import CRITERIA, discoveries, evaluate
from streams.signals.statistics.fitting import DEFAULT, NotEnoughPairs, fit
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.tables import Counts
from streams.signals.watch import WEEKS, sequential_test
from training.common.program_help import run_program

DRUGS, TERMS = 40, 60
REPORTS = 1500
ONSET, END = 8, 34
RISKS = (2.0, 4.0, 8.0)
PLANTED = 8
#: Reports a week of a pair before it is planted, at least and at most.
RATES = (0.1, 2.0)
#: Weeks between two fits of the prior.
REFIT = 6
#: Share of reports that are repeated without being known as repeats, in the scenario with errors.
REPEATED = 0.1
MONTH = 365.25 / 12 / 7
FDR, ALPHA = 0.05, 0.05
DEFINITIONS = {
    "found": "share of planted pairs that meet the criterion in any week from the onset on",
    "weeks": "median weeks from the onset to the first week that it is met; null: fewer than half are found",
    "false a month": "other pairs that meet it in any week, a month of all "
    f"{END} weeks, of {DRUGS * TERMS} pairs and {REPORTS} reports a week",
    "maxsprt": f"sequential test over the last {WEEKS} weeks, alpha {ALPHA} for each pair",
    "fdr": f"Benjamini and Hochberg on Fisher's mid-P, rate {FDR} in each week",
}


@dataclass(frozen=True)
class Errors:
    """What the pipeline makes of the reports; the defaults make no error."""

    precision: float = 1.0
    recall: float = 1.0
    repeated: float = 0.0


def measured() -> Errors:
    """Precision and recall of coded events, from the committed result."""
    path = Path(__file__).parents[1] / "results/normalization/evaluation_normalization_end_to_end.json"
    rows = json.loads(path.read_bytes())["rows"]
    return Errors(rows["precision"]["value"], rows["recall"]["value"], REPEATED)


def simulated(rng: np.random.Generator, errors: Errors) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
    """Reports by week, drug and term as the pipeline finds them, and the planted pairs with their risks."""
    drugs, terms = (rng.permutation(1 / np.arange(3, n + 3)) for n in (DRUGS, TERMS))
    rate = REPORTS * np.outer(drugs / drugs.sum(), terms / terms.sum())
    frequent = np.argwhere((rate > RATES[0]) & (rate < RATES[1]))
    chosen = rng.permutation(frequent)[: PLANTED * len(RISKS)]
    planted = {(int(d), int(t)): RISKS[i % len(RISKS)] for i, (d, t) in enumerate(chosen)}
    later = rate.copy()
    for place, risk in planted.items():
        later[place] *= risk
    weeks = np.stack([rng.poisson(rate if week < ONSET else later) for week in range(END)])
    found = rng.binomial(weeks, errors.recall)
    wrong = rate * errors.recall * (1 - errors.precision) / errors.precision
    found = found + rng.poisson(wrong, found.shape)
    return found + rng.binomial(found, errors.repeated), planted


def prior_of(counts: Counts) -> Mixture:
    """As `pvstream signals` chooses it."""
    try:
        return fit(counts.n, counts.expected)
    except NotEnoughPairs:
        return DEFAULT


def flags(weeks: np.ndarray, prior: Mixture | None) -> tuple[dict[str, np.ndarray], Mixture]:
    """Which pairs meet each criterion after the last of the weeks; `prior` None: fitted anew."""
    total = weeks.sum(axis=0).astype(float)
    rows, columns = np.nonzero(total)
    counts = Counts(
        total[rows, columns], total.sum(axis=1)[rows], total.sum(axis=0)[columns],
        np.full(len(rows), total.sum()),
    )  # fmt: skip
    prior = prior or prior_of(counts)
    found = evaluate(counts, prior)
    met = {name: criterion(found) for name, criterion in CRITERIA.items()}
    met["fdr"] = discoveries(counts, FDR)
    recent = weeks[-WEEKS:].astype(float)
    margins = recent.sum(axis=2)[:, :, None] * recent.sum(axis=1)[:, None, :]
    expected = margins / recent.sum(axis=(1, 2))[:, None, None]
    names = [str(i) for i in range(len(recent))]
    watched = sequential_test(names, recent[:, rows, columns].T, expected[:, rows, columns].T, ALPHA)
    met["maxsprt"] = watched.signalled
    squares = {}
    for name, flag in met.items():
        squares[name] = np.zeros(total.shape, bool)
        squares[name][rows, columns] = flag
    return squares, prior


def weeks_met(weeks: np.ndarray) -> dict[str, np.ndarray]:
    """For each criterion the pairs that meet it after each week, (weeks, drugs, terms)."""
    met: dict[str, list[np.ndarray]] = {}
    prior = None
    for week in range(len(weeks)):
        found, prior = flags(weeks[: week + 1], None if (week - ONSET) % REFIT == 0 else prior)
        for name, flag in found.items():
            met.setdefault(name, []).append(flag)
    return {name: np.stack(rows) for name, rows in met.items()}


def delay(met: np.ndarray) -> float:
    """Weeks from the onset to the first week in which a pair meets a criterion, earlier ones left out;
    infinite where it never does.
    """
    found = np.flatnonzero(met[ONSET:])
    return float(found[0]) if len(found) else np.inf


def rows_of(runs: int, errors: Errors, label: str) -> dict[str, dict[str, Any]]:
    delays: dict[str, dict[float, list[float]]] = {}
    false: dict[str, int] = {}
    for seed in range(runs):
        weeks, planted = simulated(np.random.default_rng(seed), errors)
        is_planted = np.zeros(weeks.shape[1:], bool)
        is_planted[tuple(np.array(list(planted)).T)] = True
        for name, met in weeks_met(weeks).items():
            # What meets it before the onset is a false signal too.
            false[name] = false.get(name, 0) + int((met.any(axis=0) & ~is_planted).sum())
            by_risk = delays.setdefault(name, {risk: [] for risk in RISKS})
            for (drug, term), risk in planted.items():
                by_risk[risk].append(delay(met[:, drug, term]))
    months = runs * END / MONTH
    return {
        f"{name}, {label}": {
            **{f"found, risk {risk:g}": _share(found) for risk, found in by.items()},
            **{f"weeks, risk {risk:g}": _median(found) for risk, found in by.items()},
            "false a month": round(false[name] / months, 2),
        }
        for name, by in delays.items()
    }


def _share(weeks: list[float]) -> float:
    return round(float(np.isfinite(weeks).mean()), 3)


def _median(weeks: list[float]) -> float | None:
    middle = float(np.median(weeks))
    return middle if np.isfinite(middle) else None


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    runs: Annotated[int, typer.Option(min=1, help="simulated streams for each scenario")] = 8,
) -> None:
    errors = measured()
    rows = rows_of(runs, Errors(), "without errors") | rows_of(runs, errors, "with errors")
    figures = {
        "runs": runs, "precision": errors.precision, "recall": errors.recall, "repeated": errors.repeated,
        "definitions": DEFINITIONS, "rows": rows,
    }  # fmt: skip
    print_and_write({**figures, **provenance("signals.simulation")}, result)


if __name__ == "__main__":
    run_program(main)
