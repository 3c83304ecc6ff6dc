"""Drug names in running text: longest match against a lexicon of generic, brand and common misspelt names."""

from __future__ import annotations

from pathlib import Path

from models.tables import read_tsv
from models.text import words
from models.types import Span

BUNDLED = Path(__file__).with_name("pvstream.tsv")


class DrugLexicon:
    """Names (lower case, word by word) and the nonproprietary name that each stands for."""

    def __init__(self, generics: dict[str, str]) -> None:
        self._generics = {tuple(_tokens(name)): generic for name, generic in generics.items()}
        self._longest = max((len(key) for key in self._generics), default=0)

    @classmethod
    def load(cls, path: Path = BUNDLED) -> DrugLexicon:
        """Reads tab-separated `name`, `generic`, ... with a header line."""
        return cls({row[0]: row[1] for row in read_tsv(path, ("name", "generic"))})

    def __len__(self) -> int:
        return len(self._generics)

    def generic(self, name: str) -> str | None:
        """The nonproprietary name of a drug as written, or None when the lexicon lacks it."""
        return self._generics.get(tuple(_tokens(name)))

    def find(self, text: str) -> list[tuple[Span, str]]:
        """Every drug name in the text, longest first from the left, with its nonproprietary name."""
        spans = words(text)
        tokens = [text[s.start : s.end].lower() for s in spans]
        found: list[tuple[Span, str]] = []
        i = 0
        while i < len(tokens):
            for n in range(min(self._longest, len(tokens) - i), 0, -1):
                generic = self._generics.get(tuple(tokens[i : i + n]))
                if generic is not None:
                    found.append((Span(spans[i].start, spans[i + n - 1].end), generic))
                    i += n
                    break
            else:
                i += 1
        return found


def _tokens(name: str) -> list[str]:
    return [name[s.start : s.end].lower() for s in words(name)]
