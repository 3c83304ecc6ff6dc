"""How short questions are scored, and the template that stands beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drugs import DrugLexicon
from models.summarization.medical_entities import Entity, OwnRecogniser
from models.types import ShortQuestion
from tests.training.fakes import Fake
from training.evaluation.evaluate import as_scores, evaluate
from training.evaluation.summarization.baselines import CUES, template
from training.evaluation.summarization.measure import Question, entity_counts

RECOGNISER = OwnRecogniser(None, ["gout", "rash"], DrugLexicon({"aspirin": "aspirin"}))


def test_entities_are_counted_by_hand() -> None:
    records = [
        Question("Aspirin and gout?", "Is aspirin good for gout?"),
        Question("Why me?", "What causes this?"),
        Question("A rash", "Is it gout?"),
    ]
    answers = ["Aspirin, ASPIRIN and a rash?", "Is it gout?", "What of gout?"]
    found = entity_counts(
        answers, records, RECOGNISER.entities(answers), RECOGNISER.entities([q.summary for q in records])
    )
    # A focus in the reference; entities of both; of the reference; something that is in neither.
    assert found.tolist() == [[1, 1, 2, 1], [0, 0, 0, 1], [1, 1, 1, 0]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("I take aspirin. Any side effect of it?", "What are the side effects of aspirin?"),
        ("Is gout hereditary", "Is gout inherited?"),
        ("please send all you have on gout", "Where can I find information on gout?"),
        ("SUBJECT: my left toe\nMESSAGE: how is it cured", "What are the treatments for my left toe?"),
        ("", "Where can I find information on ?"),
    ],
)
def test_a_template_asks_by_type_about_the_first_entity(text: str, wanted: str) -> None:
    (entities,) = RECOGNISER.entities([text])
    assert template(text, entities) == wanted


def test_a_template_takes_the_first_entity() -> None:
    assert all(question.count("{}") == 1 for _, question in CUES)
    assert CUES[-1][0] == ""
    found = template("treat", [Entity(0, 1, "one", True), Entity(2, 3, "two", True)])
    assert found == "What are the treatments for one?"


def test_scores_name_who_found_the_entities_and_the_template_stands_beside(data: Path) -> None:
    pytest.importorskip("rouge_score")
    model = Fake(lambda text: ShortQuestion("Is tea fine with ibuprofen?", "abstractive", 0.5))
    found = evaluate("summarization", model, "v1", data)
    assert found.scores["unfaithful"] == 1.0
    assert found.scores["extractive"] == 0.0
    assert found.baselines["unfaithful"] == 0.0
    assert {"rouge1_template", "rouge2_template", "rougeL_template"} <= set(found.scores)
    assert "tagger, terminology and drug lexicon" in found.definitions["entity_consistency"]
    rows = {s.name: s for s in as_scores(found)}
    assert rows["rouge1"].baseline_definition == "first sentence"
    assert rows["rouge1_template"].baseline is None
