"""Finds drug names in text: longest match with a lexicon of generic, brand and common misspelt names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from models.tables import read_tsv
from models.text import word_texts, words
from models.types import Span

BUNDLED = Path(__file__).with_name("pvstream.tsv")
#: The release form that a brand's name ends with, often without a space ("effexorXR").
_FORM = re.compile(r"[\s-]*(?:xr|xl|sr|er|cr|la|ir|dr|odt)$", re.IGNORECASE)


class DrugLexicon:
    """Drug names with the nonproprietary name of each; compared word by word, without case."""

    def __init__(self, generics: dict[str, str]) -> None:
        """`generics`: nonproprietary name by drug name."""
        self._generics = {_key(name): generic for name, generic in generics.items()}
        # Of each word that a name begins with the words of the longest such name.
        self._longest: dict[str, int] = {}
        for key in self._generics:
            if key:
                self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))

    @classmethod
    def load(cls, path: Path = BUNDLED) -> DrugLexicon:
        """Reads a tab-separated file whose header begins with name, generic; else ValueError."""
        return cls({row[0]: row[1] for row in read_tsv(path, ("name", "generic"))})

    def __len__(self) -> int:
        return len(self._generics)

    def generic(self, name: str) -> str | None:
        """The nonproprietary name of a drug as written in a text, or None when it is not in the lexicon."""
        return self._generics.get(_key(name))

    def generics(self, name: str) -> tuple[str, ...]:
        """The nonproprietary names of what a source states as the drug: of the whole name, else of all names
        in it ("Effexor XR 75 mg", "codeine / acetaminophen"), else the name itself in lower case. A release
        form at its end does not matter.
        """
        whole = self.generic(name) or self.generic(_FORM.sub("", name.strip()))
        inside = [whole] if whole else [generic for _, generic in self.find(name)]
        return tuple(dict.fromkeys(inside)) or (" ".join(name.lower().split()),)

    def find(self, text: str) -> list[tuple[Span, str]]:
        """The drug names in the text with their nonproprietary names, from left to right without overlap; the
        longest where several begin at the same word.
        """
        return self.among(text, words(text))

    def among(self, text: str, spans: Sequence[Span]) -> list[tuple[Span, str]]:
        """The same among consecutive words of a text."""
        tokens = [text[s.start : s.end].lower() for s in spans]
        matches: list[tuple[Span, str]] = []
        after = 0
        for i in [i for i, token in enumerate(tokens) if token in self._longest]:
            if i < after:
                continue
            for n in range(min(self._longest[tokens[i]], len(tokens) - i), 0, -1):
                generic = self._generics.get(tuple(tokens[i : i + n]))
                if generic is not None:
                    matches.append((Span(spans[i].start, spans[i + n - 1].end), generic))
                    after = i + n
                    break
        return matches


def _key(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in word_texts(name))
