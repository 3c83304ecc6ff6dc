"""What drugs are taken for: the diseases and complaints that they treat or prevent, as preferred terms.

The table was written for this project from general knowledge of the drugs, off-label uses among them, and
no clinician has checked it. Of events that a drug both treats and often causes (an irregular menstruation by
contraceptives, a ventricular arrhythmia by flecainide) most are left out.
"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Self

from models.once import once
from models.tables import DATA, read_tsv

BUNDLED = DATA / "drug_uses.tsv"
#: Between the terms of a row, and between its drugs.
_NEXT = "; "


class DrugUses:
    """The uses of each drug, by nonproprietary name; a combination has those of its parts too."""

    def __init__(self, rows: dict[str, list[frozenset[str]]]) -> None:
        """`rows`: preferred terms in lower case that belong together, by nonproprietary name."""
        self._rows = rows
        self._uses = {drug: frozenset().union(*uses) for drug, uses in rows.items()}

    @classmethod
    def load(cls, path: Path = BUNDLED) -> Self:
        """Reads a table with the columns `uses`, preferred terms, and `drugs` that each of them is a use of;
        else ValueError.
        """
        rows: dict[str, list[frozenset[str]]] = {}
        for terms, drugs in read_tsv(path, ("uses", "drugs")):
            row = frozenset(terms.lower().split(_NEXT))
            for drug in drugs.split(_NEXT):
                rows.setdefault(drug, []).append(row)
        return cls(rows)

    def beside(self, generic: str, terms: Set[str]) -> frozenset[str]:
        """The uses of the drug that stand in a row of the table with one of these, preferred terms in lower
        case: what belongs to one complaint.
        """
        rows = (row for part in {generic, *generic.split("/")} for row in self._rows.get(part, ()))
        return frozenset().union(*(row for row in rows if row & terms))

    def treats(self, generic: str, term: str) -> bool:
        """Whether a preferred term, in any case, is a use of the drug; of an unknown drug it is not."""
        return any(term.lower() in self._uses.get(part, ()) for part in (generic, *generic.split("/")))


@once
def bundled_uses() -> DrugUses:
    return DrugUses.load()
