"""The tagger: batch-invariant mentions with correct offsets in any text, and drugs added from the lexicon."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.ner import model as ner_model
from models.ner.decoding import Decoding, tags_of
from models.ner.heads import EventHead, Head
from models.ner.model import NerModel
from models.releases.manifest import Release
from models.types import ADE, DRUG, LABELS, WITHDRAWAL, Mention

LEXICON = DrugLexicon({"zoloft": "sertraline", "st john's wort": "hypericum", "aspirin": "aspirin"})


def constant(
    encoder: Encoder, tag: str, lexicon: DrugLexicon | None = None, weight: float = 12.0
) -> NerModel:
    """A tagger with the same tag for every word."""
    model = NerModel(encoder, Head(encoder.dimension, len(tags_of(LABELS))), LABELS, lexicon)
    torch.nn.init.zeros_(model.head.linear.weight)
    torch.nn.init.zeros_(model.head.linear.bias)
    model.head.linear.bias.data[model.tags.index(tag)] = weight
    return model


@pytest.fixture(scope="module")
def random_tagger(small: Encoder) -> NerModel:
    """A tagger with random weights, whose output has all kinds of tags."""
    torch.manual_seed(1)
    model = NerModel(small, Head(small.dimension, len(tags_of(LABELS))), LABELS, LEXICON)
    torch.nn.init.normal_(model.head.linear.weight)
    return model


def test_the_head_keeps_the_leading_dimensions_and_uses_the_flag() -> None:
    torch.manual_seed(0)
    head = Head(6, 4).eval()
    hidden = torch.randn(2, 3, 6)
    logits = head(hidden, torch.zeros(2, 3))
    assert logits.shape == (2, 3, 4)
    assert head(hidden[0, 0], torch.tensor(0.0)).shape == (4,)
    change = head(hidden, torch.ones(2, 3)) - logits
    assert torch.allclose(change, head.linear.weight[:, -1].expand(2, 3, 4), atol=1e-6)


def valid(text: str, mentions: list[Mention]) -> bool:
    """Whether the mentions are in text order, and each has the text at its offsets, a label and a score."""
    return [(m.start, m.end) for m in mentions] == sorted((m.start, m.end) for m in mentions) and all(
        0 <= m.start < m.end <= len(text)
        and m.text == text[m.start : m.end] == m.text.strip()
        and m.label in LABELS
        and 0 < m.score <= 1
        for m in mentions
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=80), max_size=4))
@example(["\U0001f922 the drug made me sick, dizzy and \U0001f634 tired. caf\u00e9 pain since monday! " * 5])
@example(["zoloft aspirin\nst john's wort. pain! \U0001f600 pain"])
@example(["", " ", "\0", "\U0001f600"])
def test_offsets_are_correct_in_any_text(random_tagger: NerModel, batch: list[str]) -> None:
    predicted = random_tagger.predict(batch)
    assert len(predicted) == len(batch)
    assert all(valid(text, mentions) for text, mentions in zip(batch, predicted, strict=True))


def test_mentions_are_batch_invariant(random_tagger: NerModel) -> None:
    batch = ["the drug made me sick", "pain. pain! and more of it", "", "zoloft since monday"]
    together = random_tagger.predict(batch)
    for text, mentions in zip(batch, together, strict=True):
        (alone,) = random_tagger.predict([text])
        assert [(m.start, m.end, m.label) for m in alone] == [(m.start, m.end, m.label) for m in mentions]


def test_every_word_of_a_text_of_five_thousand_words_is_tagged(small: Encoder) -> None:
    text = " ".join(f"word{i}" for i in range(5000))
    (mentions,) = constant(small, "B-ADE").predict([text])
    assert [m.text for m in mentions] == text.split()
    assert valid(text, mentions)


def test_a_mention_is_within_one_sentence(small: Encoder) -> None:
    text = "It hurt a lot. Then it stopped\nand came back"
    (mentions,) = constant(small, "I-ADE").predict([text])
    found = [text[m.start : m.end] for m in mentions]
    assert found == ["It hurt a lot", "Then it stopped", "and came back"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("\U0001f600\U0001f922", ["\U0001f600", "\U0001f922"]),
    ],
)
def test_unusual_texts_are_tagged_word_by_word(small: Encoder, text: str, expected: list[str]) -> None:
    (mentions,) = constant(small, "B-ADE").predict([text])
    assert [m.text for m in mentions] == expected


def test_a_word_that_the_tokenizer_drops_is_never_tagged(small: Encoder) -> None:
    tagged = constant(small, "B-ADE").predict(["\0", "pain \0 pain", "\u200b"])
    assert [[m.text for m in mentions] for mentions in tagged] == [[], ["pain", "pain"], []]


def test_no_word_gets_the_continuation_tag(small: Encoder) -> None:
    model = constant(small, "X")
    model.head.linear.bias.data[model.tags.index("B-ADE")] = 5.0
    (mentions,) = model.predict(["drug pain"])
    assert [m.text for m in mentions] == ["drug", "pain"]


def test_a_score_is_the_probability_among_the_tags_other_than_continuation(small: Encoder) -> None:
    # e^2 for the tag and e^0 for each of the ten other tags without X.
    (mentions,) = constant(small, "I-ADE", weight=2.0).predict(["pain in the head"])
    assert [m.text for m in mentions] == ["pain in the head"]
    assert mentions[0].score == pytest.approx(math.e**2 / (math.e**2 + 10), abs=1e-4)


@pytest.mark.parametrize(
    ("tag", "lexicon", "text", "expected"),
    [
        (
            "O", LEXICON, "Took ZOLOFT and St John's Wort. Now pain.",
            [("ZOLOFT", DRUG, "sertraline"), ("St John's Wort", DRUG, "hypericum")],
        ),
        ("O", None, "Took Zoloft.", []),
        ("B-DRUG", LEXICON, "Zoloft hurts", [("Zoloft", DRUG, "sertraline"), ("hurts", DRUG, None)]),
        ("I-DRUG", LEXICON, "Zoloft and aspirin", [("Zoloft and aspirin", DRUG, None)]),
        (
            "I-ADE", LEXICON, "aspirin allergy",
            [("aspirin", DRUG, "aspirin"), ("aspirin allergy", ADE, None)],
        ),
        # No effect is a part of a drug, of a hashtag or of a handle.
        ("B-ADE", LEXICON, "took aspirin", [("took", ADE, None), ("aspirin", DRUG, "aspirin")]),
        (
            "B-ADE", LEXICON, "pain #headache again @aspirin #zoloft",
            [("pain", ADE, None), ("again", ADE, None), ("zoloft", DRUG, "sertraline")],
        ),
    ],
)  # fmt: skip
def test_drugs_of_the_lexicon_are_added_where_no_drug_is_tagged(
    small: Encoder, tag: str, lexicon: DrugLexicon | None, text: str, expected: list[tuple[str, str, str]]
) -> None:
    (mentions,) = constant(small, tag, lexicon).predict([text])
    assert [(m.text, m.label, m.generic) for m in mentions] == expected
    assert all((m.score == 1.0) is (m.label == DRUG and tag[2:] != DRUG) for m in mentions)
    assert valid(text, mentions)


def test_the_transitions_decide_together_with_the_probabilities(small: Encoder) -> None:
    plain = constant(small, "B-ADE", weight=2.0)
    tags = plain.tags
    follow = np.full((len(tags) + 1, len(tags)), -1000.0, np.float32)
    b, i, o = (tags.index(t) for t in ("B-ADE", "I-ADE", "O"))
    # One mention at most in a sentence, of the first two words.
    follow[-1, b] = follow[b, i] = follow[i, o] = follow[o, o] = 0.0
    decoded = NerModel(small, plain.head, LABELS, None, decoding=Decoding(transitions=follow))
    found = decoded.predict(["pain pain pain pain", "", "pain pain pain\npain"])
    assert [[m.text for m in own] for own in found] == [["pain pain"], [], ["pain pain", "pain"]]
    assert [m.text for m in plain.predict(["pain pain"])[0]] == ["pain", "pain"]


def test_transitions_of_another_number_of_tags_are_refused(small: Encoder) -> None:
    plain = constant(small, "O")
    with pytest.raises(ValueError, match="for 12 tags"):
        NerModel(small, plain.head, LABELS, None, decoding=Decoding(transitions=np.zeros((3, 2), np.float32)))


def with_event_head(
    model: NerModel, logit: float, *, event_weight: float = 0.0, event_below: float = 0.0
) -> NerModel:
    """The tagger with a head that gives every sentence the same logit."""
    head = EventHead(model.encoder.dimension)
    torch.nn.init.zeros_(head.linear.weight)
    torch.nn.init.constant_(head.linear.bias, logit)
    return NerModel(
        model.encoder,
        model.head,
        LABELS,
        model.lexicon,
        event_head=head,
        decoding=Decoding(event_weight=event_weight, event_below=event_below),
    )


def test_the_probability_of_an_event_multiplies_the_scores_of_coded_mentions_only(small: Encoder) -> None:
    text = "zoloft gave me pain"
    for tag, coded in (("B-ADE", True), ("B-WITHDRAWAL", True), ("B-INDICATION", False)):
        (plain,) = constant(small, tag, LEXICON).predict([text])
        (weighted,) = with_event_head(constant(small, tag, LEXICON), math.log(1 / 3)).predict([text])
        for one, other in zip(plain, weighted, strict=True):
            factor = 0.25 if coded and one.label != DRUG else 1.0
            assert other.score == pytest.approx(factor * one.score, abs=1e-4)


def test_a_sentence_below_the_threshold_has_no_coded_mention_but_its_drugs(small: Encoder) -> None:
    tagger = constant(small, "I-ADE", LEXICON)
    (mentions,) = with_event_head(tagger, 0.0, event_below=0.51).predict(["aspirin and\nit hurts"])
    assert [(m.text, m.label) for m in mentions] == [("aspirin", DRUG)]
    (mentions,) = with_event_head(tagger, 0.0, event_below=0.49).predict(["it hurts"])
    assert [m.label for m in mentions] == [ADE]


def test_the_odds_of_an_event_raise_or_lower_the_tags_that_are_coded(small: Encoder) -> None:
    tagger = constant(small, "O", weight=2.0)
    assert with_event_head(tagger, 3.0, event_weight=0.5).predict(["it hurts"]) == [[]]
    (mentions,) = with_event_head(tagger, 3.0, event_weight=0.8).predict(["it hurts"])
    assert {m.label for m in mentions} <= {ADE, WITHDRAWAL}
    assert mentions
    (mentions,) = with_event_head(tagger, 1000.0, event_weight=0.39).predict(["it hurts"])
    assert mentions == [], "the odds count up to a limit"
    tagger = constant(small, "I-ADE", weight=2.0)
    assert with_event_head(tagger, -3.0, event_weight=0.8).predict(["it hurts"]) == [[]]
    assert with_event_head(tagger, -3.0, event_weight=0.5).predict(["it hurts"]) != [[]]


def test_each_sentence_has_its_probability_of_an_event(small: Encoder) -> None:
    torch.manual_seed(5)
    head = EventHead(small.dimension)
    torch.nn.init.normal_(head.linear.weight)
    model = NerModel(small, Head(small.dimension, len(tags_of(LABELS))), LABELS, None, event_head=head)
    first, second = "the drug made me sick\n", "pain since monday"
    (one,), (two,), both, nothing = model.read([first, second, first + second, ""]).events()
    assert one != two
    assert both == pytest.approx([one, two], abs=1e-5)
    assert nothing == []
    assert constant(small, "O").read([first]).events() == [[1.0]]


def test_padding_does_not_change_whether_a_sentence_reports_an_event() -> None:
    torch.manual_seed(2)
    head, hidden = EventHead(6).eval(), torch.randn(2, 5, 6)
    inside = torch.tensor([[True, True, False, False, False], [True] * 5])
    alone = torch.stack([head(hidden[0, :2]), head(hidden[1])])
    assert torch.allclose(head(hidden, inside), alone, atol=1e-6)


@torch.inference_mode()
def test_a_sentence_whose_tags_are_unclear_is_read_in_32_bits(
    small: Encoder, random_tagger: NerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact encoder has other weights here, so that its hidden states differ at every piece."""
    torch.manual_seed(5)
    other = Encoder(copy.deepcopy(small.model), small.tokenizer, small.max_pieces)
    for parameter in other.model.parameters():
        parameter.data += torch.randn_like(parameter) / 10

    def tagger(encoder: Encoder, exact: Encoder | None = None) -> NerModel:
        return NerModel(encoder, random_tagger.head, LABELS, LEXICON, exact=exact)

    texts = ["the drug made me sick. then it stopped", "", "pain since monday", "zoloft! headache and more"]
    rough, exact, both = tagger(small).read(texts), tagger(other).read(texts), tagger(small, other)
    assert [t.tags for t in rough.tagged] != [t.tags for t in exact.tagged]
    _, margins = both._tagged(texts, rough.sentences, [t.pieces for t in rough.tagged], rough.hidden)
    limit = float(np.sort(margins)[2])
    monkeypatch.setattr(ner_model, "UNCLEAR", limit)
    mixed = both.read(texts)
    is_unclear = (margins < limit).tolist()
    assert sum(is_unclear) == 2
    for i, unclear in enumerate(is_unclear):
        own, expected = mixed.tagged[i], (exact if unclear else rough).tagged[i]
        assert (own.tags, own.event, own.first) == (expected.tags, expected.event, expected.first)
        rows = slice(own.first, own.first + len(own.pieces.pieces))
        same = [torch.allclose(mixed.hidden[rows], r.hidden[rows], atol=1e-4) for r in (exact, rough)]
        assert same == [unclear, not unclear]


def test_only_a_tagger_in_16_bits_has_a_second_encoder(tiny: dict[str, Release]) -> None:
    assert NerModel.load(tiny["ner"]).exact is None
    model = NerModel.load(tiny["ner"], dtype=torch.bfloat16)
    assert model.exact is not None
    assert (model.encoder.model.dtype, model.exact.model.dtype) == (torch.bfloat16, torch.float32)
