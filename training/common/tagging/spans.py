"""Gold and predicted mentions as spans to be counted, and the dictionary baseline of tagging."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Protocol

from training.common.corpora import GoldText


class Mentioned(Protocol):
    """A mention, gold or predicted."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def label(self) -> str: ...


def mention_spans(mentions: Iterable[Iterable[Mentioned]]) -> list[list[tuple[int, int, str]]]:
    """The mentions of each text as (start, end, label)."""
    return [[(m.start, m.end, m.label) for m in of_text] for of_text in mentions]


def gold_spans(texts: Iterable[GoldText]) -> list[list[tuple[int, int, str]]]:
    """The gold mentions of each text as (start, end, label)."""
    return mention_spans(t.mentions for t in texts)


class DictionaryTagger:
    """The trivial baseline: the longest training mentions, each with its most frequent label."""

    def __init__(self, training: Iterable[GoldText]) -> None:
        seen: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for t in training:
            for m in t.mentions:
                seen[tuple(t.text[m.start : m.end].lower().split())][m.label] += 1
        self._label = {words: counts.most_common(1)[0][0] for words, counts in seen.items()}
        self._longest = max((len(words) for words in self._label), default=0)

    def predict(self, texts: Iterable[str]) -> list[list[tuple[int, int, str]]]:
        """The mentions of each text as (start, end, label)."""
        return [self._tag(text) for text in texts]

    def _tag(self, text: str) -> list[tuple[int, int, str]]:
        tokens = text.split(" ")
        starts = [0]
        for token in tokens:
            starts.append(starts[-1] + len(token) + 1)
        tagged, i = [], 0
        while i < len(tokens):
            for n in range(min(self._longest, len(tokens) - i), 0, -1):
                label = self._label.get(tuple(t.lower() for t in tokens[i : i + n]))
                if label is not None:
                    tagged.append((starts[i], starts[i + n] - 1, label))
                    i += n
                    break
            else:
                i += 1
        return tagged
