"""Terminologies: the bundled one, one's own as a table, or a licensed MedDRA in its distribution's files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from models.tables import read_divided, read_tsv

BUNDLED = Path(__file__).with_name("pvstream.tsv")


@dataclass(frozen=True, slots=True)
class Term:
    """A lowest-level term, its preferred term and that one's (primary) system organ class."""

    llt: str
    pt: str
    soc: str


class TerminologyError(ValueError):
    """Files that are no terminology; one line that says where."""


def load(path: Path = BUNDLED) -> list[Term]:
    """A `.tsv` with the header llt, pt, soc, or a folder that holds MedDRA's llt.asc, pt.asc and soc.asc.

    A preferred term that is no lowest-level term of itself becomes one. Raises TerminologyError.
    """
    try:
        terms = list(_meddra(path) if path.is_dir() else _table(path))
    except (OSError, ValueError) as error:
        raise TerminologyError(str(error)) from None
    if not terms:
        raise TerminologyError(f"{path}: no term in it")
    have = {(t.llt.lower(), t.pt) for t in terms}
    own = {t.pt: t.soc for t in terms}
    return terms + [Term(pt, pt, soc) for pt, soc in own.items() if (pt.lower(), pt) not in have]


def _table(path: Path) -> Iterable[Term]:
    for row in read_tsv(path, ("llt", "pt", "soc")):
        yield Term(row[0], row[1], row[2])


def _meddra(folder: Path) -> Iterable[Term]:
    """MedDRA's `$`-separated files (MSSO distribution file format): current terms only, primary SOC from
    pt.asc.
    """
    socs = {row[0]: row[1] for row in read_divided(folder / "soc.asc", "$", 2)}
    pts = {}
    for row in read_divided(folder / "pt.asc", "$", 4):
        if row[3] not in socs:
            raise ValueError(f"pt.asc: {row[1]!r} names a system organ class that soc.asc lacks")
        pts[row[0]] = (row[1], socs[row[3]])
    for row in read_divided(folder / "llt.asc", "$", 10):
        name, pt_code, current = row[1], row[2], row[9]
        if current == "Y":
            if pt_code not in pts:
                raise ValueError(f"llt.asc: {name!r} names a preferred term that pt.asc lacks")
            yield Term(name, *pts[pt_code])
