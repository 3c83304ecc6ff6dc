"""How well a probability separates sentences with an adverse event from those without one."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.evaluation.relation import PROPORTION


def best_f1(logits: np.ndarray[Any, Any], events: np.ndarray[Any, Any]) -> float:
    """The highest F1 of any threshold; 0 without an event. Sentences without an event are weighted such that
    both kinds are in the corpus' proportion.
    """
    n_events = int(events.sum())
    if not n_events:
        return 0.0
    weight = PROPORTION * n_events / max(1, len(events) - n_events)
    order = np.argsort(-logits, kind="stable")
    right = events[order].cumsum()
    found = np.where(events[order], 1.0, weight).cumsum()
    return float((2 * right / (found + n_events)).max())
