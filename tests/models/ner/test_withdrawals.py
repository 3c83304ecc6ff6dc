"""Withdrawals that a text names as such, by rules."""

from __future__ import annotations

import pytest

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.ner.decoding import Decoding, tags_of
from models.ner.heads import Head
from models.ner.model import NerModel
from models.ner.untagged_events import named_withdrawals
from models.types import ADE, DRUG, LABELS, WITHDRAWAL, Mention

DRUGS = DrugLexicon({"zoloft": "sertraline", "suboxone": "buprenorphine"})


def named(text: str, *further: Mention) -> list[str]:
    drugs = [Mention(s.start, s.end, text[s.start : s.end], DRUG, 1.0) for s, _ in DRUGS.find(text)]
    made = named_withdrawals(text, [*drugs, *further])
    assert all((m.label, m.status, text[m.start : m.end]) == (WITHDRAWAL, None, m.text) for m in made)
    return [m.text for m in made]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zoloft withdrawal, night two. no sleep", "withdrawal"),
        ("#zoloft withdrawals are real", "withdrawals"),
        ("shaking, withdrawls from the suboxone again", "withdrawls"),
        ("the withdrawal symptoms of zoloft floor me", "withdrawal symptoms"),
        ("quit zoloft on Monday and I am going through bad withdrawal", "withdrawal"),
        ("In May I had zoloft withdrawal", "withdrawal"),
        ("off zoloft. WITHDRAWAL has set up camp", "WITHDRAWAL"),
        ("fear and panic from zoloft withdrawal", "withdrawal"),
    ],
)
def test_what_a_text_says_its_writer_has_is_named(text: str, expected: str) -> None:
    assert named(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "bank withdrawal fees went up",
        "market withdrawal of zoloft announced",
        "a cash withdrawal and a zoloft refill",
        "taper to avoid zoloft withdrawal",
        "this flu feels like suboxone withdrawal",
        "I never had zoloft withdrawal",
        "you could get zoloft withdrawal",
        "I'm so scared of the withdrawal from zoloft",
        "never quit, afraid of zoloft withdrawal",
        "dreading zoloft withdrawal next week",
        "there is a risk of withdrawal from zoloft",
        "#withdrawal zoloft",
        "zoloft withdrawal-like days",
        "withdrawn and quiet on zoloft",
        "",
    ],
)
def test_other_withdrawals_are_not(text: str) -> None:
    assert named(text) == []


def test_a_withdrawal_overlaps_no_mention() -> None:
    text = "zoloft withdrawal headache"
    assert named(text, Mention(7, 26, text[7:], ADE, 0.5)) == []


def test_the_model_adds_them_where_its_release_says_so() -> None:
    encoder = Encoder.for_inference("mini")
    model = NerModel(
        encoder,
        Head(encoder.dimension, len(tags_of(LABELS))),
        LABELS,
        DRUGS,
        decoding=Decoding(withdrawals_named=True),
    )
    # A tagger that finds nothing by itself.
    model.head.linear.weight.data.zero_()
    model.head.linear.bias.data.zero_()
    model.head.linear.bias.data[0] = 10.0
    text = "day 3 of zoloft withdrawal"
    assert [(m.text, m.label) for m in model.predict([text])[0]] == [
        ("zoloft", DRUG),
        ("withdrawal", WITHDRAWAL),
    ]
    reading = model.read([text])
    assert reading.events() == [[1.0]]
    assert [m.label for m in model.mentions_of(reading, 1.1)[0]] == [DRUG, WITHDRAWAL], "of any probability"
    model.decoding.withdrawals_named = False
    assert [m.label for m in model.predict([text])[0]] == [DRUG]
