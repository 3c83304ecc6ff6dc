"""Batched beam search with any decoder that gives the probabilities of one step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Search:
    """Settings of a beam search; lengths are in pieces."""

    beams: int = 4
    """hypotheses per text; 1: greedy search"""
    length_penalty: float = 1.0
    """the sum of log-probabilities is divided by the length to this power"""
    no_repeat: int = 3
    """n-grams of this length occur at most once in a summary; 0: any n-gram may be repeated"""
    shortest: int = 3
    """without the end"""
    longest: int = 48
    """without the end"""


class Hypothesis(NamedTuple):
    """A finished summary."""

    numbers: tuple[int, ...]
    """without the end"""
    score: float
    """the log-probability with the length penalty applied"""
    log_probability: float


#: From the last number of each row (rows,) and the rows of the previous call that they continue (rows,) to
#: log-probabilities (rows, numbers). The first call has all rows; later ones lack those of finished texts.
Step = Callable[[Tensor, Tensor], Tensor]


@dataclass(slots=True)
class _Beams:
    """The hypotheses of one text."""

    text: int
    sequences: list[tuple[int, ...]]
    """the unfinished ones"""
    sums: list[float]
    """their log-probabilities; minus infinity for one that must not be continued"""
    finished: list[Hypothesis]

    def extend(
        self, continuations: Sequence[tuple[float, int, int]], end: int, settings: Search
    ) -> list[int]:
        """Replaces the unfinished hypotheses by the best of their continuations, given as (log-probability,
        hypothesis, number), best first; returns which hypothesis each new one continues.
        """
        k = settings.beams
        kept = []
        for rank, (total, origin, number) in enumerate(continuations):
            if total == -math.inf:
                continue
            if number != end:
                kept.append((total, origin, number))
            elif rank < k:
                # As usual in beam search, an end counts only among the k best continuations.
                self.finished.append(_finished(self.sequences[origin], total, settings))
        kept = kept[:k] or [(-math.inf, 0, end)]
        kept += [(-math.inf, *kept[0][1:])] * (k - len(kept))
        self.sums = [total for total, *_ in kept]
        self.sequences = [(*self.sequences[origin], number) for _, origin, number in kept]
        return [origin for _, origin, _ in kept]

    def is_finished(self, length: int, settings: Search) -> bool:
        """Whether there are k finished hypotheses and no unfinished one, all of `length`, scores more than
        the worst of the best k.
        """
        best = max(self.sums)
        if best == -math.inf:
            return True
        if len(self.finished) < settings.beams:
            return False
        kth = sorted((h.score for h in self.finished), reverse=True)[settings.beams - 1]
        return bool(kth >= best / (length + 1) ** settings.length_penalty)

    def best(self, settings: Search) -> list[Hypothesis]:
        """At most k hypotheses, best first; unfinished ones only where none is finished."""
        hypotheses = self.finished or [
            _finished(numbers, total, settings)
            for numbers, total in zip(self.sequences, self.sums, strict=True)
            if total > -math.inf
        ]
        ordered = sorted(hypotheses, key=lambda h: -h.score)
        return ordered[: settings.beams] or [Hypothesis((), -math.inf, -math.inf)]


def search(step: Step, texts: int, begin: int, end: int, settings: Search) -> list[list[Hypothesis]]:
    """The hypotheses of each text, best first, at least one and at most `beams`.

    The rows of a step are `beams` hypotheses of each text. Of equal scores the one of the earlier hypothesis
    and the smaller number is preferred, so that the result is deterministic. A hypothesis of `longest` pieces
    is ended there.
    """
    k = settings.beams
    results: list[list[Hypothesis]] = [[] for _ in range(texts)]
    # All hypotheses are equal at the beginning: only the first may be continued.
    active = [_Beams(t, [()] * k, [0.0] + [-math.inf] * (k - 1), []) for t in range(texts)]
    last, rows = torch.full((texts * k,), begin), torch.arange(texts * k)
    for length in range(settings.longest + 1):
        logs = step(last, rows).float().cpu().view(len(active), k, -1)
        _forbid(logs, [beams.sequences for beams in active], end, length, settings)
        totals = torch.tensor([beams.sums for beams in active]).unsqueeze(-1) + logs
        remaining: list[_Beams] = []
        next_rows: list[int] = []
        for i, (beams, continuations) in enumerate(zip(active, _best_continuations(totals), strict=True)):
            origins = beams.extend(continuations, end, settings)
            if length == settings.longest or beams.is_finished(length + 1, settings):
                results[beams.text] = beams.best(settings)
            else:
                remaining.append(beams)
                next_rows += [i * k + origin for origin in origins]
        active = remaining
        if not active:
            break
        last = torch.tensor([numbers[-1] for beams in active for numbers in beams.sequences])
        rows = torch.tensor(next_rows)
    return results


def _best_continuations(totals: Tensor) -> list[list[tuple[float, int, int]]]:
    """For each text the 2k largest of (texts, k, numbers) as (value, hypothesis, number); equal values in the
    order of their positions, which `topk` does not guarantee.
    """
    _, k, size = totals.shape
    values, positions = totals.flatten(1).topk(min(2 * k, k * size), dim=1)
    order = positions.argsort(dim=1)
    values, positions = values.gather(1, order), positions.gather(1, order)
    order = values.argsort(dim=1, descending=True, stable=True)
    rows = zip(values.gather(1, order).tolist(), positions.gather(1, order).tolist(), strict=True)
    return [[(v, *divmod(p, size)) for v, p in zip(*row, strict=True)] for row in rows]


def _forbid(
    logs: Tensor, sequences: Sequence[Sequence[tuple[int, ...]]], end: int, length: int, settings: Search
) -> None:
    """Sets log-probabilities (texts, k, numbers) to minus infinity in place: an end before `shortest`,
    anything else at `longest`, repeated n-grams.
    """
    if length < settings.shortest:
        logs[..., end] = -torch.inf
    if length >= settings.longest:
        ends = logs[..., end].clone()
        logs.fill_(-torch.inf)
        logs[..., end] = ends
        return
    for text, own in enumerate(sequences):
        for hypothesis, numbers in enumerate(own):
            banned = _repeats(numbers, settings.no_repeat)
            if banned:
                logs[text, hypothesis, banned] = -torch.inf


def _repeats(numbers: tuple[int, ...], n: int) -> list[int]:
    """The numbers that would complete an n-gram that is already there."""
    if not n or len(numbers) < n:
        return []
    tail = numbers[len(numbers) - n + 1 :]
    return [numbers[i + n - 1] for i in range(len(numbers) - n + 1) if numbers[i : i + n - 1] == tail]


def _finished(numbers: tuple[int, ...], total: float, settings: Search) -> Hypothesis:
    return Hypothesis(numbers, total / (len(numbers) + 1) ** settings.length_penalty, total)
