"""What the editor learns from few questions."""

from __future__ import annotations

import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.editing.editor import Editor
from models.summarization.editing.edits import FEATURES
from models.summarization.editing.kinds import KindClassifier
from models.summarization.editing.openings import KINDS
from models.summarization.extraction.extractor import Extractor
from models.summarization.extraction.message import messages
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import OwnRecogniser
from training.summarization.data import Pair
from training.summarization.editing.gold_kinds import gold_kinds
from training.summarization.editing.train import least_margin, train_editor
from training.summarization.extraction.fit import logistic
from training.summarization.extraction.key_words import with_key_words
from training.summarization.extraction.train import train

ILLNESSES = ("gout", "lupus", "asthma", "eczema", "psoriasis", "migraine")
LEXICONS = OwnRecogniser(None, [*ILLNESSES, "rash"], DrugLexicon({"zoloft": "sertraline"}))
PAIRS = [
    pair
    for i, name in enumerate(ILLNESSES)
    for pair in (
        Pair(
            f"t{i}",
            f"My son has {name}, and he has a rash. We live far away. Is there any cure for {name}?",
            f"What are the treatments for {name}?",
        ),
        Pair(
            f"s{i}",
            f"I sleep badly with my {name} and a rash. Can I still drink milk with {name}?",
            f"Can I drink milk with {name}?",
        ),
    )
]


@pytest.mark.parametrize(
    ("summary", "kinds"),
    [
        ("What are the treatments for gout?", {"treatment"}),
        ("Where can I find information on lupus?", {"information"}),
        ("What causes gout and how is it treated?", {"cause", "treatment"}),
        ("Can Zoloft cause gout?", set()),
        ("How can I find physician(s) who specialize in gout?", {"specialist"}),
        ("Is gout hereditary?", {"inheritance"}),
    ],
)
def test_the_kinds_of_a_written_question_are_read_from_its_words(summary: str, kinds: set[str]) -> None:
    found = {kind for kind, is_asked in zip(KINDS, gold_kinds(summary), strict=True) if is_asked}
    assert found == kinds


def test_the_regression_separates_what_can_be_separated() -> None:
    x = torch.tensor(
        [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0]], dtype=torch.float64
    )
    y = torch.stack([x[:, 0], torch.zeros(4, dtype=torch.float64)], 1)
    p = (x @ logistic(x, y, penalty=100.0)).sigmoid()
    assert torch.allclose(p[:, 0], y[:, 0], atol=0.1)
    assert p[:, 1].max() < 0.05


def test_the_margin_is_the_lowest_with_enough_right_edits() -> None:
    found = [(2.0, True), (1.0, True), (0.5, False), (0.1, False)]
    assert least_margin(found, 0.9) == 1.0
    assert least_margin(found, 0.6) == 0.5
    assert least_margin([(1.0, False)], 0.9) == float("inf")


def test_what_asks_for_a_treatment_is_edited_and_another_question_is_not(mini: Encoder) -> None:
    read = with_key_words(messages(mini, LEXICONS, [p.question for p in PAIRS]), PAIRS)
    weights = train(mini, LEXICONS.drugs, PAIRS, read)
    extractor = Extractor(mini, LEXICONS, weights.rankers(), weights.thresholds)
    learnt = train_editor(extractor, PAIRS, read.messages)
    assert learnt.margin < float("inf")
    ranker = LinearRanker(learnt.ranker, FEATURES)
    # Five folds of twelve questions say little about a margin.
    extractor.editor = Editor(KindClassifier(learnt.kinds), ranker, learnt.margin - 5)
    cure, milk = extractor.extract(
        ["My aunt has gout. Is there any cure for gout?", "Can I still drink milk with gout?"]
    )
    assert (cure.text, cure.method) == ("What are the treatments for gout?", "edited")
    assert "milk" in milk.text


def test_texts_that_allow_no_edit_are_refused(mini: Encoder) -> None:
    pairs = [p for p in PAIRS if p.id.startswith("s")]
    read = with_key_words(messages(mini, LEXICONS, [p.question for p in pairs]), pairs)
    weights = train(mini, LEXICONS.drugs, pairs, read)
    extractor = Extractor(mini, LEXICONS, weights.rankers(), weights.thresholds)
    with pytest.raises(ValueError, match="two candidates"):
        train_editor(extractor, pairs, read.messages)
