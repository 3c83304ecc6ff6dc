"""The loss of the pointer decoder."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from models.summarization.decoding import pointer_decoder


def probabilities() -> Tensor:
    return torch.tensor([[[0.5, 0.2, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4], [0.25] * 4]])


def test_without_smoothing_the_loss_is_the_mean_cross_entropy() -> None:
    targets = torch.tensor([[0, 3, -1]])
    expected = -(math.log(0.5) + math.log(0.4)) / 2
    assert float(pointer_decoder.loss(probabilities(), targets, 3, 0.0)) == pytest.approx(expected)


def test_smoothing_spreads_the_mass_over_the_other_generated_pieces() -> None:
    # Eq. 3 with three pieces in the vocabulary: half of lambda for each of the two others.
    one = -0.9 * math.log(0.5) - 0.05 * (math.log(0.2) + math.log(0.1))
    # A copied piece is not in the vocabulary: all three are others.
    other = -0.9 * math.log(0.4) - 0.05 * (math.log(0.1) + math.log(0.2) + math.log(0.3))
    targets = torch.tensor([[0, 3, -1]])
    assert float(pointer_decoder.loss(probabilities(), targets, 3, 0.1)) == pytest.approx((one + other) / 2)


def test_without_targets_the_loss_is_zero() -> None:
    assert float(pointer_decoder.loss(probabilities(), torch.full((1, 3), -1), 3, 0.1)) == 0
