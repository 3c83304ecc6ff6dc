"""What people sort signals by beside the statistics: labels, lists of terms, what the reports have."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from streams.records import History, Signal
from streams.signals.lists import Lists
from streams.signals.population import Pair, Population
from streams.signals.states import IC025
from streams.store.database import Database

#: What a report may have, as conditions on its row; vigiGrade asks for more than a post states.
PARTS = ("author_known", "created_at IS NOT NULL", "coalesce(indication, '') <> ''", "country IS NOT NULL")
PARTS_TEXT = "reporter, date, indication and country"


@dataclass(frozen=True, slots=True)
class Facts:
    """Of a pair of drug and preferred term."""

    complete: float | None = None
    """Mean share of PARTS that its reports have."""
    countries: tuple[tuple[str, int], ...] = ()
    """Countries that sources state, with their unique reports, the most frequent first."""


def facts(database: Database) -> dict[Pair, Facts]:
    """Of all pairs that the signals count."""
    counted = f"SELECT DISTINCT drug AS named, pt AS term, report_id FROM pairs WHERE {Population().where()}"
    joined = f"({counted}) AS counted JOIN reports r ON r.id = counted.report_id"
    share = " + ".join(f"CASE WHEN {part} THEN 1.0 ELSE 0.0 END" for part in PARTS)
    complete = database.query(f"SELECT named, term, avg({share}) FROM {joined} GROUP BY named, term")[1]
    found = {(drug, term): float(mean) / len(PARTS) for drug, term, mean in complete}
    countries: defaultdict[Pair, list[tuple[str, int]]] = defaultdict(list)
    by_country = (
        f"SELECT named, term, country, count(DISTINCT report_group) AS n FROM {joined} "
        "WHERE country IS NOT NULL GROUP BY named, term, country ORDER BY n DESC, country"
    )
    for drug, term, country, n in database.query(by_country)[1]:
        countries[drug, term].append((country, n))
    return {pair: Facts(mean, tuple(countries[pair])) for pair, mean in found.items()}


def flags_of(signal: Signal, lists: Lists, *, serious: bool) -> tuple[str, ...]:
    """The lists that its term is in, `unlisted` and NEW. Terms are serious by the terminology,
    as `serious` says, or by the user's list.
    """
    found = {*lists.of_term(signal.term)}
    found |= {"serious"} if serious else set()
    found |= {"unlisted"} if lists.is_listed(signal.drug, signal.term) is False else set()
    found |= {NEW} if is_new(signal.history) else set()
    return tuple(flag for flag in FLAGS if flag in found)


NEW = "new in 7 days"
#: In the order in which they are shown.
FLAGS = (NEW, "designated", "serious", "pregnancy", "misuse", "unlisted")


def is_new(history: History | None) -> bool:
    """Whether IC025 exceeds 0 now, and did not seven days ago."""
    if history is None or len(history.weeks) < 2:  # noqa: PLR2004  two weeks
        return False
    return history.ic025[-1] > IC025 >= history.ic025[-2]
