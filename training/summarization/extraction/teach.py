"""What the rankers learn: of each candidate how much of it is in the short question that a person wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from rouge_score.rouge_scorer import RougeScorer

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction import candidates, focus
from models.summarization.extraction.extractor import Answers, answers, most_probable, topics
from models.summarization.extraction.focus import FUNCTION_WORDS, Focus
from models.summarization.extraction.message import messages
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import OwnRecogniser, named_in, word_keys
from training.summarization.data import Pair
from training.summarization.extraction.fit import Group, fit

#: Values that differ by so much count e times as much.
FOCUS_TEMPERATURE, ANSWER_TEMPERATURE = 0.2, 0.08
#: Added to the score of a candidate that asks: a person who reads the answer expects a question.
QUESTION_BONUS = 0.5
#: Of the focuses that are inserted at least this share shall be in the written question, with all words.
PRECISION = 0.7


class Weights(NamedTuple):
    """What a release of the extractor holds."""

    focus: dict[str, float]
    answer: dict[str, float]
    least_focus: float
    """probability from which on a focus is inserted"""


def train(encoder: Encoder, lexicons: OwnRecogniser, pairs: Sequence[Pair]) -> Weights:
    """Both rankers, and the least probability of a focus; the encoder stays as it is. Raises ValueError
    where no text has two candidates.
    """
    read = messages(encoder, lexicons, [p.question for p in pairs])
    about = topics(encoder, read)
    in_reference = [
        _in_reference(t.found, p.summary, lexicons.drugs) for t, p in zip(about, pairs, strict=True)
    ]
    groups = [Group(t.features, s) for t, s in zip(about, in_reference, strict=True) if any(s)]
    of_focus = fit(groups, focus.FEATURES, FOCUS_TEMPERATURE)
    ranker = LinearRanker(of_focus, focus.FEATURES)
    chosen = [most_probable(ranker, t) for t in about]
    least = _least(chosen, in_reference)
    offered = [
        answers(message, t.found[i] if i is not None and p >= least else None)
        for message, t, (i, p) in zip(read, about, chosen, strict=True)
    ]
    values = _values(encoder, offered, pairs)
    of_answer = fit(
        [Group(o.features, v) for o, v in zip(offered, values, strict=True)],
        candidates.FEATURES,
        ANSWER_TEMPERATURE,
    )
    of_answer["question"] += QUESTION_BONUS
    return Weights(of_focus, of_answer, least)


def _in_reference(found: Sequence[Focus], summary: str, drugs: DrugLexicon) -> list[float]:
    """The share of each candidate's words that are in the written question, function words aside; 1 for
    another name of a medicine in it.
    """
    reference = set(word_keys(summary))
    bags = [set(word_keys(f.text)) - FUNCTION_WORDS for f in found]
    return [
        1.0 if named_in(f.text, summary, drugs) else len(bag & reference) / max(1, len(bag))
        for f, bag in zip(found, bags, strict=True)
    ]


def _least(chosen: Sequence[tuple[int | None, float]], in_reference: Sequence[Sequence[float]]) -> float:
    """The lowest probability from which on PRECISION of the focuses are wholly in the written question."""
    found = [(p, s[i] == 1) for (i, p), s in zip(chosen, in_reference, strict=True) if i is not None]
    right, least = 0, 1.0
    for n, (probability, is_right) in enumerate(sorted(found, reverse=True), 1):
        right += is_right
        if right >= PRECISION * n:
            least = probability
    return round(least, 3)


def _values(encoder: Encoder, offered: Sequence[Answers], pairs: Sequence[Pair]) -> list[list[float]]:
    """ROUGE-1 F1 of each answer with the written question, plus the cosine of their vectors."""
    texts = [[c.text for c in o.found] for o in offered]
    flat = [t for own in texts for t in own]
    references = [p.summary for p, own in zip(pairs, texts, strict=True) for _ in own]
    scorer = RougeScorer(["rouge1"], use_stemmer=True)
    rouge = torch.tensor(
        [scorer.score(r, t)["rouge1"].fmeasure for r, t in zip(references, flat, strict=True)]
    )
    cosines = (encoder.embed(flat) * encoder.embed(references)).sum(1)
    values = iter((rouge + cosines).tolist())
    return [[next(values) for _ in own] for own in texts]
