"""Fitting forms and the choice among candidates."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.decoding.generation import Summary
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.question_cues import CUES
from models.summarization.reranker import FEATURES
from training.summarization.data import Pair
from training.summarization.question_types import (
    Choice,
    fit_forms,
    fit_ranker,
    form_scores,
    learned_forms,
    ridge,
)

RECOGNISER = OwnRecogniser(None, ["gout", "rash"], DrugLexicon({"aspirin": "aspirin"}))
PAIRS = [
    Pair("a", "my gout is a problem, who makes aspirin", "Who makes aspirin?"),
    Pair("b", "the maker of aspirin i want to know", "Who makes aspirin?"),
    Pair("c", "gout how is it treated", "What are the treatments for gout?"),
    Pair("d", "a rash. treated how", "What are the treatments for rash?"),
]


def entities(pairs: Sequence[Pair]) -> dict[str, list[object]]:
    found = RECOGNISER.entities([p.summary for p in pairs])
    return {p.id: list(e) for p, e in zip(pairs, found, strict=True)}


def test_forms_of_two_summaries_are_learned_and_those_of_the_cues_are_not_repeated() -> None:
    forms = learned_forms(PAIRS, entities(PAIRS))  # type: ignore[arg-type]
    assert forms == [*(form for _, form in CUES), "Who makes {}?"]
    assert learned_forms(PAIRS[1:], entities(PAIRS)) == [form for _, form in CUES]  # type: ignore[arg-type]


def test_the_score_of_a_form_is_the_f1_of_its_words_with_the_right_summary() -> None:
    forms = ["Who makes {}?", "Why {}?"]
    scores = form_scores(forms, PAIRS[:1], RECOGNISER.entities([PAIRS[0].question]))
    # "who makes gout" would be 2/3; with aspirin it is right. "why aspirin" has one word of five.
    assert scores.flatten().tolist() == pytest.approx([1.0, 0.4])
    assert form_scores(forms, [Pair("x", "", "Who makes it?")], [[]])[0, 0].item() == pytest.approx(0.8)


def test_ridge_regression_fits_a_line_and_leaves_the_constant_free() -> None:
    x = torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    y = torch.tensor([[5.0], [7.0], [9.0]])
    assert ridge(x, y, 1e-9).flatten().tolist() == pytest.approx([2.0, 5.0], abs=1e-4)
    strong = ridge(x, y, 1e6).flatten().tolist()
    assert strong == pytest.approx([0.0, 7.0], abs=1e-3)


def test_the_question_decides_the_form(tiny_bert: str) -> None:
    pairs = [Pair(f"{p.id}{i}", p.question, p.summary) for i in range(5) for p in PAIRS]
    writer = fit_forms(Encoder.load(tiny_bert), RECOGNISER, pairs, entities(pairs))  # type: ignore[arg-type]
    summaries = writer.write(["aspirin, who is the maker of aspirin", "the rash: how is it treated"])
    assert summaries[0][0].text == "Who makes aspirin?"
    assert summaries[1][0].text == "What are the treatments for rash?"


class Two:
    """A decoder that is wrong where the text begins with a, and a form that is wrong elsewhere."""

    def candidates(self, texts: Sequence[str]) -> list[tuple[list[str], list[list[float]]]]:
        out = []
        for text in texts:
            likelihood, form_score = (-5.0, 0.9) if text.startswith("a") else (-0.1, 0.2)
            rows = [[likelihood, 0, 1, 0, 0, 0, 0, 1, 1], [-1.0, form_score, 0, 0, 0, 0, 0, 1, 1]]
            answers = ["wrong", "the answer"] if text.startswith("a") else ["the answer", "wrong"]
            out.append((answers, [[float(x) for x in row] for row in rows]))
        return out

    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        raise AssertionError("candidates are enough")


def test_the_ranker_is_better_than_both_ways_on_questions_that_it_was_not_fitted_on() -> None:
    pytest.importorskip("rouge_score")
    pairs = [Pair(str(i), f"{'ab'[i % 3 > 0]} {i}", "the answer") for i in range(30)]
    weights, choice = fit_ranker(Two(), pairs)  # type: ignore[arg-type]
    assert len(weights) == len(FEATURES)
    assert choice.questions == 30
    assert choice.scores == pytest.approx({"pointer": 200 / 3, "templates": 100 / 3, "ranked": 100})


def test_another_way_of_choosing_must_be_better_than_the_decoder_by_a_margin() -> None:
    def best(**scores: float) -> str:
        return Choice(scores, 9).best(0.5)

    assert best(pointer=40.0, templates=30.0, ranked=40.4) == "pointer"
    assert best(pointer=40.0, templates=30.0, ranked=40.5) == "ranked"
    assert best(pointer=40.0, templates=42.0, ranked=41.0) == "templates"
