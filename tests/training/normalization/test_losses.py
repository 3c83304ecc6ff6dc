"""The losses by hand."""

from __future__ import annotations

import pytest
import torch

from training.normalization.isolated import softmax_loss
from training.normalization.network import cosine_embedding


def test_the_cosine_embedding_loss_is_that_of_the_paper() -> None:
    refined = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    positive = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    negative = torch.tensor([[-1.0, 0.0], [3.0, 4.0]])
    # Positives: 1 - cos 45 degrees, 0. Negatives: max(0, -1), 0.8.
    expected = ((1 - 0.5**0.5) + 0 + 0 + 0.8) / 4
    assert cosine_embedding(refined, positive, negative).item() == pytest.approx(expected, abs=1e-6)


def test_the_softmax_ignores_other_names_of_the_right_term() -> None:
    refined, terms = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    positive, right = torch.tensor([[True, False, False]]), torch.tensor([[True, True, False]])
    e = float(torch.e)
    loss = softmax_loss(refined, terms, positive, right, 1.0).item()
    assert loss == pytest.approx(-torch.log(torch.tensor(e / (e + 1))).item(), abs=1e-6)
    both = softmax_loss(refined, terms, right, right, 1.0).item()
    assert both == pytest.approx(-torch.log(torch.tensor(2 * e / (2 * e + 1))).item(), abs=1e-6)
