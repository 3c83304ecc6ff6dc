"""The assertion of effects in patients' language, with and without triggers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import terminology
from models.assertion.triggers import assertion
from models.types import Assertion
from tests.models.assertion.marked import ASSERTED, HYPOTHETICAL, NEGATED, OTHER, assertion_of

CHALLENGE = Path(__file__).parents[2] / "data/challenge/posts.jsonl"
SETTINGS = settings(deadline=None, max_examples=200)
# Triggers and terminators, so that random texts match them.
WORDS = """no not never don't without if might leaflet says my mom the dog he I but , ; - : nausea rash before
worse none ( ) .. i'm nobody warned me about \u2019 \u0130 \U0001f600"""
PIECES = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("i didnt get the [shakes] this time", NEGATED),
        ("I don\u2019t have [cramps]", NEGATED),
        ("I don\u00b4t have [cramps]", NEGATED),
        ("No [cramps] in \u0130zmir", NEGATED),
        ("Two years on it without [weight gain].", NEGATED),
        ("it hasn't caused [hair loss] for me", NEGATED),
        ("I didn't have nausea, [headaches] or anything like that", NEGATED),
        ("neither a cough nor [dizziness] here", NEGATED),
        ("zero [brain fog], which is nice", NEGATED),
        ("[Weight gain] was never an issue", NEGATED),
        ("the [headache] never came", NEGATED),
        ("[nausea]: none", NEGATED),
        ("[nausea]: no. Headache: yes.", NEGATED),
        ("I am free of [side effects]", NEGATED),
        ("denies [chest pain]", NEGATED),
        ("not a single [nightmare] in months", NEGATED),
        ("what if it makes me [fat]", HYPOTHETICAL),
        ("I'm worried about [hair loss] on this", HYPOTHETICAL),
        ("scared it will make me [gain weight]", HYPOTHETICAL),
        ("If I get [hives] I'll call the nurse", HYPOTHETICAL),
        ("it might cause [drowsiness]", HYPOTHETICAL),
        ("the leaflet says dry mouth and [headaches]", HYPOTHETICAL),
        ("side effects may include [dizziness]", HYPOTHETICAL),
        ("Does abilify cause [restlessness]?", HYPOTHETICAL),
        ("doctor warned me about [bruising]", HYPOTHETICAL),
        ("taking it at night to avoid [nausea]", HYPOTHETICAL),
        ("hope I don't get the [shakes]", HYPOTHETICAL),
        ("there is a risk of [blood clots]", HYPOTHETICAL),
        ("[infection] is a risk with these", HYPOTHETICAL),
        ("read that it [kills your libido]", HYPOTHETICAL),
        ("has anyone had [hair loss] on this?", HYPOTHETICAL),
        ("call them in case of [fever]", HYPOTHETICAL),
        ("my mom's [rash] came back", OTHER),
        ("a friend of mine got [seizures] on it", OTHER),
        ("Hubby has [swollen ankles] on amlodipine", OTHER),
        ("some people get [headaches]", OTHER),
        ("she had [hallucinations] on morphine", OTHER),
        ("Lisinopril gave my father in law [a cough]", OTHER),
        ("It caused [seizures] in my uncle", OTHER),
        ("my sister said it made her [dizzy]", OTHER),
        ("3 in 100 patients had [a rash]", OTHER),
        ("[hubby snores] all night since the valium", OTHER),
        ("my nan's [ankles swelled up] on amlodipine", OTHER),
        ("our cat was [sick] after the antibiotic", OTHER),
        ("Zoloft gave me [insomnia]", ASSERTED),
        ("I take zoloft for my [anxiety]", ASSERTED),
        ("I [can't sleep] on this", ASSERTED),
        ("I didn't [sleep] at all", ASSERTED),
        ("no [appetite] whatsoever", ASSERTED),
        ("not only [nausea] but vomiting", ASSERTED),
        ("not only nausea but [vomiting]", ASSERTED),
        ("no side effects except [nausea]", ASSERTED),
        ("no nausea -- [headaches] every day", ASSERTED),
        ("the [headaches] weren't there before", ASSERTED),
        ("[palpitations] never happened until I took this", ASSERTED),
        ("not a day goes by without [nausea] on this", ASSERTED),
        ("I couldn't eat without [vomiting]", ASSERTED),
        ("[nausea] no. 2 since the new dose", ASSERTED),
        ("no, 3 days of [nausea] so far", ASSERTED),
        ("stopped the drug because of [hives]", ASSERTED),
        ("had to stop it due to [cramps]", ASSERTED),
        ("I no longer get [dizzy] since they cut the dose", ASSERTED),
        ("never had [migraines] before this drug", ASSERTED),
        ("I never had [a headache] this bad", ASSERTED),
        ("never felt so [tired]", ASSERTED),
        ("nobody warned me about the [weight gain]", ASSERTED),
        ("no wonder I have [heartburn]", ASSERTED),
        ("not sure if it's the pill but my [head hurts]", ASSERTED),
        ("doesn't help my pain and gives me [nausea]", ASSERTED),
        ("could be the zoloft making me [sweat]", ASSERTED),
        ("my mom says I look [pale]", ASSERTED),
        ("My doctor said she wants me off it, [rash] everywhere", ASSERTED),
        ("anyone else get [vivid dreams]?", ASSERTED),
        ("felt as if I was [drunk]", ASSERTED),
        ("in May I got [hives]", ASSERTED),
        ("started in May and it makes me [dizzy]", ASSERTED),
        ("no nausea and I have [insomnia] now", ASSERTED),
    ],
)
def test_effects_are_denied_feared_or_anothers_by_true_triggers(marked: str, expected: Assertion) -> None:
    assert assertion_of(marked) == expected


def test_the_challenge_set_has_valid_offsets_and_preferred_terms() -> None:
    terms = {t.pt for t in terminology.load()}
    posts = [json.loads(line) for line in CHALLENGE.read_text(encoding="utf-8").splitlines()]
    assert len({p["id"] for p in posts}) == len(posts)
    for post in posts:
        for piece in post["mentions"] + post["events"]:
            words = post["text"][piece["start"] : piece["end"]]
            assert words and words == words.strip(), post["id"]
        assert {e["pt"] for e in post["events"]} <= terms, post["id"]


def test_several_flags_may_be_set_and_only_words_near_the_effect_count() -> None:
    assert assertion_of("some people might get [a rash]") == Assertion(
        hypothetical=True, other_experiencer=True
    )
    assert assertion_of("my brother never had [a rash] from it") == Assertion(
        negated=True, other_experiencer=True
    )
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
def test_text_outside_a_sentence_does_not_matter(outside: str, before: str, after: str, beyond: str) -> None:
    sentence = f"{before} nausea {after}"
    alone = assertion(sentence, len(before) + 1, len(before) + 7)
    start = len(outside) + 1 + len(before) + 1
    assert assertion(f"{outside}\n{sentence}\n{beyond}", start, start + 6) == alone
