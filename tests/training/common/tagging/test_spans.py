"""Spans of mentions, and the trivial tagger."""

from __future__ import annotations

import pytest

from training.common.corpora import GoldMention, GoldText
from training.common.tagging.spans import DictionaryTagger, gold_spans


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
