"""How well the statistics of a store tell known effects of drugs from controls: OMOP's reference set, that of
EU-ADR, or a user's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.drugs import bundled_lexicon
from models.tables import DATA, read_tsv
from streams.signals.lists import cells
from streams.signals.population import Pair, Population, count
from streams.signals.statistics.criteria import CRITERIA, Flags, Statistics, evaluate
from streams.signals.statistics.fitting import prior_of
from streams.signals.statistics.ratios import Floats
from streams.store.database import Database

BUNDLED = DATA / "reference_pairs.tsv"
SETS = ("omop", "eu-adr")
COLUMNS = ("drug", "term", "label")
LABELS = {"known": True, "control": False}
#: Of each criterion the statistic by which pairs are ranked for the area under the curve.
RANKED: dict[str, tuple[str, Callable[[Statistics], Floats]]] = {
    "evans": ("PRR", lambda s: s.prr.value),
    "ror025": ("ROR025", lambda s: s.ror.low),
    "ic025": ("IC025", lambda s: s.ic.low),
    "eb05": ("EB05", lambda s: s.ebgm.low),
}
DEFINITIONS = {
    "known": "known effects with enough reports; known_met: those of them that meet the criterion",
    "controls": "the same of the drugs that are believed not to cause the term",
    "sensitivity": "share of the known effects that meet the criterion",
    "specificity": "share of the controls that do not",
    "auc": "share of the pairs of a known effect and a control in which the statistic of the effect is the "
    "greater one; chance 0.5",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """Pairs of a drug and a term, and whether the drug is known to cause it."""

    pairs: Mapping[Pair, bool]
    outcomes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names with preferred terms that count as a term of that name."""

    def of(self, known: bool) -> int:
        """Number of the known effects, or of the controls."""
        return sum(one is known for one in self.pairs.values())


def bundled(name: str) -> Reference:
    """A set of SETS. A drug that the lexicon lacks has the name of the table."""
    lexicon, pairs, terms = bundled_lexicon(), dict[Pair, bool](), dict[str, tuple[str, ...]]()
    for of, outcome, what, names in read_tsv(BUNDLED, ("set", "outcome", "what", "names")):
        if what == "terms":
            terms[outcome] = tuple(names.split("|"))
        elif of == name:
            pairs |= {(lexicon.generic(drug) or drug, outcome): LABELS[what] for drug in names.split("|")}
    return Reference(pairs, tuple((outcome, terms[outcome]) for outcome in sorted({o for _, o in pairs})))


def read(path: Path, terms: Mapping[str, str]) -> tuple[Reference, list[str]]:
    """The pairs of a CSV file with COLUMNS, and a message for each line that is left out. `terms`: preferred
    terms by what may stand in the file, in lower case. Raises UnreadableFile.
    """
    lexicon, pairs, left_out = bundled_lexicon(), dict[Pair, bool](), []
    for line, (drug, term, label) in cells(path, COLUMNS):
        generic, pt, known = lexicon.generic(drug), terms.get(term.lower()), LABELS.get(label.lower())
        if generic is None:
            left_out.append(f"line {line}: unknown drug {drug!r}")
        elif pt is None:
            left_out.append(f"line {line}: unknown term {term!r}")
        elif known is None:
            left_out.append(f"line {line}: label {label!r} is neither known nor control")
        elif pairs.setdefault((generic, pt), known) != known:
            left_out.append(f"line {line}: {drug!r} with {term!r} has both labels")
    return Reference(pairs), left_out


def compare(database: Database, reference: Reference, population: Population, least: int) -> dict[str, Any]:
    """What each criterion makes of the pairs of at least `least` reports: of unique ones, and of all."""
    rows = []
    for every in (False, True):
        within = replace(population, all_reports=every, outcomes=reference.outcomes)
        tables = count(database, within)
        places = {pair: i for i, pair in enumerate(tables.pairs)}
        chosen = [places[p] for p in reference.pairs if p in places and tables.counts.n[places[p]] >= least]
        known = np.array([reference.pairs[tables.pairs[i]] for i in chosen], bool)
        statistics = evaluate(tables.counts, prior_of(tables.counts)[0])
        of_chosen = scores(statistics, np.array(chosen, np.intp), known)
        rows += [{"counted": within.counted, "criterion": name} | row for name, row in of_chosen.items()]
    head = {"known": reference.of(True), "controls": reference.of(False), "least": least}
    return head | {"rows": rows}


def scores(statistics: Statistics, places: Any, known: Flags) -> dict[str, dict[str, Any]]:
    """For each criterion what DEFINITIONS say of the pairs at these places; null where there are none."""
    found = {}
    for name, (statistic, values) in RANKED.items():
        met, ranked = CRITERIA[name](statistics)[places], values(statistics)[places]
        above = ranked[known][:, None] - ranked[~known]
        found[name] = {
            "known": int(known.sum()), "known_met": int(met[known].sum()),
            "controls": int((~known).sum()), "controls_met": int(met[~known].sum()),
            "sensitivity": _mean(met[known]), "specificity": _mean(~met[~known]),
            "statistic": statistic, "auc": _mean((above > 0) + (above == 0) / 2),
        }  # fmt: skip
    return found


def _mean(values: Any) -> float | None:
    return round(float(values.mean()), 3) if values.size else None
