"""Which terms are in the label of a drug, and lists of terms that come first: designated medical events,
serious ones, exposure in pregnancy, misuse. A user's lists are files in PV_STATE; a page reads them again at
each computation.
"""

from __future__ import annotations

import csv
import io
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from models.files.row import UnreadableFile
from models.tables import DATA, read_tsv
from streams.settings import Settings

log = logging.getLogger(__name__)
BUNDLED = DATA / "term_lists.tsv"
#: Names of the lists of terms.
LISTS = ("designated", "serious", "pregnancy", "misuse")
#: Of social media, what WEB-RADR found them to help with.
NICHES = ("pregnancy", "misuse")
#: Files of PV_STATE: preferred terms by drug, and by list.
LABELS_FILE, LISTS_FILE = "listed.json", "term_lists.json"
Table = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Of a file of pairs: what it has for each first column, and a message for each line left out."""

    table: Table
    left_out: list[str]


@dataclass(frozen=True, slots=True)
class Lists:
    """Terms by drug and by list, in lower case."""

    labels: Mapping[str, frozenset[str]]
    terms: Mapping[str, frozenset[str]]

    def is_listed(self, drug: str, term: str) -> bool | None:
        """Whether the term is in the label of the drug; None where no label of the drug is loaded."""
        label = self.labels.get(drug.lower())
        return None if label is None else term.lower() in label

    def of_term(self, term: str) -> tuple[str, ...]:
        """The lists that a term is in."""
        return tuple(name for name in LISTS if term.lower() in self.terms.get(name, ()))


def load(settings: Settings) -> Lists:
    """The bundled lists and those of PV_STATE, which replace the bundled ones of the same names. A file that
    cannot be read is logged, and its terms are unknown.
    """
    bundled: defaultdict[str, list[str]] = defaultdict(list)
    for name, term, *_ in read_tsv(BUNDLED, ("list", "term", "source")):
        bundled[name].append(term)
    own = _kept(settings.state_folder / LISTS_FILE)
    return Lists(_folded(_kept(settings.state_folder / LABELS_FILE)), _folded(bundled | own))


def _folded(table: Mapping[str, list[str]]) -> dict[str, frozenset[str]]:
    return {name.lower(): frozenset(term.lower() for term in terms) for name, terms in table.items()}


def _kept(path: Path) -> Table:
    try:
        table: Table = orjson.loads(path.read_bytes())
        return {str(name): [str(term) for term in terms] for name, terms in table.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        log.warning("%s cannot be read: %s", path, type(error).__name__)
        return {}


def read(
    path: Path, columns: tuple[str, str], first: Callable[[str], str | None], terms: Mapping[str, str]
) -> Loaded:
    """The pairs of a CSV file with a header that has these two columns, separated by a comma, a semicolon or
    a tab; others are ignored. `first` gives the name that is kept for a cell of the first column, None for an
    unknown one, and `terms` preferred terms by what may stand in the second, in lower case. Raises
    UnreadableFile.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    left_out = []
    for line, (one, other) in cells(path, columns):
        known, name = first(one.lower()), terms.get(other.lower())
        if known is None or name is None:
            column, value = (columns[0], one) if known is None else (columns[1], other)
            left_out.append(
                f"line {line}: unknown {column} {value!r}" if value else f"line {line}: no {column}"
            )
        else:
            found[known].add(name)
    return Loaded({name: sorted(terms) for name, terms in sorted(found.items())}, left_out)


def cells(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line of a CSV file as `read` takes it, a missing cell empty. Raises
    UnreadableFile.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{path}: {error if isinstance(error, OSError) else 'not UTF-8'}") from None
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        names = [name.strip().lower() for name in next(rows, [])]
        if not set(columns) <= set(names):
            last = f"{', '.join(columns[:-1])} and {columns[-1]}"
            raise UnreadableFile(f"{path}: the header needs the columns {last}")
        places = [names.index(column) for column in columns]
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, ["".join(row[place : place + 1]).strip() for place in places]
    except csv.Error as error:
        raise UnreadableFile(f"{path}, line {rows.line_num}: {error}") from None
