"""From the tag of each word to spans of words, with the repair of gaps (CONORM, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

OUTSIDE = "O"
#: Tag of the second and later pieces of a word in training; no word gets it.
CONTINUATION = "X"


def tags_of(labels: Sequence[str]) -> list[str]:
    """The tags O, X, then B and I of each label; their order is the order of the head's outputs."""
    return [OUTSIDE, CONTINUATION, *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


def repair_gaps(tags: Sequence[str]) -> list[str]:
    """The tags with each O between two I of one label replaced by that I: B I I O I -> B I I I I (CONORM,
    section 3.1, second step).
    """
    out = list(tags)
    for i in range(1, len(tags) - 1):
        if out[i] == OUTSIDE and out[i - 1].startswith("I-") and tags[i + 1] == out[i - 1]:
            out[i] = out[i - 1]
    return out


def spans_of(tags: Sequence[str], gaps_repaired: bool = True) -> list[tuple[str, int, int]]:
    """(label, first word, word after the last) of each run of tags, after the repair of gaps unless that is
    switched off; an I that does not continue a run of its label begins one.
    """
    runs: list[tuple[str, int, int]] = []
    for i, tag in enumerate(repair_gaps(tags) if gaps_repaired else tags):
        if tag in (OUTSIDE, CONTINUATION):
            continue
        prefix, label = tag.split("-", 1)
        if prefix == "I" and runs and runs[-1][0] == label and runs[-1][2] == i:
            runs[-1] = (label, runs[-1][1], i + 1)
        else:
            runs.append((label, i, i + 1))
    return runs
