"""Beam search compared with an exhaustive search, and its rules."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from models.summarization.decoding.beam_search import Hypothesis, Search, Step, search

END = 0


def chain(tables: Tensor) -> Step:
    """A decoder whose next number depends on the last one only: a Markov chain with `tables` (rows,
    numbers + 1, numbers) of logits; the last line of a table is for the first number.
    """
    first, row = True, torch.arange(len(tables))

    def step(last: Tensor, rows: Tensor) -> Tensor:
        nonlocal first, row
        lines = torch.full_like(last, tables.shape[1] - 1) if first else last
        first, row = False, row[rows]
        return tables[row, lines].log_softmax(-1)

    return step


def random_tables(texts: int, numbers: int, seed: int) -> Tensor:
    return torch.randn(texts, numbers + 1, numbers, generator=torch.Generator().manual_seed(seed)) * 2


def all_summaries(table: Tensor, settings: Search) -> list[tuple[tuple[int, ...], float]]:
    """All summaries that the settings allow with their scores, best first."""
    logs = table.log_softmax(-1)
    summaries = []
    for length in range(settings.shortest, settings.longest + 1):
        for numbers in product(range(1, table.shape[1]), repeat=length):
            ngrams = [numbers[i : i + settings.no_repeat] for i in range(length - settings.no_repeat + 1)]
            if settings.no_repeat and len(set(ngrams)) < len(ngrams):
                continue
            line, total = table.shape[0] - 1, 0.0
            for number in (*numbers, END):
                total += float(logs[line, number])
                line = number
            summaries.append((numbers, total / (length + 1) ** settings.length_penalty))
    return sorted(summaries, key=lambda pair: -pair[1])


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("no_repeat", [0, 2])
def test_a_wide_beam_finds_the_best_of_all_summaries(penalty: float, no_repeat: int) -> None:
    settings = Search(beams=64, length_penalty=penalty, no_repeat=no_repeat, shortest=1, longest=4)
    for seed in range(4):
        table = random_tables(1, 4, seed)
        (hypotheses,) = search(chain(table.expand(64, -1, -1)), 1, END, END, settings)
        numbers, score = all_summaries(table[0], settings)[0]
        assert hypotheses[0].numbers == numbers
        assert hypotheses[0].score == pytest.approx(score, abs=1e-5)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


def test_one_beam_chooses_the_most_probable_number_at_each_step() -> None:
    table = torch.full((1, 5, 4), -9.0)
    for line, number in ((4, 2), (2, 3), (3, 1), (1, END)):
        table[0, line, number] = 3.0
    ((hypothesis,),) = search(chain(table), 1, END, END, Search(beams=1, shortest=0, longest=9))
    assert hypothesis.numbers == (2, 3, 1)
    assert hypothesis.log_probability == pytest.approx(hypothesis.score * 4)


def test_hypotheses_do_not_depend_on_the_other_texts() -> None:
    settings = Search(beams=3, shortest=1, longest=6)
    table = random_tables(5, 6, 11)
    together = search(chain(table.repeat_interleave(3, 0)), 5, END, END, settings)
    alone = [
        search(chain(table[i : i + 1].repeat_interleave(3, 0)), 1, END, END, settings)[0] for i in range(5)
    ]
    assert together == alone


def test_finished_texts_are_removed_from_the_batch() -> None:
    settings = Search(beams=2, shortest=0, longest=12)
    table = random_tables(6, 5, 3)
    # The texts end at different steps, and not in their order.
    table[:, :, END] = torch.tensor([2.0, 8.0, 0.0, 5.0, -3.0, 1.0]).unsqueeze(1)
    inner, batch_sizes = chain(table.repeat_interleave(2, 0)), []

    def step(last: Tensor, rows: Tensor) -> Tensor:
        batch_sizes.append(len(last))
        return inner(last, rows)

    together = search(step, 6, END, END, settings)
    assert len(set(batch_sizes)) > 2 and batch_sizes == sorted(batch_sizes, reverse=True)
    alone = [
        search(chain(table[i : i + 1].repeat_interleave(2, 0)), 1, END, END, settings)[0] for i in range(6)
    ]
    assert together == alone


def test_a_summary_is_neither_shorter_nor_longer_than_allowed() -> None:
    probable_end = torch.zeros(2, 5, 4)
    probable_end[..., END] = 9.0
    (hypotheses,) = search(chain(probable_end), 1, END, END, Search(beams=2, shortest=3, longest=6))
    assert all(3 <= len(h.numbers) <= 6 for h in hypotheses)
    improbable_end = torch.zeros(2, 5, 4)
    improbable_end[..., END] = -40.0
    settings = Search(beams=2, shortest=1, longest=6, no_repeat=0)
    (hypotheses,) = search(chain(improbable_end), 1, END, END, settings)
    assert {len(h.numbers) for h in hypotheses} == {6}


def test_no_ngram_is_repeated() -> None:
    table = torch.full((1, 4, 3), -3.0)
    table[0, :, 1], table[0, :, 2] = 3.0, 0.0
    settings = Search(beams=1, shortest=0, longest=12, no_repeat=2)
    ((hypothesis,),) = search(chain(table), 1, END, END, settings)
    pairs = list(pairwise(hypothesis.numbers))
    assert len(pairs) == len(set(pairs)) > 1


def test_where_every_number_is_impossible_the_summary_is_empty() -> None:
    def impossible(last: Tensor, rows: Tensor) -> Tensor:
        return torch.full((len(last), 3), -torch.inf)

    assert search(impossible, 1, END, END, Search(beams=2)) == [[Hypothesis((), -math.inf, -math.inf)]]
