"""Scores with their definitions; every function returns plain numbers and says in its docstring what it
counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from training.readers import GoldText


class F1(NamedTuple):
    precision: float
    recall: float
    f1: float


def f1(true_positives: int, predicted: int, gold: int) -> F1:
    """Precision, recall and their harmonic mean; 0 where nothing was predicted or nothing is gold."""
    precision = true_positives / predicted if predicted else 0.0
    recall = true_positives / gold if gold else 0.0
    return F1(precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0)


class SpanScores(NamedTuple):
    micro: F1
    macro_f1: float
    by_label: dict[str, F1]


def strict_spans(
    predicted: Sequence[Iterable[tuple[int, int, str]]],
    gold: Sequence[Iterable[tuple[int, int, str]]],
    labels: Iterable[str],
) -> SpanScores:
    """Exact boundaries and label. Spans of other labels than `labels` are left out on both sides; a span
    counts once a text.
    """
    wanted = sorted(labels)
    tp: Counter[str] = Counter()
    n_predicted: Counter[str] = Counter()
    n_gold: Counter[str] = Counter()
    for p, g in zip(predicted, gold, strict=True):
        ps, gs = {s for s in p if s[2] in wanted}, {s for s in g if s[2] in wanted}
        tp.update(s[2] for s in ps & gs)
        n_predicted.update(s[2] for s in ps)
        n_gold.update(s[2] for s in gs)
    by_label = {label: f1(tp[label], n_predicted[label], n_gold[label]) for label in wanted}
    micro = f1(tp.total(), n_predicted.total(), n_gold.total())
    return SpanScores(micro, sum(s.f1 for s in by_label.values()) / len(wanted), by_label)


def gold_spans(texts: Sequence[GoldText]) -> list[list[tuple[int, int, str]]]:
    return [[(m.start, m.end, m.label) for m in t.mentions] for t in texts]


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
