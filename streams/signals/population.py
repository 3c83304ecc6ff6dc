"""Counts unique reports in the store: the tables of all pairs in a population of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np

from streams.signals.statistics.ratios import Counts, Floats
from streams.store.database import Database
from streams.store.tables import quoted

Level = Literal["pt", "soc"]
Pair = tuple[str, str]
#: Windows by name; None: all time.
WINDOWS: dict[str, timedelta | None] = {"all": None, "90d": timedelta(days=90), "7d": timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class Population:
    """Which reports and which of their pairs count. Reports of one group, that is of one case, count once; a
    report without a pair that counts is not in the population.
    """

    level: Level = "pt"
    """Terms are preferred terms, or system organ classes."""
    start: datetime | None = None
    """Of the time of the report, inclusive; None: no limit."""
    stop: datetime | None = None
    """Exclusive."""
    source: str | None = None
    """Only reports of this input topic."""
    language: str | None = None
    """Only reports for which their source states this language."""
    serious: bool = False
    """Only serious events."""
    others: bool = False
    """Also events of other people than the writer."""
    first: bool = False
    """Only reports that repeat none which counts from before `start`."""
    all_reports: bool = False
    """Each report of a group counts."""
    outcomes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names with preferred terms that count as a term of that name."""

    @property
    def term(self) -> str:
        """The column of `pairs` with the terms, or what to select in its place."""
        if self.level == "soc" or not self.outcomes:
            return self.level
        named = ((quoted(name), ", ".join(map(quoted, terms))) for name, terms in self.outcomes)
        return f"CASE {' '.join(f'WHEN pt IN ({terms}) THEN {name}' for name, terms in named)} ELSE pt END"

    @property
    def unit(self) -> str:
        """The column of `pairs` of which each value counts once."""
        return "report_id" if self.all_reports else "report_group"

    @property
    def counted(self) -> str:
        """What counts, in words."""
        return "reports" if self.all_reports else "unique reports"

    def within(self, window: str, now: datetime) -> Population:
        """The same population in a window that ends now."""
        length = WINDOWS[window]
        return replace(self, start=None if length is None else now - length, stop=now)

    def where(self) -> str:
        """The condition on rows of `pairs`."""
        conditions = ["affirmed"]
        conditions += [] if self.others else ["NOT other_experiencer"]
        conditions += ["serious"] if self.serious else []
        conditions += [f"reported_at >= {literal(self.start)}"] if self.start else []
        conditions += [self._before(self.stop)] if self.stop else []
        conditions += [f"source = {quoted(self.source)}"] if self.source is not None else []
        conditions += [f"language = {quoted(self.language)}"] if self.language is not None else []
        if self.first:
            before = replace(self, start=None, stop=self.start, first=False).where()
            conditions.append(f"{self.unit} NOT IN (SELECT {self.unit} FROM pairs WHERE {before})")
        return " AND ".join(conditions)

    def _before(self, stop: datetime) -> str:
        """A report without a time is in a window that has no start."""
        before = f"reported_at < {literal(stop)}"
        return before if self.start else f"({before} OR reported_at IS NULL)"


@dataclass(frozen=True, slots=True)
class Tables:
    """All pairs that have a report, and their counts."""

    pairs: list[Pair]
    counts: Counts
    reports: int
    """Unique reports in the population, or all of them."""
    of_pairs: Sequence[tuple[int, int]] = ()
    """Of each pair all reports, and the unique ones."""


@dataclass(frozen=True, slots=True)
class Strata:
    """Counts of pairs by stratum."""

    names: list[str]
    n: Floats
    """Pairs x strata."""
    drug: Floats
    """Pairs x strata: reports with the drug of the pair; `term` those with its term."""
    term: Floats
    sizes: Floats
    """Of each stratum, all reports."""

    @property
    def expected(self) -> Floats:
        """Pairs x strata: product of the margins of the stratum over its reports."""
        margins: Floats = self.drug * self.term
        return margins / self.sizes


def count(database: Database, population: Population, *, stratified: bool = False) -> Tables:
    """The tables of a population. With `stratified` the expected counts are summed over source and language
    (Mantel and Haenszel's way, as in DuMouchel 1999), so that what differs between these is no signal.
    """
    # The pairs first: margins that are read later are no smaller, unless reports are deleted meanwhile.
    both = ("report_id", "report_group")
    numbers = {(d, t): (n, m) for d, t, n, m in _ask(database, population, ("drug", "term"), units=both)}
    found = sorted((*pair, n[both.index(population.unit)]) for pair, n in numbers.items())
    drugs, terms = (dict(_ask(database, population, (name,))) for name in ("drug", "term"))
    found = [row for row in found if drugs.get(row[0], 0) >= row[2] <= terms.get(row[1], 0)]
    pairs = [(drug, term) for drug, term, _ in found]
    (total,) = [n for (n,) in _ask(database, population, ())]
    counts = Counts(
        np.array([n for *_, n in found], float),
        np.array([drugs[drug] for drug, _ in pairs], float),
        np.array([terms[term] for _, term in pairs], float),
        np.full(len(pairs), float(total)),
    )
    if stratified and pairs:
        by_stratum = strata(database, population, pairs, STRATUM)
        counts = replace(counts, stratified=by_stratum.expected.sum(axis=1))
    return Tables(pairs, counts, int(total), [numbers[pair] for pair in pairs])


def without_language(database: Database, population: Population) -> int:
    """The unique reports that a population of one language leaves out because no language is stated; a report
    of which a repeat states it counts.
    """
    if population.language is None:
        return 0
    counted = f"SELECT {population.unit} FROM pairs WHERE {population.where()}"
    where = (
        f"{replace(population, language=None).where()} AND coalesce(language, '') = '' "
        f"AND {population.unit} NOT IN ({counted})"
    )
    ((reports,),) = database.query(f"SELECT count(DISTINCT {population.unit}) FROM pairs WHERE {where}")[1]
    return int(reports)


#: Source and language of a report as one text.
STRATUM = "coalesce(source, '') || '/' || coalesce(language, '')"
WEEK = "CAST(date_trunc('week', reported_at) AS date)"


def strata(database: Database, population: Population, pairs: Sequence[Pair], stratum: str) -> Strata:
    """Observed counts and margins of the pairs in each stratum, which is an SQL expression. Repeats of one
    report are in the first stratum that has one of them.
    """
    totals = dict(_ask(database, population, ("stratum",), stratum))
    names = sorted(totals)
    place = {name: i for i, name in enumerate(names)}
    drugs = {drug: i for i, drug in enumerate(sorted({drug for drug, _ in pairs}))}
    terms = {term: i for i, term in enumerate(sorted({term for _, term in pairs}))}
    rows = {pair: i for i, pair in enumerate(pairs)}
    n = np.zeros((len(pairs), len(names)))
    # A server's store may have changed between two queries: what is new is counted the next time.
    for drug, term, name, reports in _ask(database, population, ("drug", "term", "stratum"), stratum):
        if (drug, term) in rows and name in place:
            n[rows[drug, term], place[name]] = reports
    by_drug, by_term = np.zeros((len(drugs), len(names))), np.zeros((len(terms), len(names)))
    for array, positions, key in ((by_drug, drugs, "drug"), (by_term, terms, "term")):
        for one, name, reports in _ask(database, population, (key, "stratum"), stratum):
            if one in positions and name in place:
                array[positions[one], place[name]] = reports
    drug_rows, term_rows = [drugs[drug] for drug, _ in pairs], [terms[term] for _, term in pairs]
    sizes = np.array([totals[name] for name in names], float)
    return Strata([str(name) for name in names], n, by_drug[drug_rows], by_term[term_rows], sizes)


def _ask(
    database: Database,
    population: Population,
    keys: Sequence[str],
    stratum: str = "NULL",
    units: Sequence[str] = (),
) -> Iterable[Any]:
    """Reports for each value of the keys, as rows of the keys and the number, by default of unique ones."""
    units = units or (population.unit,)
    first = f"min({stratum}) OVER (PARTITION BY {population.unit})"
    columns = {"drug": "drug", "term": population.term, "stratum": first}
    chosen = [f"{columns[key]} AS k{i}" for i, key in enumerate(keys)]
    names = [f"k{i}" for i in range(len(keys))]
    where = population.where() + (f" AND {stratum} IS NOT NULL" if "stratum" in keys else "")
    inner = ", ".join([*chosen, *units])
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    sql = (
        f"SELECT {', '.join([*names, *(f'count(DISTINCT {unit})' for unit in units)])} "
        f"FROM (SELECT {inner} FROM pairs WHERE {where}) AS counted{grouped}"
    )
    return database.query(sql)[1]


def literal(time: datetime) -> str:
    """A time in SQL."""
    return f"TIMESTAMP '{time.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}'"
