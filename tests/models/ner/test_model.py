"""The tagger: repairs and runs of tags, and mentions whose offsets hold in any text."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.ner.model import Head, NerModel, repair, spans_of, tags_of
from models.text import sentences
from models.types import ADE, DRUG, LABELS, Mention

TAGS = st.lists(st.sampled_from(["O", "B-ADE", "I-ADE", "B-DRUG", "I-DRUG"]), max_size=14)
LEXICON = DrugLexicon({"zoloft": "sertraline", "st john's wort": "hypericum", "aspirin": "aspirin"})


def always(encoder: Encoder, tag: str, lexicon: DrugLexicon | None = None, weight: float = 12.0) -> NerModel:
    """A tagger that sees one tag everywhere, whatever it reads."""
    model = NerModel(encoder, Head(encoder.dimension, len(tags_of(LABELS))), LABELS, lexicon)
    torch.nn.init.zeros_(model.head.linear.weight)
    torch.nn.init.zeros_(model.head.linear.bias)
    model.head.linear.bias.data[model.tags.index(tag)] = weight
    return model


@pytest.fixture(scope="module")
def wild(small: Encoder) -> NerModel:
    """A tagger of random weights, which sees all sorts of tags."""
    torch.manual_seed(1)
    model = NerModel(small, Head(small.dimension, len(tags_of(LABELS))), LABELS, LEXICON)
    torch.nn.init.normal_(model.head.linear.weight)
    return model


@pytest.mark.parametrize(
    ("tags", "wanted"),
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
    tags: list[str], wanted: list[str]
) -> None:
    assert repair(tags) == wanted


@given(TAGS)
def test_a_repair_fills_gaps_inside_one_label_and_nothing_else(tags: list[str]) -> None:
    repaired = repair(tags)
    assert len(repaired) == len(tags)
    assert repaired[:1] == tags[:1]
    assert repaired[-1:] == tags[-1:]
    for i, (before, after) in enumerate(zip(tags, repaired, strict=True)):
        if before != after:
            assert before == "O"
            assert after == tags[i - 1] == tags[i + 1]
    assert repair(repaired) == repaired


@pytest.mark.parametrize(
    ("tags", "wanted"),
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
def test_runs_of_tags_become_spans(tags: list[str], wanted: list[tuple[str, int, int]]) -> None:
    assert spans_of(tags) == wanted


@given(TAGS)
def test_spans_are_in_order_and_hold_every_tagged_word_under_its_own_label(tags: list[str]) -> None:
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


def test_the_head_keeps_the_leading_shape_and_reads_the_flag() -> None:
    torch.manual_seed(0)
    head = Head(6, 4).eval()
    hidden = torch.randn(2, 3, 6)
    logits = head(hidden, torch.zeros(2, 3))
    assert logits.shape == (2, 3, 4)
    assert head(hidden[0, 0], torch.tensor(0.0)).shape == (4,)
    moved = head(hidden, torch.ones(2, 3)) - logits
    assert torch.allclose(moved, head.linear.weight[:, -1].expand(2, 3, 4), atol=1e-6)


def sound(text: str, mentions: list[Mention]) -> bool:
    """Whether each mention is the piece of the text that its offsets name, and all stand in text order."""
    return [(m.start, m.end) for m in mentions] == sorted((m.start, m.end) for m in mentions) and all(
        0 <= m.start < m.end <= len(text)
        and m.text == text[m.start : m.end] == m.text.strip()
        and m.label in LABELS
        and 0 < m.score <= 1
        for m in mentions
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=80), max_size=4))
@example(["zoloft aspirin\nst john's wort. pain! \U0001f600 pain"])
@example(["", " ", "\0", "\U0001f600"])
def test_offsets_hold_in_any_text(wild: NerModel, batch: list[str]) -> None:
    found = wild.predict(batch)
    assert len(found) == len(batch)
    assert all(sound(text, mentions) for text, mentions in zip(batch, found, strict=True))


def test_random_weights_tag_several_labels_and_offsets_hold_after_emoji(wild: NerModel) -> None:
    text = "\U0001f922 the drug made me sick, dizzy and \U0001f634 tired. caf\u00e9 pain since monday! " * 5
    (mentions,) = wild.predict([text])
    assert len({m.label for m in mentions}) > 1
    assert sound(text, mentions)


def test_a_texts_mentions_do_not_depend_on_its_company(wild: NerModel) -> None:
    batch = ["the drug made me sick", "pain. pain! and more of it", "", "zoloft since monday"]
    together = wild.predict(batch)
    for text, mentions in zip(batch, together, strict=True):
        (alone,) = wild.predict([text])
        assert [(m.start, m.end, m.label) for m in alone] == [(m.start, m.end, m.label) for m in mentions]


def test_no_word_of_a_text_of_five_thousand_words_is_left_out(small: Encoder) -> None:
    text = " ".join(f"word{i}" for i in range(5000))
    (mentions,) = always(small, "B-ADE").predict([text])
    assert [m.text for m in mentions] == text.split()
    assert sound(text, mentions)


def test_a_mention_never_leaves_its_sentence(small: Encoder) -> None:
    text = "It hurt a lot. Then it stopped\nand came back"
    (mentions,) = always(small, "I-ADE").predict([text])
    assert [(m.start, m.end) for m in mentions] == [(s.start, s.end) for s in sentences(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        (" \n\t", []),
        ("\U0001f600\U0001f922", ["\U0001f600", "\U0001f922"]),
        ("x" * 3000, ["x" * 3000]),
        ("pain " + "y" * 3000 + " pain", ["pain", "y" * 3000, "pain"]),
    ],
)
def test_texts_that_are_hardly_texts_are_tagged_word_by_word(
    small: Encoder, text: str, wanted: list[str]
) -> None:
    (mentions,) = always(small, "B-ADE").predict([text])
    assert [m.text for m in mentions] == wanted


def test_a_word_that_the_tokenizer_drops_is_never_tagged(small: Encoder) -> None:
    found = always(small, "B-ADE").predict(["\0", "pain \0 pain", "\u200b"])
    assert [[m.text for m in mentions] for mentions in found] == [[], ["pain", "pain"], []]


def test_no_texts_have_no_mentions(small: Encoder) -> None:
    assert always(small, "B-ADE").predict([]) == []


def test_the_continuation_tag_is_never_the_answer(small: Encoder) -> None:
    model = always(small, "X")
    model.head.linear.bias.data[model.tags.index("B-ADE")] = 5.0
    (mentions,) = model.predict(["drug pain"])
    assert [m.text for m in mentions] == ["drug", "pain"]


def test_a_score_is_the_probability_among_the_tags_that_a_word_may_have(small: Encoder) -> None:
    # e^2 against e^0 for each of the ten other tags but X.
    (mentions,) = always(small, "I-ADE", weight=2.0).predict(["pain in the head"])
    assert [m.text for m in mentions] == ["pain in the head"]
    assert mentions[0].score == pytest.approx(math.e**2 / (math.e**2 + 10), abs=1e-4)


def test_the_lexicons_drugs_are_added_where_no_drug_is_tagged(small: Encoder) -> None:
    text = "Took ZOLOFT and St John's Wort. Now pain."
    (mentions,) = always(small, "O", LEXICON).predict([text])
    assert [(m.text, m.label, m.score, m.generic) for m in mentions] == [
        ("ZOLOFT", DRUG, 1.0, "sertraline"),
        ("St John's Wort", DRUG, 1.0, "hypericum"),
    ]
    assert sound(text, mentions)


def test_a_tagged_drug_gets_its_generic_name_and_is_not_added_again(small: Encoder) -> None:
    (mentions,) = always(small, "B-DRUG", LEXICON).predict(["Zoloft hurts"])
    assert [(m.text, m.generic) for m in mentions] == [("Zoloft", "sertraline"), ("hurts", None)]
    assert all(m.score < 1 for m in mentions)


def test_a_drug_that_overlaps_a_tagged_drug_is_not_added(small: Encoder) -> None:
    (mentions,) = always(small, "I-DRUG", LEXICON).predict(["Zoloft and aspirin"])
    assert [m.text for m in mentions] == ["Zoloft and aspirin"]


def test_a_drug_inside_an_adverse_event_is_added_beside_it(small: Encoder) -> None:
    (mentions,) = always(small, "I-ADE", LEXICON).predict(["aspirin allergy"])
    assert [(m.text, m.label) for m in mentions] == [("aspirin", DRUG), ("aspirin allergy", ADE)]


def test_without_a_lexicon_no_drug_is_added(small: Encoder) -> None:
    assert always(small, "O").predict(["Took Zoloft."]) == [[]]
