"""Makes the reference of a release from texts and its answers to them (see models.drift)."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from models.drift import REFERENCE, Reference, make_reference, text_features
from models.loading import model_class
from models.releases.manifest import Release
from models.releases.store import build, describe, open_release
from models.types import CODED_LABELS, Case, Query
from training.common.bundled_tagger import tagged

#: Texts of a reference: with these, ten bins have 50 each.
MOST = 500


class TextsOf(NamedTuple):
    """Texts that a reference is made from, and what they are in words."""

    made_from: str
    texts: Sequence[str]

    @classmethod
    def some(cls, made_from: str, texts: Sequence[str], most: int = MOST) -> TextsOf:
        """At most `most` of the texts, chosen at random with a fixed seed."""
        return cls(made_from, random.Random(0).sample(texts, min(most, len(texts))))


def reference_of(task: str, model: Any, made_from: str, texts: Sequence[str]) -> Reference:
    """The reference of a model for these texts; others than a tagger get what the bundled tagger finds."""
    return make_reference(made_from, text_features(model.encoder, texts), scores(task, model, texts))


def with_reference(path: Path, texts: TextsOf, root: Path) -> Release:
    """Builds the release of a directory with a reference, under another version. Raises ReleaseError."""
    release = open_release(path)
    task, manifest = release.task, release.manifest
    made = reference_of(task, model_class(task).load(release), *texts)
    with tempfile.TemporaryDirectory(prefix="reference-") as name:
        for file in manifest.files:
            shutil.copyfile(release.file(file), Path(name, file))
        Path(name, REFERENCE).write_text(made.model_dump_json() + "\n", encoding="utf-8")
        files = describe(Path(name))
        return build(Path(name), manifest.model_copy(update={"files": files}), root)


def scores(task: str, model: Any, texts: Sequence[str]) -> list[list[float]]:
    """Of each text the score of each thing that the model finds in it."""
    if task == "normalization":
        return _scores_of_codes(model, texts)
    inputs: Sequence[Any] = texts
    if task == "relation":
        inputs = [Case(text, tuple(found)) for text, found in zip(texts, tagged(texts), strict=True)]
    answers = model.predict(inputs)
    if task == "summarization":
        answers = [[question] for question in answers]
    return [[item.score for item in answer] for answer in answers]


def _scores_of_codes(model: Any, texts: Sequence[str]) -> list[list[float]]:
    """Of each text the cosine of the best candidate for each effect that the bundled tagger finds."""
    mentions = [[m for m in found if m.label in CODED_LABELS] for found in tagged(texts)]
    queries = [
        Query(text, m.start, m.end, m.text)
        for text, found in zip(texts, mentions, strict=True)
        for m in found
    ]
    codings = iter(model.predict(queries))
    best = [[next(codings).candidates[:1] for _ in found] for found in mentions]
    return [[one[0].score if one else 0.0 for one in found] for found in best]
