"""Questions in messages as patients write them: a subject line, patients' sentences around the question,
thanks. They train a decoder to find the question and to copy it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from models.summarization.medical_entities import Entity
from training.common.corpora import read_psytar
from training.summarization.data import Pair

#: Words of a patient's sentence.
LENGTHS = range(4, 31)
#: Maximum number of sentences before and after the question.
BEFORE, AFTER = 4, 2
#: Shares of the messages with a subject line, without a question mark, and with thanks.
SUBJECT, NO_MARK, THANKS = 0.5, 0.3, 0.5
_THANKS = ("Thank you.", "Thanks", "thank you in advance", "Please help.", "I look forward to your advice.")


def patient_sentences(data: Path) -> list[str]:
    """Sentences of PsyTAR's training part, patients about drugs and their effects, that are no questions."""
    texts = (t.text for t in read_psytar(data / "psytar/ner_train.conll"))
    return [t for t in dict.fromkeys(texts) if len(t.split()) in LENGTHS and "?" not in t]


def message(pair: Pair, entities: Sequence[Entity], sentences: Sequence[str], rng: random.Random) -> Pair:
    """The question in a message of these sentences; `entities` are those of its summary, the longest of which
    may be the subject.
    """
    question = pair.question.rstrip("? ") if rng.random() < NO_MARK else pair.question
    before = [rng.choice(sentences) for _ in range(rng.randint(0, BEFORE))]
    after = [rng.choice(sentences) for _ in range(rng.randint(0, AFTER))]
    end = [rng.choice(_THANKS)] if rng.random() < THANKS else []
    text = " ".join([*before, question, *after, *end])
    if rng.random() < SUBJECT:
        subject = max((e.text for e in entities), key=len, default="")
        text = f"SUBJECT: {subject or 'question'} MESSAGE: {text}"
    return Pair(pair.id, text, pair.summary)
