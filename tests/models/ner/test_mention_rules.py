"""Mentions are cut, joined or left out by rules, in sentences of our own."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ner.mention_rules import (
    DANGLING,
    Cover,
    Run,
    barred_words,
    in_handle,
    outside_drugs,
    sound_runs,
    within_sentences,
)
from models.text import PlacedWords, words
from models.types import ADE, DRUG, Mention, Span


def kept(marked: str) -> list[str]:
    """What remains of the pieces in brackets, all labelled ADE, as their words joined by spaces."""
    tokens: list[str] = []
    runs: list[Run] = []
    for token in marked.replace("[", " [ ").replace("]", " ] ").split():
        if token == "[":
            runs.append((ADE, len(tokens), 0))
        elif token == "]":
            runs[-1] = (*runs[-1][:2], len(tokens))
        else:
            tokens.append(token)
    return [" ".join(tokens[first:after]) for _, first, after in sound_runs(runs, tokens)]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("my ankles were [swollen and] [sore] all week", ["swollen and sore"]),
        ("woke up with [a] [pounding head]", ["pounding head"]),
        ("[the] [worst heartburn]", ["the worst heartburn"]),
        ("[skin itchy -] [arms and legs]", ["skin itchy - arms and legs"]),
        ("[nausea] [dizziness]", ["nausea", "dizziness"]),
        ("[nausea] and [dizziness]", ["nausea", "dizziness"]),
        ("[nausea and] then [dizziness]", ["nausea", "dizziness"]),
        ("got [hiccups of the] since then", ["hiccups"]),
        ("[itchy (]", ["itchy"]),
        ("[crying ,] then [vertigo .]", ["crying", "vertigo"]),
        ("[rash ! !] [hives ,] [itch]", ["rash", "hives", "itch"]),
        ("[nausea ( mild ) ,]", ["nausea ( mild ) ,"]),
        ("[awake at 2 a . m .]", ["awake at 2 a . m ."]),
        (
            "[M\u00e9ni\u00e8re '] s and [a ' brain zap '] [moon face \u2019]",
            ["M\u00e9ni\u00e8re", "a ' brain zap '", "moon face"],
        ),
    ],
)
def test_a_piece_with_a_dangling_end_continues_in_the_next_one_or_is_cut(
    marked: str, expected: list[str]
) -> None:
    assert kept(marked) == expected


def test_pieces_of_other_labels_are_never_joined() -> None:
    assert sound_runs([(ADE, 0, 2), (DRUG, 2, 3)], ["rash", "from", "zoloft"]) == [(ADE, 0, 1), (DRUG, 2, 3)]


@pytest.mark.parametrize(
    "marked",
    [
        "[it]",
        "[was my]",
        "[...]",
        "[can '] t",
        "[so , and]",
        "[I] [the]",
        "[-]",
        "[don '] t have night sweats",
        "[didn ' t] eat much",
        "[Cannot] currently sing",
        "[does not]",
    ],
)
def test_words_without_content_are_no_mention(marked: str) -> None:
    assert kept(marked) == []


@pytest.mark.parametrize(
    "marked",
    [
        "[down]",
        "[off] all day",
        "[high]",
        "[no appetite]",
        "[\U0001f922]",
        "[cannot sleep]",
        "[won ' t eat]",
        "[nothing]",
    ],
)
def test_a_short_word_may_be_a_mention(marked: str) -> None:
    (mention,) = kept(marked)
    assert mention


def test_a_dangling_word_has_no_content() -> None:
    assert all(sound_runs([(ADE, 0, 1)], [word]) == [] for word in DANGLING)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so dizzy #lexapro @dr_who", [("#", True), ("lexapro", True), ("@", False), ("dr_who", False)]),
        ("my #1 problem @ 9 pm", []),
        ("write to me@example.com or a#b", []),
        ("rash", []),
        ("#", []),
        ("#zoloft.", [("#", True), ("zoloft", True)]),
    ],
)
def test_words_of_hashtags_and_handles_are_barred(text: str, expected: list[tuple[str, bool]]) -> None:
    placed = PlacedWords.of(text)
    assert [(placed.texts[i], drug) for i, drug in barred_words(text, placed)] == expected


def test_a_handle_is_known_by_any_part_of_it() -> None:
    assert in_handle("hi @xarelto", Span(4, 11))
    assert not in_handle("hi #xarelto", Span(4, 11))
    assert not in_handle("xarelto", Span(0, 7))


@pytest.mark.parametrize("piece", ["#rash ", "paxil @me "])
def test_the_time_of_hashtags_and_handles_of_a_long_text_is_bounded(piece: str) -> None:
    text = piece * (99_000 // len(piece))
    spans, placed = words(text), PlacedWords.of(text)
    started = time.process_time()
    for start in range(0, len(spans), 100):
        barred_words(text, placed.part(start, start + 100))
    for span in spans:
        in_handle(text, span)
    assert time.process_time() - started < 2


def test_no_effect_lies_inside_the_name_of_a_drug() -> None:
    drug = Mention(0, 16, "cough syrup plus", DRUG, 1.0)
    inside = Mention(0, 5, "cough", ADE, 0.9)
    around = Mention(0, 22, "cough syrup plus heave", ADE, 0.9)
    assert outside_drugs([drug, inside, around]) == [drug, around]


@pytest.mark.parametrize(
    ("run", "starts", "expected"),
    [
        (("ADE", 2, 9), [], [(2, 9)]),
        (("ADE", 2, 9), [2, 9, 12], [(2, 9)]),
        (("ADE", 2, 9), [4, 5], [(2, 4), (4, 5), (5, 9)]),
    ],
)
def test_a_mention_ends_with_its_sentence(
    run: tuple[str, int, int], starts: list[int], expected: list[tuple[int, int]]
) -> None:
    cut = within_sentences([("DRUG", 0, 1), run], starts)
    assert cut == [("DRUG", 0, 1), *(("ADE", *span) for span in expected)]


SPANS = st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda p: Span(p[0], p[0] + p[1]))


@given(st.lists(SPANS, max_size=6), SPANS)
def test_what_spans_cover_is_what_a_comparison_with_each_says(spans: list[Span], one: Span) -> None:
    cover = Cover(spans)
    mention = Mention(one.start, one.end, "", ADE, 0.9)
    assert cover.overlaps(one) == any(s.start < one.end and one.start < s.end for s in spans)
    assert cover.holds(mention) == any(s.start <= one.start and one.end <= s.end for s in spans)


def test_the_time_of_a_sentence_with_thousands_of_drugs_and_effects_is_bounded() -> None:
    drugs = [Mention(i, i + 5, "paxil", DRUG, 1.0) for i in range(0, 100_000, 6)]
    effects = [Mention(i + 5, i + 6, " ", ADE, 0.9) for i in range(0, 100_000, 6)]
    started = time.process_time()
    assert outside_drugs([*drugs, *effects]) == [*drugs, *effects]
    assert time.process_time() - started < 2
