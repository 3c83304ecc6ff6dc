"""Tables of rules, and the patterns that they make.

The tables are models/data/rules/*.tsv, one for each group of rules. The head of a table says what its kinds
are. A row has a kind and a trigger, a regular expression in lower case in which a space stands for any white
space and a name in braces for any row of that list: the rows with that name as their kind, above in the table
or in shared_lists.tsv, which all tables share. Further columns are notes.

The engine is Python's `re`, which can take more than linear time. Callers search a window of a text that
`readable` has shortened, and the tests hold that every pattern needs linear time for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Self

from models.tables import DATA, read_tsv

FOLDER = DATA / "rules"
SHARED = "shared_lists.tsv"
_LIST = re.compile(r"\{[a-z]\w*\}")
#: White space in a trigger, alone and in brackets; in "(?: ?[:(])" it is an optional space.
_SPACE = re.compile(r" (?![?])|\[[^]]*\]")


def read_rules(
    table: str, folder: Path = FOLDER, lists: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Iterator[tuple[str, str]]:
    """Each kind and trigger in the order of a table, with the alternatives in the place of lists; `lists`:
    further ones, by their names in braces. ValueError where a list has no row above.
    """
    known = {name: list(rows) for name, rows in lists.items()}
    for path in (folder / SHARED, folder / f"{table}.tsv"):
        for kind, trigger, *_ in read_tsv(path, ("kind", "trigger")):
            if missing := [name for name in _LIST.findall(trigger) if name not in known]:
                raise ValueError(f"{path.name}: {trigger!r} names {missing[0]}, which has no row above it")
            whole = _LIST.sub(lambda m: f"(?:{'|'.join(known[m.group()])})", _spaced(trigger))
            if _LIST.fullmatch(kind):
                known.setdefault(kind, []).append(whole)
            else:
                yield kind, whole


def patterns(
    table: str, folder: Path = FOLDER, lists: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> dict[str, re.Pattern[str]]:
    """For each kind of a table what matches any of its triggers, without regard to case, where a dot is any
    character; arguments and errors as of `read_rules`.
    """
    kinds: dict[str, list[str]] = {}
    for kind, trigger in read_rules(table, folder, lists):
        kinds.setdefault(kind, []).append(trigger)
    return {
        kind: re.compile("|".join(triggers), re.IGNORECASE | re.DOTALL) for kind, triggers in kinds.items()
    }


@dataclass(frozen=True)
class Scanner:
    """Finds triggers from left to right without overlap, in a text in lower case."""

    kinds: tuple[str, ...]
    """of the groups of the pattern"""
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, rows: Sequence[tuple[str, str]], marks: str) -> Self:
        """Where several rows begin at the same character, the first one is used. A trigger that begins with a
        letter, a digit or a group begins and ends where words do; others begin as the pattern `marks` says.
        """
        words = _runs([(kind, trigger) for kind, trigger in rows if _is_word(trigger)])
        others = _runs([(kind, trigger) for kind, trigger in rows if not _is_word(trigger)])
        of_words, of_others = ("|".join(f"({triggers})" for _, triggers in runs) for runs in (words, others))
        pattern = rf"(?<![\w'])(?=\w)(?:{of_words})(?!'?\w)|(?={marks})(?:{of_others})"
        return cls(tuple(kind for kind, _ in words + others), re.compile(pattern))

    def __call__(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Kind, start and end of each."""
        for match in self.pattern.finditer(text):
            yield self.kinds[(match.lastindex or 1) - 1], *match.span()


def _runs(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The triggers of each run of rows of one kind."""
    return [(kind, "|".join(row[1] for row in run)) for kind, run in groupby(rows, lambda row: row[0])]


def _is_word(trigger: str) -> bool:
    return trigger[0].isalnum() or trigger.startswith("(?")


def _spaced(trigger: str) -> str:
    return _SPACE.sub(lambda m: r"\s+" if m[0] == " " else m[0].replace(" ", r"\s"), trigger)
