"""The head in training that tells sentences with an adverse event from those without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save_file

from models.ner.head import EventHead
from models.relation.sentence_head import SENTENCE_HEAD
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


def write_event_head(head: EventHead, folder: Path) -> EventHead:
    """Writes the head in 16 bits, as a release holds it, and gives it as it will be loaded."""
    tensors = {name: t.detach().cpu().half().contiguous() for name, t in head.state_dict().items()}
    save_file(tensors, folder / SENTENCE_HEAD)
    stored = EventHead(head.attention.in_features)
    stored.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return stored
