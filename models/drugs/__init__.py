"""Drug names in running text: longest match against a lexicon of generic, brand and common misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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


def read_tsv(path: Path, columns: tuple[str, ...]) -> Iterable[list[str]]:
    """Rows of a tab-separated file whose header begins with `columns`; raises ValueError naming the line that
    does not fit.
    """
    with path.open(encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split("\t")
        if tuple(header[: len(columns)]) != columns:
            raise ValueError(f"{path.name}: the header must begin with {', '.join(columns)}")
        for number, line in enumerate(file, 2):
            row = line.rstrip("\n").split("\t")
            if len(row) < len(columns) or not all(row[: len(columns)]):
                raise ValueError(f"{path.name}, line {number}: {len(columns)} filled columns are wanted")
            yield row


def _tokens(name: str) -> list[str]:
    return [name[s.start : s.end].lower() for s in words(name)]
