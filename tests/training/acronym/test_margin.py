"""The margin from which on an acronym is expanded."""

from __future__ import annotations

import pytest
import torch

from models.acronym.prototypes import Mixture
from models.types import Span
from training.acronym.margin import chosen_margin
from training.acronym.prototypes import SOURCE_WEIGHTS, RowScores
from training.evaluation.acronym import Row

ROW = Row("PD", Span(0, 2), ("a", "b"), "a")
MIXTURE = Mixture(0, 1, 0)


def scored(*leads: float) -> list[RowScores]:
    """Rows in which the right long form is ahead of the other by so much before the softmax."""
    zero = torch.zeros(2)
    return [RowScores(ROW, zero, torch.tensor([lead, 0.0]), zero, zero, zero > 0) for lead in leads]


def test_the_smallest_margin_with_the_wanted_accuracy_is_chosen_over_all_sources_alike() -> None:
    # Softmax margins are tanh(lead / 2): 0.46, 0.76, and for the wrong ones 0.24 and 0.10.
    margin = chosen_margin({"one": scored(1, 2, -0.5, -0.2), "other": scored(2)}, MIXTURE)
    # From 0.12 on 2 of 3 are right, with the other source 0.83 on the average; from 0.26 on all are.
    assert margin == pytest.approx((0.26, 0.75, 1.0))
    assert chosen_margin({"one": scored(1, 2)}, MIXTURE) == (0.0, 1.0, 1.0)


def test_without_a_margin_that_is_good_enough_the_best_one_is_chosen() -> None:
    margin = chosen_margin({"one": scored(1, -3, -0.5)}, MIXTURE)
    assert margin.accuracy == pytest.approx(1 / 2)
    assert margin.margin == pytest.approx(0.26)


def test_rows_of_senses_that_no_corpus_shows_count_less() -> None:
    margin = chosen_margin({"one": scored(1), "unseen": scored(-1)}, MIXTURE)
    assert margin == pytest.approx((0.0, 1.0, 1 / (1 + SOURCE_WEIGHTS["unseen"])))
