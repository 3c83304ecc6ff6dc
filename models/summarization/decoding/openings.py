"""A beam search whose first pieces are restricted to the openings of a kind of question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.summarization.decoding.beam_search import Step

#: Sequences of numbers, one of which a summary must begin with; none: it may begin with any.
Prefixes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Openings:
    """The openings of each kind of question, and when they bind."""

    prefixes: Sequence[Prefixes]
    """of each kind; of one without openings none"""
    threshold: float
    """the probability of the best kind above which its openings are the only ones; 1: they never are"""

    def chosen(self, scores: Tensor) -> list[Prefixes]:
        """The openings that bind each text, by the logits (texts, kinds) of its kind."""
        values, kinds = scores.softmax(-1).max(-1)
        return [
            self.prefixes[kind] if value > self.threshold else ()
            for value, kind in zip(values.tolist(), kinds.tolist(), strict=True)
        ]


class OpenedStep:
    """A step of a search with the openings of each row; behind its opening a hypothesis is free."""

    def __init__(self, step: Step, prefixes: Sequence[Prefixes]) -> None:
        """`prefixes`: of each row of the first call."""
        self._step, self._left, self._begun = step, list(prefixes), False

    def __call__(self, last: Tensor, rows: Tensor) -> Tensor:
        if self._begun:
            before = [self._left[row] for row in rows.tolist()]
            self._left = [_behind(left, n) for left, n in zip(before, last.tolist(), strict=True)]
        self._begun = True
        logs = self._step(last, rows)
        for row, left in enumerate(self._left):
            if left:
                allowed = sorted({numbers[0] for numbers in left})
                only = torch.full_like(logs[row], -torch.inf)
                only[allowed] = logs[row, allowed]
                logs[row] = only
        return logs


def _behind(prefixes: Prefixes, number: int) -> Prefixes:
    """What is left of the openings that begin with this number; none where one of them is complete."""
    rest = tuple(numbers[1:] for numbers in prefixes if numbers[0] == number)
    return rest if all(rest) else ()
