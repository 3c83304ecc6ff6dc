"""Forms with one place, and the choice among them and the decoder's hypotheses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.generation import Written
from models.summarization.medical_entities import Entity, OwnRecogniser
from models.summarization.question_cues import CUES, PLACE
from models.summarization.question_templates import TemplateWriter, distinct, features, filled, subjects
from models.summarization.reranker import FEATURES, UNFITTED, RankedWriter, f1, numbers
from tests.models.summarization.test_generation import written

RECOGNISER = OwnRecogniser(None, ["pain"], DrugLexicon({"zoloft": "sertraline"}))
FORMS = ["What of {}?", "Is {} bad?", "Why {}?", "How {}?"]


def weights(small: Encoder, *worth: float) -> torch.Tensor:
    """Every text has each form for so much."""
    found = torch.zeros(small.dimension + len(CUES), len(worth))
    found[-1] = torch.tensor(worth)
    return found


def test_every_form_has_one_place_and_the_last_is_for_every_text() -> None:
    assert all(form.count(PLACE) == 1 for _, form in CUES)
    assert [words for words, _ in CUES].index("") == len(CUES) - 1


def test_the_forms_that_are_worth_most_come_first(small: Encoder) -> None:
    writer = TemplateWriter(small, RECOGNISER, FORMS, weights(small, 0.2, 1.4, -0.3, 0.5))
    one, none = writer.write(["zoloft gives pain, zoloft!", "hello"])
    assert [w.text for w in one] == [
        *("Is zoloft bad?", "How zoloft?", "What of zoloft?"),
        *("Is pain bad?", "How pain?", "What of pain?"),
    ]
    assert [w.score for w in one[:3]] == [1.0, 0.5, 0.2]
    assert none == []
    assert writer.write([]) == []


def test_equal_forms_stay_in_their_order() -> None:
    assert [w.text for w in filled(FORMS, [0.5] * 4, ["x"])] == ["What of x?", "Is x bad?", "Why x?"]
    assert [w.score for w in filled(FORMS, [-1.0, -2.0, -3.0, -4.0], ["x"])] == [0.0] * 3


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SUBJECT: my left toe?\nMESSAGE: it hurts", ["my left toe"]),
        ("subject: my left toe MESSAGE: it hurts", ["my left toe"]),
        ("SUBJECT: zoloft\nMESSAGE: pain, and zoloft", ["zoloft", "pain"]),
        ("SUBJECT: this is far too long for a form of ours\nMESSAGE: hm", []),
        ("SUBJECT:\nMESSAGE: hm", []),
        ("my left toe hurts", []),
    ],
)
def test_a_text_is_about_its_entities_or_its_subject_line(text: str, wanted: list[str]) -> None:
    (entities,) = RECOGNISER.entities([text])
    assert subjects(text, entities) == wanted


def test_an_entity_counts_once_where_it_is_named_first() -> None:
    found = [Entity(0, 4, "Pain", False), Entity(5, 9, "drug", True), Entity(10, 15, "pains", False)]
    assert distinct(found) == found[:2]


def test_cues_are_whole_words(small: Encoder) -> None:
    found = features(small, ["Is there a CURE?", "obscure", "any side effect"])
    cues = found[:, small.dimension : -1]
    assert cues.sum(1).tolist() == [1, 0, 1]
    assert torch.equal(found[:, -1], torch.ones(3))
    assert found[:, : small.dimension].norm(dim=1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


def test_forms_and_weights_must_fit(small: Encoder) -> None:
    with pytest.raises(ValueError, match="for 4 forms"):
        TemplateWriter(small, RECOGNISER, FORMS, weights(small, 1.0))


def test_the_numbers_of_a_candidate_by_hand() -> None:
    texts, rows = numbers([Written("a b", 0.5)], [Written("a c", 0.25), Written("x y", 0.75)], [0.1, 0.0])
    assert texts == ["a b", "a c", "x y"]
    names = [dict(zip(FEATURES, row, strict=True)) for row in rows]
    assert [r["written"] for r in names] == [1, 0, 0]
    assert [r["worth"] for r in names] == [0, 0.25, 0.75]
    assert [r["log_probability"] for r in names] == pytest.approx([math.log(p) for p in (0.5, 0.1, 1e-4)])
    assert [r["place_written"] for r in names] == [0, 0, 0]
    assert [r["place_forms"] for r in names] == [0, 0, 1]
    # F1 of a b and a c is 0.5.
    assert [r["agreement_written"] for r in names] == pytest.approx([1.0, 0.5, 0.0])
    assert [r["agreement_forms"] for r in names] == pytest.approx([0.125, 0.25, 0.75])


def test_without_forms_there_is_nothing_to_agree_with() -> None:
    _, rows = numbers([Written("a b", 0.5)], [], [])
    assert rows[0][FEATURES.index("agreement_forms")] == 0
    from collections import Counter  # noqa: PLC0415

    assert f1(Counter(), Counter()) == 0


def ranked(small: Encoder, *worth: float, by: str = "worth") -> RankedWriter:
    templates = TemplateWriter(small, RECOGNISER, FORMS, weights(small, *worth))
    return RankedWriter(written(small), templates, [float(name == by) for name in FEATURES])


def test_the_weights_decide_between_decoder_and_forms(small: Encoder) -> None:
    text = "what is zoloft?"
    (found,) = ranked(small, 0.1, 0.9, 0.3, 0.2).write([text])
    assert [w.text for w in found[:3]] == ["Is zoloft bad?", "Why zoloft?", "How zoloft?"]
    assert found[0].score == 0.9
    (found,) = ranked(small, 0.1, 0.9, 0.3, 0.2, by="written").write([text])
    assert [w.text for w in found[:3]] == [w.text for w in written(small).write([text])[0]]
    with pytest.raises(ValueError, match="2 weights"):
        RankedWriter(written(small), ranked(small, *[0.1] * 4).templates, [1.0, 2.0])


def test_a_text_is_ranked_the_same_in_any_batch(small: Encoder) -> None:
    writer = RankedWriter(written(small), ranked(small, *[0.1, 0.9, 0.3, 0.2]).templates, UNFITTED)
    texts = ["zoloft gives pain", "x", "", "is the drug a pain?"]
    together = writer.write(texts)
    assert [writer.write([t])[0] for t in texts] == together
    assert all(together)


def test_a_given_summary_is_as_likely_as_when_it_was_found(small: Encoder) -> None:
    writer = written(small)
    texts = ["what is the drug?", "the pain is the drug"]
    for text, found in zip(texts, writer.write(texts), strict=True):
        again = writer.scores([text], [[w.text for w in found]])[0]
        for one, w in zip(again, found, strict=True):
            # A piece that stands alone may be read again as another one.
            assert one == pytest.approx(w.score, abs=2e-3) or len(w.text.split()) != len(set(w.text.split()))
    assert writer.scores(["drug"], [["zebra"], []][:1])[0][0] < 0.01
    assert writer.scores(["drug"], [[]]) == [[]]


def test_the_forms_of_a_release_are_a_table(tmp_path: Path) -> None:
    TemplateWriter.save(FORMS, tmp_path)
    assert (tmp_path / "forms.tsv").read_text(encoding="utf-8").splitlines() == ["form", *FORMS]
