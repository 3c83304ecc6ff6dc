"""How well sentences with an event are told from those without one."""

from __future__ import annotations

import numpy as np
import pytest

from training.relation.heads.event import best_f1


def test_the_best_f1_counts_sentences_in_the_proportion_of_the_corpus() -> None:
    events = np.array([True, True, False, False])
    assert best_f1(np.array([2.0, 1.0, 0.0, -1.0]), events) == pytest.approx(1)
    # A sentence without an event counts 3.9, so that at best the first is found alone.
    assert best_f1(np.array([2.0, 0.0, 1.0, -1.0]), events) == pytest.approx(2 / 3)
    assert best_f1(np.zeros(2), np.zeros(2, bool)) == 0.0
