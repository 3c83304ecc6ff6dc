"""Question templates, their subjects and the order in which they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.encoder.model import Encoder
from models.summarization.medical_entities import Entity
from models.summarization.question_cues import CUES, SLOT
from models.summarization.question_templates import (
    TemplateWriter,
    distinct_entities,
    features,
    fill,
    subjects,
)
from tests.models.summarization.tiny_writers import RECOGNISER, TEMPLATES, template_weights


def test_every_template_has_one_slot_and_the_last_type_matches_every_text() -> None:
    assert all(template.count(SLOT) == 1 for _, template in CUES)
    assert [words for words, _ in CUES].index("") == len(CUES) - 1


def test_the_templates_with_the_highest_scores_come_first(small: Encoder) -> None:
    writer = TemplateWriter(small, RECOGNISER, TEMPLATES, template_weights(small, 0.2, 1.4, -0.3, 0.5))
    one, none = writer.write(["zoloft gives pain, zoloft!", "hello"])
    assert [s.text for s in one] == [
        *("Is zoloft bad?", "How zoloft?", "What of zoloft?"),
        *("Is pain bad?", "How pain?", "What of pain?"),
    ]
    assert [s.score for s in one[:3]] == [1.0, 0.5, 0.2]
    assert none == []
    assert writer.write([]) == []


def test_templates_with_equal_scores_keep_their_order() -> None:
    assert [s.text for s in fill(TEMPLATES, [0.5] * 4, ["x"])] == ["What of x?", "Is x bad?", "Why x?"]
    assert [s.score for s in fill(TEMPLATES, [-1.0, -2.0, -3.0, -4.0], ["x"])] == [0.0] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUBJECT: my left toe?\nMESSAGE: it hurts", ["my left toe"]),
        ("subject: my left toe MESSAGE: it hurts", ["my left toe"]),
        ("SUBJECT: zoloft\nMESSAGE: pain, and zoloft", ["zoloft", "pain"]),
        ("SUBJECT: this is far too long for a form of ours\nMESSAGE: hm", []),
        ("SUBJECT:\nMESSAGE: hm", []),
        ("my left toe hurts", []),
    ],
)
def test_the_subjects_are_the_entities_or_the_subject_line(text: str, expected: list[str]) -> None:
    (entities,) = RECOGNISER.entities([text])
    assert subjects(text, entities) == expected


def test_distinct_entities_are_the_first_mentions() -> None:
    entities = [Entity(0, 4, "Pain", False), Entity(5, 9, "drug", True), Entity(10, 15, "pains", False)]
    assert distinct_entities(entities) == entities[:2]


def test_cues_match_whole_words(small: Encoder) -> None:
    rows = features(small, ["Is there a CURE?", "obscure", "any side effect"])
    cues = rows[:, small.dimension : -1]
    assert cues.sum(1).tolist() == [1, 0, 1]
    assert torch.equal(rows[:, -1], torch.ones(3))
    assert rows[:, : small.dimension].norm(dim=1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


def test_templates_and_weights_must_fit(small: Encoder) -> None:
    with pytest.raises(ValueError, match="for 4 templates"):
        TemplateWriter(small, RECOGNISER, TEMPLATES, template_weights(small, 1.0))


def test_templates_are_saved_as_a_table(tmp_path: Path) -> None:
    TemplateWriter.save(TEMPLATES, tmp_path)
    assert (tmp_path / "forms.tsv").read_text(encoding="utf-8").splitlines() == ["form", *TEMPLATES]
