"""Gold and predicted mentions as spans to be counted, and the trivial tagger to compare with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from models.drugs import DrugLexicon
from models.ner.decoding import OUTSIDE
from models.types import DRUG, Span
from training.common.corpora import GoldText


def word_tags(gold: GoldText, spans: Sequence[Span], lexicon: DrugLexicon | None) -> list[str]:
    """B, I and O of each word. Of overlapping mentions the longest is kept; a corpus without drugs gets the
    lexicon's.
    """
    tags = [OUTSIDE] * len(spans)
    wanted = [(m.start, m.end, m.label) for m in sorted(gold.mentions, key=lambda m: m.start - m.end)]
    if lexicon is not None:
        wanted += [(s.start, s.end, DRUG) for s, _ in lexicon.find(gold.text)]
    for start, end, label in wanted:
        inside = [i for i, s in enumerate(spans) if start <= s.start and s.end <= end]
        if inside and all(tags[i] == OUTSIDE for i in inside):
            for i in inside:
                tags[i] = ("B-" if i == inside[0] else "I-") + label
    return tags


class Mentioned(Protocol):
    """A mention, gold or predicted."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def label(self) -> str: ...


def mention_spans(mentions: Iterable[Iterable[Mentioned]]) -> list[list[tuple[int, int, str]]]:
    """The mentions of each text as spans to be counted."""
    return [[(m.start, m.end, m.label) for m in found] for found in mentions]


def gold_spans(texts: Iterable[GoldText]) -> list[list[tuple[int, int, str]]]:
    return mention_spans(t.mentions for t in texts)


class DictionaryTagger:
    """The trivial baseline of tagging: the longest string that was a mention in training, with its commonest
    label there.
    """

    def __init__(self, training: Iterable[GoldText]) -> None:
        seen: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for t in training:
            for m in t.mentions:
                seen[tuple(t.text[m.start : m.end].lower().split())][m.label] += 1
        self._label = {words: counts.most_common(1)[0][0] for words, counts in seen.items()}
        self._longest = max((len(words) for words in self._label), default=0)

    def predict(self, texts: Iterable[str]) -> list[list[tuple[int, int, str]]]:
        return [self._tag(text) for text in texts]

    def _tag(self, text: str) -> list[tuple[int, int, str]]:
        tokens = text.split(" ")
        starts = [0]
        for token in tokens:
            starts.append(starts[-1] + len(token) + 1)
        found, i = [], 0
        while i < len(tokens):
            for n in range(min(self._longest, len(tokens) - i), 0, -1):
                label = self._label.get(tuple(t.lower() for t in tokens[i : i + n]))
                if label is not None:
                    found.append((starts[i], starts[i + n] - 1, label))
                    i += n
                    break
            else:
                i += 1
        return found
