"""From tags to spans: gaps are repaired, runs of tags become spans."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ner.decoding import best_alone, coded_columns, pooled, repair_gaps, spans_of, tags_of, viterbi
from training.common.tagging.transitions import NEVER, pairs_of, transitions_of

TAGS = st.lists(st.sampled_from(["O", "B-ADE", "I-ADE", "B-DRUG", "I-DRUG"]), max_size=14)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([], []),
        (["O"], ["O"]),
        (["B-ADE", "I-ADE", "I-ADE", "O", "I-ADE"], ["B-ADE", "I-ADE", "I-ADE", "I-ADE", "I-ADE"]),
        (["B-ADE", "O", "I-ADE"], ["B-ADE", "O", "I-ADE"]),
        (["I-ADE", "O", "O", "I-ADE"], ["I-ADE", "O", "O", "I-ADE"]),
        (["I-ADE", "O", "I-DRUG"], ["I-ADE", "O", "I-DRUG"]),
        (["I-ADE", "O", "B-ADE"], ["I-ADE", "O", "B-ADE"]),
        (["I-ADE", "O", "I-ADE", "O", "I-ADE"], ["I-ADE"] * 5),
        (["O", "I-ADE", "O"], ["O", "I-ADE", "O"]),
    ],
)
def test_only_a_single_gap_between_two_insides_of_a_label_is_filled(
    tags: list[str], expected: list[str]
) -> None:
    assert repair_gaps(tags) == expected


@given(TAGS)
def test_the_repair_changes_only_gaps_inside_one_label(tags: list[str]) -> None:
    repaired = repair_gaps(tags)
    assert len(repaired) == len(tags)
    assert repaired[:1] == tags[:1]
    assert repaired[-1:] == tags[-1:]
    for i, (before, after) in enumerate(zip(tags, repaired, strict=True)):
        if before != after:
            assert before == "O"
            assert after == tags[i - 1] == tags[i + 1]
    assert repair_gaps(repaired) == repaired


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([], []),
        (["O", "X", "O"], []),
        (["B-ADE", "I-ADE", "O", "B-DRUG"], [("ADE", 0, 2), ("DRUG", 3, 4)]),
        (["B-ADE", "B-ADE"], [("ADE", 0, 1), ("ADE", 1, 2)]),
        (["I-ADE", "I-ADE"], [("ADE", 0, 2)]),
        (["B-ADE", "I-DRUG", "I-DRUG"], [("ADE", 0, 1), ("DRUG", 1, 3)]),
        (["B-ADE", "O", "I-ADE"], [("ADE", 0, 1), ("ADE", 2, 3)]),
        (["B-ADE", "I-ADE", "O", "I-ADE", "O"], [("ADE", 0, 4)]),
    ],
)
def test_runs_of_tags_become_spans(tags: list[str], expected: list[tuple[str, int, int]]) -> None:
    assert spans_of(tags) == expected


@given(TAGS)
def test_spans_are_in_order_and_contain_every_tagged_word_with_its_label(tags: list[str]) -> None:
    spans = spans_of(tags)
    assert all(a[2] <= b[1] for a, b in pairwise(spans))
    label_of = {i: label for label, start, end in spans for i in range(start, end)}
    for i, tag in enumerate(tags):
        if tag != "O":
            assert label_of.pop(i) == tag[2:]
    assert all(tags[i - 1] == tags[i + 1] == f"I-{label}" for i, label in label_of.items())
    assert {i for i, tag in enumerate(tags) if tag[0] == "B"} <= {start for _, start, _ in spans}


def test_the_tags_are_outside_continuation_and_two_for_each_label() -> None:
    assert tags_of(["DRUG", "ADE"]) == ["O", "X", "B-DRUG", "I-DRUG", "B-ADE", "I-ADE"]


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(0, 2**32 - 1))
def test_decoded_sentences_obey_bio(lengths: list[int], seed: int) -> None:
    tags = tags_of(["DRUG", "ADE"])
    follow = transitions_of(pairs_of([], len(tags)), tags)
    emissions = np.random.default_rng(seed).normal(0, 5, (sum(lengths), len(tags))).astype(np.float32)
    found = viterbi(emissions, lengths, follow).tags
    assert (follow < NEVER / 2).sum() > 0
    for own in np.split(found, np.cumsum(lengths))[: len(lengths)]:
        before = len(tags)
        for tag in own.tolist():
            assert follow[before, tag] > NEVER / 2
            before = tag


@given(st.lists(st.integers(0, 4), max_size=4), st.integers(1, 3), st.integers(0, 2**32 - 1), st.booleans())
def test_the_margin_is_what_the_best_tags_are_ahead_of_all_others(
    lengths: list[int], n_tags: int, seed: int, together: bool
) -> None:
    rng = np.random.default_rng(seed)
    emissions = rng.normal(size=(sum(lengths), n_tags)).astype(np.float32)
    follow = (rng.normal(size=(n_tags + 1, n_tags)) * together).astype(np.float32)
    found = viterbi(emissions, lengths, follow) if together else best_alone(emissions, lengths)
    ends = np.cumsum(lengths)[:-1]
    parts = zip(np.split(emissions, ends), np.split(found.tags, ends), found.margins, strict=True)
    for own, tags, margin in parts if lengths else ():
        scores = {
            path: sum(follow[b, t] + own[i, t] for i, (b, t) in enumerate(pairwise((n_tags, *path))))
            for path in product(range(n_tags), repeat=len(own))
        }
        best = scores.pop(tuple(tags.tolist()))
        assert best - max(scores.values(), default=-np.inf) == pytest.approx(margin, abs=1e-4)


def test_coded_labels_share_their_probability() -> None:
    tags = tags_of(["ADE", "WITHDRAWAL", "DRUG"])
    probabilities = {"O": 0.35, "B-ADE": 0.2, "B-WITHDRAWAL": 0.25, "I-ADE": 0.1, "B-DRUG": 0.05}
    logs = np.log(np.array([[probabilities.get(tag, 0.01) for tag in tags]], np.float32))
    shared = dict(zip(tags, np.exp(pooled(logs, coded_columns(tags)))[0].round(3).tolist(), strict=True))
    assert max(shared, key=lambda tag: shared[tag]) == "B-WITHDRAWAL"
    expected = {
        "O": 0.35, "X": 0.01, "B-ADE": 0.2, "I-ADE": 0.11, "B-WITHDRAWAL": 0.45, "I-WITHDRAWAL": 0.01,
        "B-DRUG": 0.05, "I-DRUG": 0.01,
    }  # fmt: skip
    assert shared == pytest.approx(expected)
    assert pooled(np.zeros((0, len(tags)), np.float32), coded_columns(tags)).shape == (0, len(tags))
    assert np.array_equal(pooled(logs[:, :2], coded_columns(tags[:2])), logs[:, :2])
