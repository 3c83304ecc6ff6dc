"""The items on data and methods that READUS-PV requires of a report of disproportionality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams.signals.population import WINDOWS, Population
from streams.signals.statistics.criteria import CRITERIA
from streams.signals.surveillance import FDR, Options, Outcome, Window
from streams.signals.watch import WEEKS

CRITERION_TEXTS = {
    "evans": "at least 3 reports, PRR ≥ 2 and chi-square with Yates' correction ≥ 4",
    "ror025": "at least 3 reports and lower limit of the ROR > 1",
    "ic025": "lower limit of the IC > 0",
    "eb05": "EB05 ≥ 2",
    FDR: "rejected by Benjamini and Hochberg's procedure on Fisher's mid-P",
}


def particulars(outcome: Outcome, releases: Sequence[str], version: str) -> Iterator[tuple[str, str]]:
    """Names and texts, in the order of the checklist. `releases` names the models behind the reports."""
    options, whole = outcome.options, outcome.windows["all"]
    population, unknown = options.population, outcome.without_language
    left_out = f"; {unknown} more reports, of which no language is stated, are left out" if unknown else ""
    yield (
        "Data",
        (
            f"{whole.reports} {population.counted} with {whole.pairs} pairs, found by models in texts of "
            f"{population.source or 'all sources'}, {population.language or 'all languages'}{left_out}"
        ),
    )
    yield (
        "Period",
        (
            f"all reports up to {outcome.computed_at:%Y-%m-%d %H:%M} UTC; windows {', '.join(WINDOWS)}; the "
            "time of a report is that of its text, else of its arrival"
        ),
    )
    yield "Unit", f"{population.counted}: known repeats count {'too' if population.all_reports else 'once'}"
    yield from _definitions(population)
    yield from _methods(options, whole)
    yield "Models", ", ".join(releases) or "unknown"
    yield "Software", f"pvstream {version}"
    yield (
        "Limits",
        (
            "reports are not verified and stand for no population; the models miss events and find false "
            "ones; who writes, stimulated reporting and news change the counts; no risk follows from them"
        ),
    )


def _definitions(population: Population) -> Iterator[tuple[str, str]]:
    yield "Drug", "suspected drug by its nonproprietary name, as the models relate it to the event"
    terms = "preferred terms" if population.level == "pt" else "system organ classes"
    yield "Event", f"{terms} of the terminology, coded by a model and not by a person"
    who = "also of other people" if population.others else "of the writer"
    serious = ", serious only" if population.serious else ""
    yield "Counted", f"affirmed events, neither negated nor hypothetical, {who}{serious}"


def _methods(options: Options, whole: Window) -> Iterator[tuple[str, str]]:
    stratified = "; expected counts summed over source and language" if options.stratified else ""
    yield "Comparator", f"all other reports with a pair{stratified}"
    yield (
        "Measures",
        (
            f"PRR, ROR, chi-square, information component, EBGM; Poisson MaxSPRT over the last {WEEKS} "
            f"weeks, a period that moves on every week, with alpha {options.alpha:g} of a pair in a period"
        ),
    )
    how = "fitted to all pairs" if whole.prior_is_fitted else "as published, not fitted: too few pairs"
    prior = whole.prior
    yield (
        "Prior of EBGM",
        (
            f"two gamma distributions, {how}: shapes {prior.shape1:.3g} and {prior.shape2:.3g}, rates "
            f"{prior.rate1:.3g} and {prior.rate2:.3g}, weight {prior.weight:.3g}"
        ),
    )
    names = [name for name in (*CRITERIA, FDR) if name != FDR or options.fdr is not None]
    yield "Thresholds", "; ".join(f"{name}: {CRITERION_TEXTS[name]}" for name in names)
    meet = f" that meet {options.criterion}" if options.criterion is not None else ""
    yield (
        "Listed",
        f"pairs with at least {options.least} reports{meet}; of many pairs some meet a criterion by chance",
    )
