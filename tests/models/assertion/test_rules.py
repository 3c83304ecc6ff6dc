"""The assertion of effects in patients' language, with and without triggers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import terminology
from models.assertion.rules import assertion
from models.types import Assertion
from tests.models.assertion.marked import ASSERTED, HYPOTHETICAL, NEGATED, OTHER, assertion_of

CHALLENGE = Path(__file__).parents[2] / "data/challenge/posts.jsonl"
SETTINGS = settings(deadline=None, max_examples=200)
# Triggers and terminators, so that random texts match them.
WORDS = """no not never don't without if might leaflet says my mom the dog he I but , ; - : nausea rash before
worse none ( ) .. i'm nobody warned me about \u2019 \u0130 \U0001f600"""
PIECES = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)


@pytest.mark.parametrize(
    "marked",
    [
        "no [nausea] at all on zoloft",
        "No rash, no hives, no [swelling].",
        "no nausea, vomiting or [headache] so far",
        "I never had any [headaches] with it",
        "i didnt get the [shakes] this time",
        "I don\u2019t have [cramps]",
        "I don\u00b4t have [cramps]",
        "No [cramps] in \u0130zmir",
        "Two years on it without [weight gain].",
        "it hasn't caused [hair loss] for me",
        "haven't noticed any [ringing in the ears]",
        "I didn't have nausea, [headaches] or anything like that",
        "neither a cough nor [dizziness] here",
        "zero [brain fog], which is nice",
        "[Weight gain] was never an issue",
        "the [headache] never came",
        "[nausea]: none",
        "[nausea]: no. Headache: yes.",
        "itch: yes, [nausea]: no, headache: yes",
        "I am free of [side effects]",
        "denies [chest pain]",
        "not a single [nightmare] in months",
    ],
)
def test_a_negated_effect_is_negated(marked: str) -> None:
    assert assertion_of(marked) == NEGATED


@pytest.mark.parametrize(
    "marked",
    [
        "what if it makes me [fat]",
        "I'm worried about [hair loss] on this",
        "scared it will make me [gain weight]",
        "If I get [hives] I'll call the nurse",
        "it might cause [drowsiness]",
        "this one can cause [liver damage]",
        "the leaflet says dry mouth and [headaches]",
        "side effects may include [dizziness]",
        "Does abilify cause [restlessness]?",
        "doctor warned me about [bruising]",
        "taking it at night to avoid [nausea]",
        "hope I don't get the [shakes]",
        "there is a risk of [blood clots]",
        "[infection] is a risk with these",
        "Will it make me [sleepy]?",
        "read that it [kills your libido]",
        "has anyone had [hair loss] on this?",
        "call them in case of [fever]",
    ],
)
def test_a_feared_or_possible_effect_is_hypothetical(marked: str) -> None:
    assert assertion_of(marked) == HYPOTHETICAL


@pytest.mark.parametrize(
    "marked",
    [
        "my mom gets [hives] from penicillin",
        "my mom's [rash] came back",
        "my dog [threw up] after the tablet",
        "a friend of mine got [seizures] on it",
        "Hubby has [swollen ankles] on amlodipine",
        "some people get [headaches]",
        "she had [hallucinations] on morphine",
        "My 4 year old son had [nightmares] on singulair",
        "the baby was [jittery] and cried",
        "Lisinopril gave my father in law [a cough]",
        "It caused [seizures] in my uncle",
        "my sister said it made her [dizzy]",
        "3 in 100 patients had [a rash]",
        "[hubby snores] all night since the valium",
    ],
)
def test_an_effect_of_somebody_else_has_another_experiencer(marked: str) -> None:
    assert assertion_of(marked) == OTHER


@pytest.mark.parametrize(
    "marked",
    [
        "my mum came out in [hives] on amoxicillin",
        "my son had [night terrors] from montelukast",
        "my nan's [ankles swelled up] on amlodipine",
        "our cat was [sick] after the antibiotic",
    ],
)
def test_in_a_post_a_relative_is_somebody_else(marked: str) -> None:
    assert assertion_of(marked) == OTHER


@pytest.mark.parametrize(
    "marked",
    [
        "Zoloft gave me [insomnia]",
        "I take zoloft for my [anxiety]",
        "I [can't sleep] on this",
        "can't [sleep] on this",
        "I couldn't [eat] for a week",
        "I didn't [sleep] at all",
        "no [appetite] whatsoever",
        "no sleep, [headache], sweats",
        "not only [nausea] but vomiting",
        "not only nausea but [vomiting]",
        "no side effects except [nausea]",
        "no nausea, but [headaches] every day",
        "no nausea -- [headaches] every day",
        "the [headaches] weren't there before",
        "[palpitations] never happened until I took this",
        "no side effects until the [hair loss] in month 3",
        "not a day goes by without [nausea] on this",
        "I couldn't eat without [vomiting]",
        "[nausea] no. 2 since the new dose",
        "no, 3 days of [nausea] so far",
        "stopped the drug because of [hives]",
        "had to stop it due to [cramps]",
        "I no longer get [dizzy] since they cut the dose",
        "never had [migraines] before this drug",
        "I never had [a headache] this bad",
        "never felt so [tired]",
        "nobody warned me about the [weight gain]",
        "no wonder I have [heartburn]",
        "not sure if it's the pill but my [head hurts]",
        "doesn't help my pain and gives me [nausea]",
        "I don't know what to do, [dizzy] all day",
        "could be the zoloft making me [sweat]",
        "my mom says I look [pale]",
        "my husband sleeps fine and I have [nightmares]",
        "My doctor said she wants me off it, [rash] everywhere",
        "anyone else get [vivid dreams]?",
        "felt as if I was [drunk]",
        "in May I got [hives]",
        "started in May and it makes me [dizzy]",
        "since May it makes me [dizzy]",
        "I was scared, [heart racing] all night",
        "no nausea and I have [insomnia] now",
        "prednisone has me [snapping at my kids]",
    ],
)
def test_a_pseudo_trigger_leaves_the_effect_asserted_of_the_writer(marked: str) -> None:
    assert assertion_of(marked) == ASSERTED


def test_the_challenge_set_has_valid_offsets_and_preferred_terms() -> None:
    terms = {t.pt for t in terminology.load()}
    posts = [json.loads(line) for line in CHALLENGE.read_text(encoding="utf-8").splitlines()]
    assert len({p["id"] for p in posts}) == len(posts)
    for post in posts:
        for piece in post["mentions"] + post["events"]:
            words = post["text"][piece["start"] : piece["end"]]
            assert words and words == words.strip(), post["id"]
        assert {e["pt"] for e in post["events"]} <= terms, post["id"]


def test_several_flags_may_be_set() -> None:
    assert assertion_of("some people might get [a rash]") == Assertion(
        hypothetical=True, other_experiencer=True
    )
    assert assertion_of("my brother never had [a rash] from it") == Assertion(
        negated=True, other_experiencer=True
    )


def test_a_long_text_is_searched_near_the_effect_and_part_of_a_word_is_no_trigger() -> None:
    assert assertion_of("x" * 500 + " " + "snot " * 100 + "[rash] " + "y" * 500) == ASSERTED
    assert assertion_of("word " * 5000 + "no [rash] " + "word " * 5000) == NEGATED


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 2), (-1, 2), (0, 99), (7, 9)])
def test_a_span_without_text_has_no_flag(start: int, end: int) -> None:
    assert assertion("no rash  ", start, end) == ASSERTED


@SETTINGS
@given(st.one_of(st.text(max_size=400), PIECES), st.integers(-5, 420), st.integers(-5, 420))
def test_any_text_and_span_has_an_assertion(text: str, start: int, end: int) -> None:
    assert isinstance(assertion(text, start, end), Assertion)


@SETTINGS
@given(st.one_of(st.text(max_size=400), PIECES), PIECES, PIECES, st.one_of(st.text(max_size=400), PIECES))
def test_text_outside_the_sentence_does_not_matter(
    outside: str, before: str, after: str, beyond: str
) -> None:
    sentence = f"{before} nausea {after}"
    alone = assertion(sentence, len(before) + 1, len(before) + 7)
    start = len(outside) + 1 + len(before) + 1
    assert assertion(f"{outside}\n{sentence}\n{beyond}", start, start + 6) == alone
