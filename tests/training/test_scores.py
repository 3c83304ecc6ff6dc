"""The scores, counted by hand on small cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.readers import GoldMention, GoldText
from training.scores import F1, DictionaryTagger, f1, gold_spans, strict_spans

SPANS = st.lists(
    st.sets(st.tuples(st.integers(0, 4), st.integers(5, 9), st.sampled_from(["A", "B", "C"])), max_size=5),
    min_size=3,
    max_size=3,
)
Spans = list[tuple[int, int, str]]


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ((0, 0, 0), F1(0.0, 0.0, 0.0)),
        ((0, 5, 0), F1(0.0, 0.0, 0.0)),
        ((0, 0, 5), F1(0.0, 0.0, 0.0)),
        ((0, 5, 5), F1(0.0, 0.0, 0.0)),
        ((5, 5, 5), F1(1.0, 1.0, 1.0)),
        ((1, 2, 1), F1(0.5, 1.0, 2 / 3)),
        ((3, 4, 6), F1(0.75, 0.5, 0.6)),
    ],
)
def test_f1_is_the_harmonic_mean_and_zero_where_nothing_is_right(
    counts: tuple[int, int, int], wanted: F1
) -> None:
    assert tuple(f1(*counts)) == pytest.approx(tuple(wanted))


@pytest.mark.parametrize(
    ("predicted", "gold", "labels", "micro", "macro"),
    [
        pytest.param([[(0, 3, "A")]], [[(0, 3, "A")]], ["A"], 1.0, 1.0, id="right"),
        pytest.param([[(0, 4, "A")]], [[(0, 3, "A")]], ["A"], 0.0, 0.0, id="another boundary"),
        pytest.param([[(0, 3, "B")]], [[(0, 3, "A")]], ["A", "B"], 0.0, 0.0, id="another label"),
        pytest.param([[(0, 3, "A")] * 3], [[(0, 3, "A")]], ["A"], 1.0, 1.0, id="predicted thrice"),
        pytest.param([[(0, 3, "A")]], [[(0, 3, "A")] * 2], ["A"], 1.0, 1.0, id="gold twice"),
        pytest.param(
            [[(0, 3, "A"), (5, 6, "B")]], [[(0, 3, "A")]], ["A"], 1.0, 1.0, id="prediction left out"
        ),
        pytest.param([[(0, 3, "A")]], [[(0, 3, "A"), (5, 6, "B")]], ["A"], 1.0, 1.0, id="gold left out"),
        pytest.param(
            [[(0, 3, "A")], []], [[], [(0, 3, "A")]], ["A"], 0.0, 0.0, id="right span of another text"
        ),
        # A: 2 of 2 right, B: 0 of 1 predicted and 1 gold.
        pytest.param(
            [[(0, 1, "A"), (2, 3, "A"), (4, 5, "B")]],
            [[(0, 1, "A"), (2, 3, "A"), (4, 6, "B")]],
            ["A", "B"],
            2 / 3,
            0.5,
            id="micro and macro",
        ),
        pytest.param([[(0, 1, "A")]], [[(0, 1, "A")]], ["A", "B"], 1.0, 0.5, id="label that never occurs"),
        pytest.param([[]], [[]], ["A"], 0.0, 0.0, id="nothing"),
        pytest.param([], [], ["A"], 0.0, 0.0, id="no texts"),
    ],
)
def test_strict_spans_count_exact_boundaries_and_labels_once_a_text(
    predicted: list[Spans], gold: list[Spans], labels: list[str], micro: float, macro: float
) -> None:
    found = strict_spans(predicted, gold, labels)
    assert found.micro.f1 == pytest.approx(micro)
    assert found.macro_f1 == pytest.approx(macro)
    assert sorted(found.by_label) == sorted(labels)


@given(SPANS, SPANS)
def test_predictions_and_gold_may_change_places_and_gold_scores_itself_fully(
    one: list[set[tuple[int, int, str]]], other: list[set[tuple[int, int, str]]]
) -> None:
    there, back = strict_spans(one, other, "AB"), strict_spans(other, one, "AB")
    assert there.micro.f1 == pytest.approx(back.micro.f1)
    assert there.micro.precision == back.micro.recall
    assert there.macro_f1 == pytest.approx(back.macro_f1)
    itself = strict_spans(one, one, "ABC")
    assert itself.micro.f1 == float(any(one))


def test_different_numbers_of_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        strict_spans([[]], [], ["A"])


def gold(text: str, *mentions: tuple[str, str]) -> GoldText:
    """A text whose mentions are given by their first occurrence."""
    return GoldText(
        "x", text, tuple(GoldMention(text.index(m), text.index(m) + len(m), label) for m, label in mentions)
    )


def test_gold_spans_are_the_mentions_of_each_text() -> None:
    texts = [gold("a rash", ("rash", "ADE")), gold("nothing")]
    assert gold_spans(texts) == [[(2, 6, "ADE")], []]


TAGGER = DictionaryTagger(
    [
        gold("Severe back pain again", ("Severe back pain", "ADE"), ("pain", "ADE")),
        gold("pain before", ("pain", "SYMPTOM")),
        gold("pain after", ("pain", "SYMPTOM")),
        gold("Zoloft", ("Zoloft", "DRUG")),
    ]
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("severe BACK pain from zoloft", [("severe BACK pain", "ADE"), ("zoloft", "DRUG")]),
        ("back pain", [("pain", "SYMPTOM")]),
        ("severe back ache", []),
        ("pain pain", [("pain", "SYMPTOM"), ("pain", "SYMPTOM")]),
        ("\U0001f922  pain", [("pain", "SYMPTOM")]),
        ("painful", []),
        ("", []),
    ],
)
def test_the_dictionary_takes_the_longest_mention_seen_with_its_commonest_label(
    text: str, wanted: list[tuple[str, str]]
) -> None:
    (found,) = TAGGER.predict([text])
    assert [(text[start:end], label) for start, end, label in found] == wanted


def test_a_dictionary_of_nothing_finds_nothing() -> None:
    assert DictionaryTagger([]).predict(["pain", ""]) == [[], []]
    assert DictionaryTagger([gold("no mention")]).predict(["no mention"]) == [[]]
