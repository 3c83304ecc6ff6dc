"""Trains the rankers; the target of a candidate is its overlap with the written short question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction import answer_candidates, focus_features, inserted_names
from models.summarization.extraction.extractor import (
    Answers,
    Thresholds,
    Topics,
    answers,
    choice,
    likely,
    sigmoids,
    topics,
)
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.inserted_names import NONE, Insertable, choose, insertables
from models.summarization.extraction.key_words import FUNCTION_WORDS, KeyWords
from models.summarization.extraction.message import Message
from models.summarization.extraction.ranker import LinearRanker, softmax
from models.summarization.extraction.statements import explained
from models.summarization.medical_entities import named_in, word_keys
from training.summarization.data import Pair
from training.summarization.extraction.fit import Group, fit
from training.summarization.extraction.key_words import Read

#: Temperatures of the softmax over the values of candidates, which are the rankers' targets.
FOCUS_TEMPERATURE, ANSWER_TEMPERATURE = 0.2, 0.08
#: Weights of F1 and recall in the value of an answer.
F1_WEIGHT, RECALL_WEIGHT = 1.3, 0.2
#: Added to the value of a candidate that asks, because a reader of the answer expects a question.
QUESTION_BONUS = 0.9
#: Added to the value of an answer of two sentences, which says more but has a lower ROUGE.
LEAD_BONUS = 0.5
#: Minimum shares of the names that are in the written question with all words: likely names, names in front,
#: names behind.
LIKELY, FRONT, BEHIND = 0.7, 0.75, 0.6
#: Minimum share of the words of a name that the written question has, for the name to be wanted.
_WANTED = 1.0


class Weights(NamedTuple):
    """The trained weights of the extractor."""

    focus: dict[str, float]
    answer: dict[str, float]
    insertion: dict[str, float]
    thresholds: Thresholds
    key_words: KeyWords


class _LabelledMessage(NamedTuple):
    """A message with its candidates for the focus and its reference question."""

    message: Message
    about: Topics
    in_reference: list[float]
    pair: Pair


def train(encoder: Encoder, drugs: DrugLexicon, pairs: Sequence[Pair], read: Read) -> Weights:
    """The three rankers and the minimum probabilities, from the messages of the pairs; the encoder is not
    changed. Raises ValueError where no text has two candidates.
    """
    taught = [
        _LabelledMessage(message, about, _in_reference(about.found, pair.summary, drugs), pair)
        for message, about, pair in zip(read.messages, topics(encoder, read.messages), pairs, strict=True)
    ]
    groups = [Group(t.about.features, t.in_reference) for t in taught if any(t.in_reference)]
    of_focus = fit(groups, focus_features.FEATURES, FOCUS_TEMPERATURE)
    ranker = LinearRanker(of_focus, focus_features.FEATURES)
    probabilities = [softmax(ranker.scores(t.about.features)) for t in taught]
    best = [
        max(zip(p, t.in_reference, strict=True), default=None)
        for p, t in zip(probabilities, taught, strict=True)
    ]
    least = _least([b for b in best if b is not None], LIKELY)
    offered = [
        answers(t.message, likely(t.about, p, least)) for t, p in zip(taught, probabilities, strict=True)
    ]
    values = _values(offered, pairs)
    of_answer = fit(
        [Group(o.features, v) for o, v in zip(offered, values, strict=True)],
        answer_candidates.FEATURES,
        ANSWER_TEMPERATURE,
    )
    of_answer["question"] += QUESTION_BONUS
    of_answer["lead_statement"] += LEAD_BONUS
    of_answer["lead_question"] += LEAD_BONUS
    of_insertion, front, behind = _insertion(taught, offered, probabilities, of_answer)
    return Weights(of_focus, of_answer, of_insertion, Thresholds(least, front, behind), read.model)


def _insertion(
    taught: Sequence[_LabelledMessage],
    offered: Sequence[Answers],
    probabilities: Sequence[Sequence[float]],
    of_answer: dict[str, float],
) -> tuple[dict[str, float], float, float]:
    """The weights of the names that the chosen questions lack, and the least probabilities of the first name
    and of a further one.
    """
    ranker = LinearRanker(of_answer, answer_candidates.FEATURES)
    lacked: list[list[Insertable]] = []
    wanted: list[list[bool]] = []
    for t, o, p in zip(taught, offered, probabilities, strict=True):
        chosen, _ = choice(t.message, o.found, softmax(ranker.scores(o.features)))
        chosen = explained(t.message, o.found, chosen)
        own = insertables(t.message, chosen, t.about.found, t.about.features, p)
        share = {f.text: s for f, s in zip(t.about.found, t.in_reference, strict=True)}
        lacked.append(own)
        wanted.append([share[o.focus.text] >= _WANTED for o in own])
    groups = [
        Group([NONE, one.features], [float(not w), float(w)])
        for own, is_wanted in zip(lacked, wanted, strict=True)
        for one, w in zip(own, is_wanted, strict=True)
    ]
    weights = fit(groups, inserted_names.FEATURES, FOCUS_TEMPERATURE)
    fitted = LinearRanker(weights, inserted_names.FEATURES)
    ranked = []
    for own, is_wanted in zip(lacked, wanted, strict=True):
        p = sigmoids(fitted, own)
        ranked.append([(p[i], is_wanted[i]) for i in choose(own, p, 0)])
    front = _least([own[0] for own in ranked if own], FRONT)
    return weights, front, min(front, _least([one for own in ranked for one in own], BEHIND))


def _in_reference(found: Sequence[Focus], summary: str, drugs: DrugLexicon) -> list[float]:
    """The share of each candidate's words in the written question; 1 for a drug's other name."""
    reference = set(word_keys(summary))
    bags = [set(word_keys(f.text)) - FUNCTION_WORDS for f in found]
    return [
        1.0 if named_in(f.text, summary, drugs) else len(bag & reference) / max(1, len(bag))
        for f, bag in zip(found, bags, strict=True)
    ]


def _least(found: Sequence[tuple[float, float]], precision: float) -> float:
    """The lowest probability above which the share `precision` is wholly in the written question; `found`:
    probability, and 1 where it is.
    """
    right, least = 0, 1.0
    for n, (probability, value) in enumerate(sorted(found, reverse=True), 1):
        right += value == 1
        if right >= precision * n:
            least = probability
    return round(least, 3)


def _values(offered: Sequence[Answers], pairs: Sequence[Pair]) -> list[list[float]]:
    """ROUGE-1 of each answer with the written question, F1 and a part of the recall; what the text is about
    stands in front of an answer that lacks it.
    """
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415  a second to import

    scorer = RougeScorer(["rouge1"], use_stemmer=True)
    values = []
    for o, pair in zip(offered, pairs, strict=True):
        texts = [f"{c.focus.text}: {c.text}" if c.focus else c.text for c in o.found]
        scores = [scorer.score(pair.summary, text)["rouge1"] for text in texts]
        values.append([F1_WEIGHT * s.fmeasure + RECALL_WEIGHT * s.recall for s in scores])
    return values
