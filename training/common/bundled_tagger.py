"""The tagger whose mentions other models are measured with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from models.ner.named_drugs import with_named_drugs
from models.releases.store import bundled, open_release
from models.types import Mention


def bundled_tagger() -> Any:
    """The bundled tagger in 32 bits, loaded once; it knows the test sentences of every fold of the ADE corpus
    but the first.
    """
    return _loaded(bundled("ner"))


def tagged(texts: Sequence[str]) -> list[list[Mention]]:
    """The mentions of each text as the stage finds them, without a judge."""
    return [
        with_named_drugs(text, mentions)
        for text, mentions in zip(texts, bundled_tagger().predict(texts), strict=True)
    ]


@cache
def _loaded(path: Path) -> Any:
    from models.loading import load  # noqa: PLC0415  it imports torch

    return load(open_release(path), dtype="float32").model
