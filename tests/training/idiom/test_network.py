"""The losses of idiom-aware vectors, compared with values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from tests.training.idiom.corpus import unit
from training.idiom.network import TripletLoss, cosine_change


def test_the_triplet_loss_is_the_one_computed_by_hand() -> None:
    # Cosines: S-c 0.8660 (30 degrees), S-i 0.9397 (20), c-i 0.9848 (10), S-o 0 (90), c-o 0.5 (60).
    vectors = 3 * torch.tensor([unit(0), unit(30), unit(20), unit(90)])
    labels = torch.tensor([0, 0, 1, 2])
    triplet_loss = TripletLoss()
    anchor, positive, negative = triplet_loss.miner(vectors, labels)
    mined = set(zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True))
    # 0.8660 - 0 is above 0.4; 0.8660 - 0.5 = 0.366 is mined, but above the margin 0.3: its term is zero.
    assert mined == {(0, 1, 2), (1, 0, 2), (1, 0, 3)}
    cos = {d: math.cos(math.radians(d)) for d in (10, 20, 30)}
    expected = ((cos[20] - cos[30] + 0.3) + (cos[10] - cos[30] + 0.3)) / 2
    assert triplet_loss(vectors, labels).item() == pytest.approx(expected, abs=1e-6)


def test_the_loss_of_a_batch_without_a_triplet_is_zero() -> None:
    vectors = torch.tensor([unit(0), unit(0), unit(90)], requires_grad=True)
    loss = TripletLoss()(vectors, torch.tensor([0, 0, 1]))
    assert loss.item() == 0
    loss.backward()  # type: ignore[no-untyped-call]


def test_the_cosine_change_counts_pairs_of_different_groups_only() -> None:
    before = torch.tensor([unit(0), unit(20), unit(90)])
    vectors = 2 * torch.tensor([unit(0), unit(50), unit(90)])
    groups = torch.tensor([0, 0, 1])
    # Of the two pairs of different groups one has changed, from 70 to 40 degrees.
    expected = (math.cos(math.radians(40)) - math.cos(math.radians(70))) ** 2 / 2
    assert cosine_change(vectors, before, groups).item() == pytest.approx(expected, abs=1e-6)
    assert cosine_change(vectors, before, torch.zeros(3)).item() == 0
