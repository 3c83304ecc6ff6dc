"""Batched beam search over a decoder that answers one step at a time."""

from __future__ import annotations

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


#: (last numbers (rows,), rows to keep (rows,)) to log probabilities (rows, numbers); what was said before
#: comes from the rows kept. The first call keeps every row.
Step = Callable[[Tensor, Tensor], Tensor]


def search(step: Step, texts: int, begin: int, end: int, settings: Search) -> list[list[Hypothesis]]:
    """The hypotheses of each text, best first, at least one and at most `beams`.

    Rows are texts times beams. Equal scores fall to the smaller number of the earlier beam, so that the same
    probabilities always give the same answer. One that reaches `longest` is ended there.
    """
    k = settings.beams
    said: list[list[tuple[int, ...]]] = [[()] * k for _ in range(texts)]
    # Beams begin equal: all but the first must not count.
    sums = torch.full((texts, k), -torch.inf)
    sums[:, 0] = 0.0
    done: list[list[Hypothesis]] = [[] for _ in range(texts)]
    last = torch.full((texts * k,), begin)
    keep = torch.arange(texts * k)
    for length in range(settings.longest + 1):
        logs = step(last, keep).float().cpu().view(texts, k, -1)
        _forbid(logs, said, end, length, settings)
        totals = sums.unsqueeze(-1) + logs
        width = totals.shape[-1]
        best, place = _top(totals.flatten(1), 2 * k)
        rows, numbers = [], []
        for t in range(texts):
            live = []
            for rank, (total, at) in enumerate(zip(best[t].tolist(), place[t].tolist(), strict=True)):
                beam, number = divmod(at, width)
                if total == -torch.inf:
                    continue
                if number == end:
                    # As in the usual search, an end counts only among the first k.
                    if rank < k:
                        done[t].append(_finished(said[t][beam], total, settings))
                else:
                    live.append((total, beam, number))
            live = live[:k] or [(-torch.inf, 0, end)]
            live += [(-torch.inf, *live[0][1:])] * (k - len(live))
            sums[t] = torch.tensor([total for total, *_ in live])
            said[t] = [(*said[t][beam], number) for _, beam, number in live]
            rows += [t * k + beam for _, beam, _ in live]
            numbers += [number for *_, number in live]
        if all(_over(d, s, length + 1, settings) for d, s in zip(done, sums, strict=True)):
            break
        last, keep = torch.tensor(numbers), torch.tensor(rows)
    return [_best(d, s, t, settings) for d, s, t in zip(done, said, sums, strict=True)]


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


def _over(done: Sequence[Hypothesis], live: Tensor, length: int, settings: Search) -> bool:
    """Whether k are done and nothing live can pass the worst of them, however long it becomes."""
    best = float(live.max())
    if best == -torch.inf:
        return True
    if len(done) < settings.beams:
        return False
    longest = settings.longest + 1 if settings.length_penalty > 0 else length + 1
    kth = sorted((h.score for h in done), reverse=True)[settings.beams - 1]
    return bool(kth >= best / longest**settings.length_penalty)


def _best(
    done: list[Hypothesis], said: Sequence[tuple[int, ...]], live: Tensor, settings: Search
) -> list[Hypothesis]:
    found = done or [
        _finished(n, s, settings) for n, s in zip(said, live.tolist(), strict=True) if s > -torch.inf
    ]
    return sorted(found or [Hypothesis((), -torch.inf, -torch.inf)], key=lambda h: -h.score)[: settings.beams]
