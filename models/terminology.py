"""Loads a terminology: the bundled one, a table, or the distribution files of a licensed MedDRA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from filecmp import cmp
from pathlib import Path

from models.once import once
from models.tables import DATA, header, read_separated, read_tsv

BUNDLED = DATA / "terminology.tsv"
COLUMNS = ("llt", "pt", "soc", "serious", "frequency")
FREQUENCIES = frozenset("012345")
SERIOUS = frozenset(("1", "0", ""))


@dataclass(frozen=True, slots=True)
class Term:
    """A lowest-level term, its preferred term, and the preferred term's primary system organ class."""

    llt: str
    pt: str
    soc: str
    serious: bool = False
    """whether events of the preferred term are medically important, as EMA's list of such events means it"""
    frequency: int = 0
    """how often the preferred term is reported, estimated: 0 (hardly ever) to 5 (among the most frequent)"""


class TerminologyError(ValueError):
    """The files are not a valid terminology; the message is one line with the file and the place in it."""


def load(path: Path = BUNDLED) -> list[Term]:
    """The terms of a `.tsv` file with the header llt, pt, soc and optionally serious (1 or 0) and frequency
    (0 to 5), or of a folder with MedDRA's files llt.asc, pt.asc and soc.asc, which state neither. A preferred
    term without a lowest-level term of its own name gets one. The bundled terminology is read once in a
    process, and its copy in a release is not read again.

    Raises TerminologyError when a file is missing, malformed or without terms.
    """
    is_bundled = path == BUNDLED or (path.is_file() and cmp(path, BUNDLED, shallow=False))
    return list(_bundled()) if is_bundled else _read(path)


@once
def _bundled() -> tuple[Term, ...]:
    return tuple(_read(BUNDLED))


def _read(path: Path) -> list[Term]:
    try:
        terms = list(_meddra(path) if path.is_dir() else _table(path))
    except (OSError, ValueError) as error:
        raise TerminologyError(str(error)) from None
    if not terms:
        raise TerminologyError(f"{path}: no term in it")
    present = {(t.llt.lower(), t.pt) for t in terms}
    by_pt = {t.pt: t for t in terms}
    return terms + [replace(t, llt=pt) for pt, t in by_pt.items() if (pt.lower(), pt) not in present]


def _table(path: Path) -> Iterable[Term]:
    names = [name.strip().lower() for name in header(path)]
    serious, frequent = (names.index(name) if name in names else len(names) for name in COLUMNS[3:])
    is_rated = frequent < len(names)
    for row in read_tsv(path, ("llt", "pt", "soc")):
        frequency = "".join(row[frequent : frequent + 1]) if is_rated else "0"
        if frequency not in FREQUENCIES:
            raise ValueError(f"{path.name}: the frequency of {row[0]!r} is {frequency!r}, not 0 to 5")
        stated = "".join(row[serious : serious + 1])
        if stated not in SERIOUS:
            raise ValueError(f"{path.name}: whether {row[0]!r} is serious is {stated!r}, not 1 or 0")
        yield Term(row[0], row[1], row[2], stated == "1", int(frequency))


def _meddra(folder: Path) -> Iterable[Term]:
    """The current terms of MedDRA's `$`-separated files, with the primary class of pt.asc."""
    socs = {row[0]: row[1] for row in read_separated(folder / "soc.asc", "$", 2)}
    pts = {}
    for row in read_separated(folder / "pt.asc", "$", 4):
        if row[3] not in socs:
            raise ValueError(f"pt.asc: {row[1]!r} has a system organ class that is not in soc.asc")
        pts[row[0]] = (row[1], socs[row[3]])
    for row in read_separated(folder / "llt.asc", "$", 10):
        name, pt_code, current = row[1], row[2], row[9]
        if current == "Y":
            if pt_code not in pts:
                raise ValueError(f"llt.asc: {name!r} has a preferred term that is not in pt.asc")
            yield Term(name, *pts[pt_code])


def term_at_end(text: str) -> Term | None:
    """The term of the longest name of the bundled terminology that the text ends with ("severe knee pain"),
    without regard to case; None where it ends with none.
    """
    ending = " ".join(text.lower().split())
    while ending and ending not in _by_name():
        _, _, ending = ending.partition(" ")
    return _by_name().get(ending)


def term_named(text: str) -> Term | None:
    """The term of the bundled terminology with this very name, without regard to case."""
    return _by_name().get(" ".join(text.lower().split()))


@once
def _by_name() -> dict[str, Term]:
    terms = load()
    return {t.llt.lower(): t for t in terms} | {t.pt.lower(): t for t in terms}
