"""The held-out clinical sentences of the teaching corpus, and the scores of a release that is being made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.releases.manifest import Score
from training.evaluation.evaluate import as_scores, evaluate_on, manifest_scores
from training.evaluation.relation import LABELS, Corpus
from training.relation.data import has_effect
from training.teaching.readers import gold_texts


def held_out(batches: Sequence[str] = ()) -> Corpus:
    """Of these author batches, or of all; texts with an effect are the test part, the others those without an
    event.
    """
    texts = gold_texts("clinical", "held_out", labels=LABELS)
    chosen = [t for t in texts if not batches or t.id.split("-")[1] in batches]
    name = f"teaching corpus, {', '.join(batches) or 'held-out clinical sentences'}"
    test, negatives = ([t for t in chosen if has_effect(t) == own] for own in (True, False))
    training = gold_texts("clinical", "train", labels=LABELS)
    return Corpus(name, training, test, negatives, f"{name} without an effect")


def release_scores(model: Any, training: Mapping[str, Any], data: Path | None) -> list[Score]:
    """The scores of a model as its manifest holds them; `training`: the settings of its run. One that was
    trained without the ADE corpus is scored on what was written too, and on the ADE corpus where that is.
    """
    own, splits = list[Score](), (training["split"],)
    if training.get("corpora") == "teaching":
        own = as_scores(evaluate_on("relation", model, "", "written", held_out()))
    if data is None or (own and not (data / "ade").exists()):
        return own
    return manifest_scores("relation", model, data, splits) + own
