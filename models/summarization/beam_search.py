"""Batched beam search over a decoder that answers one step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Search:
    """How summaries are looked for; `beams` 1 is greedy."""

    beams: int = 4
    length_penalty: float = 1.0
    """the sum of log probabilities is divided by the number of pieces to this power"""
    no_repeat: int = 3
    """no run of so many pieces comes twice; 0: any may"""
    shortest: int = 3
    """pieces before the end"""
    longest: int = 48


class Hypothesis(NamedTuple):
    """Numbers without the end, and the score by which it won."""

    numbers: tuple[int, ...]
    score: float
    log_probability: float


@dataclass(slots=True)
class _Beams:
    """What is looked at for one text."""

    text: int
    said: list[tuple[int, ...]]
    sums: list[float]
    """of log probabilities, of each beam"""
    done: list[Hypothesis]


#: (last numbers (rows,), which rows of the last call they go on from (rows,)) to log probabilities (rows,
#: numbers). The first call has every row; later ones lack those of the texts that are done.
Step = Callable[[Tensor, Tensor], Tensor]


def search(step: Step, texts: int, begin: int, end: int, settings: Search) -> list[list[Hypothesis]]:
    """The hypotheses of each text, best first, at least one and at most `beams`.

    Rows are texts times beams. Equal scores fall to the smaller number of the earlier beam, so that the same
    probabilities always give the same answer. One that reaches `longest` is ended there.
    """
    k = settings.beams
    found: list[list[Hypothesis]] = [[] for _ in range(texts)]
    # Beams begin equal: all but the first must not count.
    going = [_Beams(t, [()] * k, [0.0] + [-math.inf] * (k - 1), []) for t in range(texts)]
    last = torch.full((texts * k,), begin)
    keep = torch.arange(texts * k)
    for length in range(settings.longest + 1):
        logs = step(last, keep).float().cpu().view(len(going), k, -1)
        _forbid(logs, [beams.said for beams in going], end, length, settings)
        totals = torch.tensor([beams.sums for beams in going]).unsqueeze(-1) + logs
        best, place = _top(totals.flatten(1), 2 * k)
        rows, numbers, still = [], [], []
        for i, beams in enumerate(going):
            live = []
            for rank, (total, at) in enumerate(zip(best[i].tolist(), place[i].tolist(), strict=True)):
                beam, number = divmod(at, totals.shape[-1])
                if total == -math.inf:
                    continue
                if number == end:
                    # As in the usual search, an end counts only among the first k.
                    if rank < k:
                        beams.done.append(_finished(beams.said[beam], total, settings))
                else:
                    live.append((total, beam, number))
            live = live[:k] or [(-math.inf, 0, end)]
            live += [(-math.inf, *live[0][1:])] * (k - len(live))
            beams.sums = [total for total, *_ in live]
            beams.said = [(*beams.said[beam], number) for _, beam, number in live]
            if length == settings.longest or _over(beams, length + 1, settings):
                found[beams.text] = _best(beams, settings)
            else:
                still.append(beams)
                rows += [i * k + beam for _, beam, _ in live]
                numbers += [number for *_, number in live]
        going = still
        if not going:
            break
        last, keep = torch.tensor(numbers), torch.tensor(rows)
    return found


def _top(totals: Tensor, wanted: int) -> tuple[Tensor, Tensor]:
    """The largest, equal ones in the order of their places, which `topk` does not promise."""
    values, places = totals.topk(min(wanted, totals.shape[1]), dim=1)
    order = places.argsort(dim=1)
    values, places = values.gather(1, order), places.gather(1, order)
    order = values.argsort(dim=1, descending=True, stable=True)
    return values.gather(1, order), places.gather(1, order)


def _forbid(
    logs: Tensor, said: Sequence[Sequence[tuple[int, ...]]], end: int, length: int, settings: Search
) -> None:
    if length < settings.shortest:
        logs[..., end] = -torch.inf
    if length >= settings.longest:
        over = logs[..., end].clone()
        logs.fill_(-torch.inf)
        logs[..., end] = over
        return
    for t, beams in enumerate(said):
        for b, numbers in enumerate(beams):
            banned = _repeats(numbers, settings.no_repeat)
            if banned:
                logs[t, b, banned] = -torch.inf


def _repeats(numbers: tuple[int, ...], n: int) -> list[int]:
    """What would end a run of n that was there before."""
    if not n or len(numbers) < n:
        return []
    tail = numbers[len(numbers) - n + 1 :]
    return [numbers[i + n - 1] for i in range(len(numbers) - n + 1) if numbers[i : i + n - 1] == tail]


def _finished(numbers: tuple[int, ...], total: float, settings: Search) -> Hypothesis:
    return Hypothesis(numbers, total / (len(numbers) + 1) ** settings.length_penalty, total)


def _over(beams: _Beams, length: int, settings: Search) -> bool:
    """Whether k are done and nothing live can pass the worst of them at its present length."""
    best = max(beams.sums)
    if best == -math.inf:
        return True
    if len(beams.done) < settings.beams:
        return False
    kth = sorted((h.score for h in beams.done), reverse=True)[settings.beams - 1]
    return bool(kth >= best / (length + 1) ** settings.length_penalty)


def _best(beams: _Beams, settings: Search) -> list[Hypothesis]:
    found = beams.done or [
        _finished(n, s, settings) for n, s in zip(beams.said, beams.sums, strict=True) if s > -math.inf
    ]
    return sorted(found or [Hypothesis((), -math.inf, -math.inf)], key=lambda h: -h.score)[: settings.beams]
