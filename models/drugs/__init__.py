"""The lexicon of drug names: generic names, brands and common misspellings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from models.lexicon import NameLexicon, shared
from models.tables import read_tsv

BUNDLED = Path(__file__).with_name("pvstream.tsv")
#: The release form that a brand's name ends with, often without a space ("effexorXR"). Looked for only where
#: a run of spaces begins: a long one would need quadratic time.
_FORM = re.compile(r"(?<![\s-])[\s-]*(?:xr|xl|sr|er|cr|la|ir|dr|odt)$", re.IGNORECASE)


class DrugLexicon(NameLexicon):
    """Drug names; the canonical name of each is its nonproprietary name."""

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
        release form at its end ("Paxil CR") does not matter.
        """
        return self.canonical(name) or self.canonical(_FORM.sub("", name.strip()))

    def generics(self, name: str) -> tuple[str, ...]:
        """The nonproprietary names of what a source states as the drug: of the whole name, else of all names
        in it ("Effexor XR 75 mg", "codeine / acetaminophen"), else the name itself in lower case.
        """
        whole = self.generic(name)
        inside = [whole] if whole else [generic for _, generic in self.find(name)]
        return tuple(dict.fromkeys(inside)) or (" ".join(name.lower().split()),)
