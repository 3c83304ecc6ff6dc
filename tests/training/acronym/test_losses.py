"""The losses of m-networks, compared with values computed by hand."""

from __future__ import annotations

import pytest
import torch

from training.acronym.losses import MARGINS, loss_of
from training.acronym.settings import Objective

INF = float("inf")


def test_the_losses_are_those_of_the_paper_over_the_candidates_that_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MARGINS, "triplet", 0.4)
    energies = torch.tensor([[1.0, 0.5, 3.0], [2.0, 2.2, INF]])
    # max(0, 1 - 0.5 + 0.4), max(0, 1 - 3 + 0.4), max(0, 2 - 2.2 + 0.4)
    assert loss_of(energies, "triplet").item() == pytest.approx((0.9 + 0 + 0.2) / 3)
    # The nearest negative alone.
    assert loss_of(energies, "m").item() == pytest.approx((0.9 + 0.2) / 2)
    shares = (
        torch.tensor([[-1.0, -0.5, -3.0]]).log_softmax(1)[0, 0],
        torch.tensor([-2.0, -2.2]).log_softmax(0)[0],
    )
    assert loss_of(energies, "softmax").item() == pytest.approx(-sum(s.item() for s in shares) / 2)


@pytest.mark.parametrize("objective", ["triplet", "m", "softmax"])
def test_a_missing_candidate_gets_no_gradient_and_spoils_none(objective: Objective) -> None:
    energies = torch.tensor([[1.0, 0.9, INF]], requires_grad=True)
    loss_of(energies * 1.0, objective).backward()  # type: ignore[no-untyped-call]
    assert energies.grad is not None
    assert energies.grad[0, 0] > 0 > energies.grad[0, 1]
    assert energies.grad[0, 2] == 0
