"""The split of coded mentions by drug and preferred term, spans of mentions, and the trivial tagger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.types import Query
from tests.training.normalization.small_terms import BY_TERM, TERMS, gold
from training.common.codings.split import heldout_split, mention_key, query, right_terms
from training.common.corpora import CorpusError, GoldCoding, GoldMention, GoldText
from training.common.tagging.spans import DictionaryTagger, gold_spans

rows = st.builds(
    gold,
    st.sampled_from(["Pain", "pain ", "no  sleep", "no sleep", "bad rash", "sick", "so sick", "aches"]),
    st.sampled_from(["insomnia", "pain", "rash", "nausea", "no term of ours"]),
    st.sampled_from(["a", "A", "b", "c", "d"]),
)


@given(st.lists(rows, min_size=1, max_size=40), st.integers(0, 99))
def test_no_mention_no_drug_and_no_held_out_term_is_in_two_parts(golds: list[GoldCoding], seed: int) -> None:
    split = heldout_split(golds, BY_TERM, seed)
    strings = [{mention_key(g.mention) for g in part} for part in split]
    assert not strings[0] & strings[1]
    assert not strings[0] & strings[2]
    assert not strings[1] & strings[2]
    known = {g.drug.lower() for g in split.train + split.valid}
    # Of at least one drug every mention is tested.
    assert any(
        all(g in split.test for g in golds if g.drug.lower() == drug)
        for drug in {g.drug.lower() for g in golds} - known
    )
    assert heldout_split(golds, BY_TERM, seed) == split


def test_nothing_to_split_is_said_in_words() -> None:
    with pytest.raises(
        CorpusError, match=r"no mention with a term: does psytar/normalization\.csv have any\?"
    ):
        heldout_split([], BY_TERM)


def test_the_test_part_has_whole_drugs_and_whole_preferred_terms() -> None:
    golds = [gold(f"m{n}", f"term {n % 25}", "abcde"[n % 5]) for n in range(500)]
    split = heldout_split(golds, {})
    drugs = {g.drug for g in split.test if sum(o.drug == g.drug for o in split.train) == 0}
    assert len(drugs) == 1
    assert sum(g.drug in drugs for g in golds) == sum(g.drug in drugs for g in split.test)
    held = {g.terms for g in split.test if g.drug not in drugs}
    assert len(held) == 1
    assert not {g.terms for g in split.train + split.valid} & held
    assert sum(map(len, split)) < len(golds) + 1
    assert 0.08 < len(split.valid) / (len(split.train) + len(split.valid)) < 0.15


def test_a_preferred_term_is_held_out_under_all_its_names() -> None:
    golds = [gold(f"m{n}", t.llt, "ab"[n % 2]) for n, t in enumerate(TERMS * 20)]
    for seed in range(10):
        split = heldout_split(golds, BY_TERM, seed)
        held = {pt for g in split.valid + split.test for pt in right_terms(g, BY_TERM)} - {
            pt for g in split.train for pt in right_terms(g, BY_TERM)
        }
        assert not [g for g in split.train if right_terms(g, BY_TERM) & held]


@pytest.mark.parametrize(
    ("mention", "sentence", "expected"),
    [
        ("weight gain", "Big Weight  Gain.", Query("Big Weight  Gain.", 4, 16, "Weight  Gain")),
        ("ache ", "headache, ache", Query("headache, ache", 10, 14, "ache")),
        ("ach", "headache", Query("headache", 4, 7, "ach")),
        ("a (b", "so a (b here", Query("so a (b here", 3, 7, "a (b")),
        ("not there", "a sentence", Query("not there", 0, 9, "not there")),
        (" ", "a sentence", Query(" ", 0, 1, " ")),
    ],
)
def test_a_query_is_the_mentions_place_in_its_sentence(mention: str, sentence: str, expected: Query) -> None:
    assert query(GoldCoding(mention, sentence, "a", ())) == expected


def marked(text: str, *mentions: tuple[str, str]) -> GoldText:
    """A text whose mentions are given by their first occurrence."""
    return GoldText(
        "x", text, tuple(GoldMention(text.index(m), text.index(m) + len(m), label) for m, label in mentions)
    )


def test_gold_spans_are_mentions_and_a_dictionary_of_nothing_finds_none() -> None:
    texts = [marked("a rash", ("rash", "ADE")), marked("nothing")]
    assert gold_spans(texts) == [[(2, 6, "ADE")], []]
    assert DictionaryTagger([]).predict(["pain", ""]) == [[], []]
    assert DictionaryTagger([marked("no mention")]).predict(["no mention"]) == [[]]


TAGGER = DictionaryTagger(
    [
        marked("Severe back pain again", ("Severe back pain", "ADE"), ("pain", "ADE")),
        marked("pain before", ("pain", "SYMPTOM")),
        marked("pain after", ("pain", "SYMPTOM")),
        marked("Zoloft", ("Zoloft", "DRUG")),
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
