"""Beam search against looking at everything, and its rules."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from models.summarization.beam_search import Hypothesis, Search, Step, search

END = 0


def chain(tables: Tensor) -> Step:
    """A decoder that looks at the last number only; `tables` (rows, numbers + 1, numbers), the last line is
    the beginning.
    """
    first, rows = True, torch.arange(len(tables))

    def step(last: Tensor, keep: Tensor) -> Tensor:
        nonlocal first, rows
        lines = torch.full_like(last, tables.shape[1] - 1) if first else last
        first, rows = False, rows[keep]
        return tables[rows, lines].log_softmax(-1)

    return step


def tables(texts: int, numbers: int, seed: int) -> Tensor:
    return torch.randn(texts, numbers + 1, numbers, generator=torch.Generator().manual_seed(seed)) * 2


def every(table: Tensor, settings: Search) -> list[tuple[tuple[int, ...], float]]:
    """All summaries that the rules allow, best first."""
    logs = table.log_softmax(-1)
    found = []
    for length in range(settings.shortest, settings.longest + 1):
        for numbers in product(range(1, table.shape[1]), repeat=length):
            runs = [numbers[i : i + settings.no_repeat] for i in range(length - settings.no_repeat + 1)]
            if settings.no_repeat and len(set(runs)) < len(runs):
                continue
            line, total = table.shape[0] - 1, 0.0
            for number in (*numbers, END):
                total += float(logs[line, number])
                line = number
            found.append((numbers, total / (length + 1) ** settings.length_penalty))
    return sorted(found, key=lambda pair: -pair[1])


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("no_repeat", [0, 2])
def test_a_wide_beam_finds_what_looking_at_everything_finds(penalty: float, no_repeat: int) -> None:
    settings = Search(beams=64, length_penalty=penalty, no_repeat=no_repeat, shortest=1, longest=4)
    for seed in range(4):
        table = tables(1, 4, seed)
        (found,) = search(chain(table.expand(64, -1, -1)), 1, END, END, settings)
        wanted = every(table[0], settings)
        assert found[0].numbers == wanted[0][0]
        assert found[0].score == pytest.approx(wanted[0][1], abs=1e-5)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_one_beam_takes_the_likeliest_number_each_time() -> None:
    table = torch.full((1, 5, 4), -9.0)
    for line, number in ((4, 2), (2, 3), (3, 1), (1, END)):
        table[0, line, number] = 3.0
    (found,) = search(chain(table), 1, END, END, Search(beams=1, shortest=0, longest=9))
    assert [h.numbers for h in found] == [(2, 3, 1)]
    assert found[0].log_probability == pytest.approx(found[0].score * 4)


def test_texts_do_not_mix() -> None:
    settings = Search(beams=3, shortest=1, longest=6)
    table = tables(5, 6, 11)
    together = search(chain(table.repeat_interleave(3, 0)), 5, END, END, settings)
    alone = [
        search(chain(table[i : i + 1].repeat_interleave(3, 0)), 1, END, END, settings)[0] for i in range(5)
    ]
    assert together == alone


def test_texts_that_are_done_leave_the_search() -> None:
    settings = Search(beams=2, shortest=0, longest=12)
    table = tables(6, 5, 3)
    # Each ends a little later than the one before it; the first is not the one that leaves first.
    table[:, :, END] = torch.tensor([2.0, 8.0, 0.0, 5.0, -3.0, 1.0]).unsqueeze(1)
    inner, seen = chain(table.repeat_interleave(2, 0)), []

    def step(last: Tensor, keep: Tensor) -> Tensor:
        seen.append(len(last))
        return inner(last, keep)

    together = search(step, 6, END, END, settings)
    assert len(set(seen)) > 2 and seen == sorted(seen, reverse=True)
    alone = [
        search(chain(table[i : i + 1].repeat_interleave(2, 0)), 1, END, END, settings)[0] for i in range(6)
    ]
    assert together == alone


def test_a_summary_is_neither_shorter_nor_longer_than_is_allowed() -> None:
    eager = torch.zeros(2, 5, 4)
    eager[..., END] = 9.0
    (found,) = search(chain(eager), 1, END, END, Search(beams=2, shortest=3, longest=6))
    assert all(3 <= len(h.numbers) <= 6 for h in found)
    endless = torch.zeros(2, 5, 4)
    endless[..., END] = -40.0
    (found,) = search(chain(endless), 1, END, END, Search(beams=2, shortest=1, longest=6, no_repeat=0))
    assert {len(h.numbers) for h in found} == {6}


def test_no_run_comes_twice() -> None:
    table = torch.full((1, 4, 3), -3.0)
    table[0, :, 1], table[0, :, 2] = 3.0, 0.0
    (found,) = search(chain(table), 1, END, END, Search(beams=1, shortest=0, longest=12, no_repeat=2))
    numbers = found[0].numbers
    pairs = list(pairwise(numbers))
    assert len(pairs) == len(set(pairs)) > 1


def test_a_text_that_nothing_can_be_said_of_has_an_empty_summary() -> None:
    def nothing(last: Tensor, keep: Tensor) -> Tensor:
        return torch.full((len(last), 3), -torch.inf)

    assert search(nothing, 1, END, END, Search(beams=2)) == [[Hypothesis((), -math.inf, -math.inf)]]
