"""From scores of tags to the tag of each word and to spans of words, with the repair of gaps (CONORM, section
3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.types import CODED_LABELS

#: The file with the transitions of the tags, of a release that decodes whole sentences.
TRANSITIONS = "transitions.safetensors"
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Numbers = NDArray[np.int64]
OUTSIDE = "O"
#: Tag of the second and later pieces of a word in training; no word gets it.
CONTINUATION = "X"


@dataclass(slots=True)
class Decoding:
    """How the mentions of a text follow from the scores of its words and sentences."""

    transitions: Floats | None = None
    """as in `viterbi`; None: each word gets its most probable tag, and gaps are repaired, as in the paper"""
    event_weight: float = 0.0
    """factor of the log-odds that a sentence reports an event, which are added to the log-probabilities of
    its coded tags"""
    event_below: float = 0.0
    """A sentence whose probability of an event is lower has no coded mention."""
    own_from: float = 0.5
    """An effect is an event of the writer's from this probability on; below, it has the most probable other
    status."""
    window: int = 0
    """Consecutive sentences of a text are read together as long as they have at most this many words."""
    labels_pooled: bool = False
    """whether the probabilities of the coded labels are added up, as in `pooled`"""
    named_from: float = 0.0
    """A name of an adverse event that was not tagged becomes a mention if both the probability that its
    sentence reports an event and the probability that the event is the writer's are at least this; 0: none
    does."""
    withdrawals_named: bool = False
    """whether a withdrawal that the text names as such becomes a mention by rules (withdrawals.py)"""
    stated_read: bool = False
    """whether what a source states is read before the text"""


def decoding_of(release: Release) -> Decoding:
    """The decoding that the configuration of a release states; raises ReleaseError for an unknown kind."""
    configuration = release.manifest.configuration
    decode = configuration.get("decode", "paper")
    if decode not in ("paper", "viterbi"):
        raise ReleaseError(f"{release.version}: decode is {decode!r}, not paper or viterbi")
    names = (
        "event_weight", "event_below", "own_from", "window", "labels_pooled", "named_from",
        "withdrawals_named", "stated_read",
    )  # fmt: skip
    stated = {name: configuration[name] for name in names if name in configuration}
    decoding = Decoding(**stated)
    if decode == "viterbi":
        decoding.transitions = read_tensors(release.file(TRANSITIONS))["transitions"].float().numpy()
    return decoding


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


def coded_columns(tags: Sequence[str]) -> list[Numbers]:
    """The positions of the B tags of the coded labels among the tags, and those of their I tags."""
    prefixed = ([i for i, t in enumerate(tags) if t[0] == p and t[2:] in CODED_LABELS] for p in "BI")
    return [np.array(columns, np.int64) for columns in prefixed if columns]


def pooled(logs: Floats, groups: Sequence[Numbers]) -> Floats:
    """The log-probabilities, (words, tags), in which the likeliest tag of each group of columns has the sum
    of the group's probabilities. With the groups of `coded_columns`, a word whose probability of an event is
    divided between two labels is not tagged as outside because each of them alone is less likely.
    """
    shared = logs.copy()
    for columns in groups:
        grouped = logs[:, columns]
        shared[np.arange(len(logs)), columns[grouped.argmax(1)]] = np.logaddexp.reduce(grouped, axis=1)
    return shared


class Decoded(NamedTuple):
    """The best tag sequences of several sentences."""

    tags: Numbers
    """(words,), sentence after sentence"""
    margins: Floats
    """(sentences,): the score of the best sequence less that of the second best; infinite without words"""


def margins_of(scores: Floats) -> Floats:
    """(rows,): by how much the largest of at least two values of a row, (rows, values), exceeds the next."""
    if scores.shape[1] == 1:
        return np.full(len(scores), np.inf, np.float32)
    largest = np.partition(scores, -2, axis=1)[:, -2:]
    return largest[:, 1] - largest[:, 0]


def best_alone(emissions: Floats, lengths: Sequence[int] | Numbers) -> Decoded:
    """The most probable tag of each word, as in the paper; arguments as of `viterbi`."""
    margins = np.full(len(lengths), np.inf, np.float32)
    np.minimum.at(margins, np.arange(len(lengths)).repeat(lengths), margins_of(emissions))
    return Decoded(emissions.argmax(1), margins)


def viterbi(emissions: Floats, lengths: Sequence[int] | Numbers, transitions: Floats) -> Decoded:
    """The best tag sequences of several sentences, decoded together step by step.

    `emissions`, (words, tags): log-probabilities, sentence after sentence; `lengths`: the number of words of
    each sentence; `transitions`, (tags + 1, tags): weighted log-probability of a tag (column) after another
    (row), in the last row of the first tag of a sentence.

    The second best sequence leaves the best one at some word, where it takes the second best way to a tag
    that both have, or ends in another tag: its score is less by the smallest of those differences.
    """
    # Longest sentence first: the sentences that have a word at step t are then the first n_active[t]. Tags
    # come first in the arrays, since NumPy compares whole rows more quickly than what is within each.
    n_words: Numbers = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-n_words, kind="stable")
    first_word = (np.cumsum(n_words) - n_words)[order]
    n_active = [int((n_words > t).sum()) for t in range(int(n_words.max(initial=0)))]
    tags, margins = np.zeros(len(emissions), np.int64), np.full(len(n_words), np.inf, np.float32)
    if not n_active:
        return Decoded(tags, margins)
    scores, after = np.ascontiguousarray(emissions.T), transitions[:-1, :, None]
    best = transitions[-1][:, None] + scores[:, first_word[: n_active[0]]]
    ways = []
    for t, n in enumerate(n_active[1:], start=1):
        ways.append(best[:, None, :n] + after)
        best[:, :n] = ways[-1].max(0) + scores[:, first_word[:n] + t]
    current = best.argmax(0)
    compared, sentence = [best.T], [np.arange(n_active[0])]
    for t, n in reversed(list(enumerate(n_active))):
        tags[first_word[:n] + t] = current[:n]
        if t:
            compared.append(ways[t - 1][:, current[:n], np.arange(n)].T)
            sentence.append(np.arange(n))
            current[:n] = compared[-1].argmax(1)
    smallest = np.full(n_active[0], np.inf, np.float32)
    np.minimum.at(smallest, np.concatenate(sentence), margins_of(np.concatenate(compared)))
    margins[order[: len(smallest)]] = smallest
    return Decoded(tags, margins)
