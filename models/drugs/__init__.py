"""The lexicon of drug names: generic names, brands and common misspellings; beside it nicknames, classes of
drugs, what drugs are taken for, and which of several drugs a post blames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Self

from models.lexicon import NameLexicon, shared
from models.once import once
from models.rules.notation import patterns
from models.tables import DATA, read_tsv
from models.types import Span
from models.vocabulary import common_words

BUNDLED = DATA / "drugs.tsv"
#: The file of a release with the names that it was made with.
RELEASE_FILE = "drugs.tsv"
_SAYS = patterns("drug_names")
#: Characters of the longest name that is looked at as a combination, and letters of the shortest beginning of
#: a drug's name that stands for it there ("amoxicillin/clav").
_LONGEST, _SHORTEST = 120, 3


class DrugLexicon(NameLexicon):
    """Drug names; the canonical name of each is its nonproprietary name."""

    def __init__(self, canonical_names: Mapping[str, str]) -> None:
        super().__init__(canonical_names)
        self._generics = frozenset(canonical_names.values())
        self._combinations = {
            frozenset(generic.split("/")): generic for generic in canonical_names.values() if "/" in generic
        }
        drugs = {*self._combinations.values()}.union(*self._combinations)
        parts = (p for name, generic in canonical_names.items() if generic in drugs for p in _parts(name))
        self._beginnings = {part[:_SHORTEST].lower() for part in (*parts, *drugs)}

    @classmethod
    def load(cls, path: Path = BUNDLED) -> Self:
        """Reads a tab-separated file whose header begins with name, generic; else ValueError. Files of the
        same content share a lexicon.
        """
        return shared(path, cls._read)

    @classmethod
    def _read(cls, path: Path) -> Self:
        return cls({row[0]: row[1] for row in read_tsv(path, ("name", "generic"))})

    def generic(self, name: str) -> str | None:
        """The nonproprietary name of a drug as written in a text, or None when it is not in the lexicon. A
        release form or a salt at its end ("Paxil CR", "diltiazem HCl") does not matter, nor do the order of
        the drugs of a combination and what is written between them.
        """
        return self._of_one(name.strip()) or self._combination(name.strip())

    def is_generic(self, name: str) -> bool:
        """Whether this is how the lexicon writes a nonproprietary name."""
        return name in self._generics

    def _of_one(self, name: str) -> str | None:
        plain = (name, _SAYS["form"].sub("", name), _SAYS["salt"].sub("", name))
        return next(filter(None, map(self.canonical, plain)), None)

    def _combination(self, name: str) -> str | None:
        """The combination of the lexicon that has the drugs of the name; the only one, where the name has
        but the beginnings of theirs ("pip/tazo").
        """
        parts = _parts(name) if len(name) <= _LONGEST else []
        if len(parts) < 2:  # noqa: PLR2004  a combination
            return None
        if whole := next(filter(None, (self.canonical(mark.join(parts)) for mark in "-/+ ")), None):
            return whole
        named = [self.canonical(part) or part.strip().lower() for part in parts]
        if whole := self._combinations.get(frozenset(named)):
            return whole
        if min(map(len, named)) < _SHORTEST:
            return None
        fitting = [generic for drugs, generic in self._combinations.items() if _begin(named, drugs)]
        return fitting[0] if len(fitting) == 1 else None

    def joined(self, text: str) -> Iterator[tuple[Span, str]]:
        """The drugs in a text that are written in two joined words of which one is no drug alone
        ("amoxicillin/clav", "pip/tazo", "TMP/SMX", "Depo-Provera"), with their names, in order. Two words of
        English ("met/sit") are none.
        """
        for pair in _SAYS["pair"].finditer(text) if _SAYS["mark"].search(text) else ():
            parts = pair.group("first", "second")
            if not all(part[:_SHORTEST].lower() in self._beginnings for part in parts):
                continue
            if all(map(self.canonical, parts)) or all(part.lower() in common_words() for part in parts):
                continue
            if generic := self.generic(pair.group()):
                yield Span(*pair.span()), generic

    def generics(self, name: str) -> tuple[str, ...]:
        """The nonproprietary names of what a source states as the drug: of the whole name, else of all names
        in it ("Effexor XR 75 mg", "codeine / acetaminophen"), else the name itself in lower case.
        """
        whole = self._of_one(name.strip())
        inside = [whole] if whole else [generic for _, generic in self.find(name)]
        if len(inside) < 2 and (combined := self._combination(name.strip())):  # noqa: PLR2004  a combination
            inside = [combined]
        return tuple(dict.fromkeys(inside)) or (" ".join(name.lower().split()),)


def _parts(name: str) -> list[str]:
    """The drugs of a combination as it is written."""
    return _SAYS["combined"].split(name)


def _begin(parts: Sequence[str], drugs: Set[str]) -> bool:
    """Whether each part is the beginning of another one of the drugs, and they are all."""
    begun = [{drug for drug in drugs if drug.startswith(part)} for part in parts]
    return len(parts) == len(drugs) == len(set().union(*begun)) and all(len(own) == 1 for own in begun)


@once
def bundled_lexicon() -> DrugLexicon:
    """The bundled lexicon; nothing changes one. `load` reads its file at every call."""
    return DrugLexicon.load()
