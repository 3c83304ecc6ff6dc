"""Misspells words for training."""

from __future__ import annotations

import random

from models.normalization.spelling import ALIKE, LEAST_LETTERS


def misspelled(text: str, rng: random.Random) -> str:
    """The text with one of its longer words misspelled: two neighbouring letters exchanged, one deleted,
    doubled, or replaced by one of similar sound; never the first or last. Unchanged if no word is long
    enough.
    """
    words = text.split(" ")
    chosen = [i for i, word in enumerate(words) if len(word) >= LEAST_LETTERS and word.isalpha()]
    if not chosen:
        return text
    i = rng.choice(chosen)
    word = words[i]
    place = rng.randrange(1, len(word) - 2)
    before, letter, after = word[:place], word[place], word[place + 1 :]
    alike = ALIKE.get(letter.lower(), letter)
    written = (
        f"{after[0]}{letter}{after[1:]}",
        after,
        f"{letter}{letter}{after}",
        f"{rng.choice(alike)}{after}",
    )
    words[i] = before + rng.choice(written)
    return " ".join(words)
