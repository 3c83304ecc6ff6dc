"""The teaching corpus in the forms that the training programs read.

In every function `part` is `train` or `held_out`. What is held out is for evaluation and never trained on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from models.releases.manifest import TrainingData
from models.types import ADE, DRUG, INDICATION, LABELS, WITHDRAWAL
from training.common.corpora import GoldCoding, GoldMention, GoldText
from training.teaching import batches
from training.teaching.batches import FOLDER, AcronymContext, Idiom, Kind, Part, Question
from training.teaching.markup import NONE, Mark, MarkedText

T = TypeVar("T")
#: Flags with which a mark is a mention of its label all the same. An indication stays one when the medicine
#: relieves it and when it is another person's, but a wanted effect is none; no affirmed event of the writer's
#: has a flag.
AFFIRMED: dict[str, tuple[str | None, ...]] = {
    DRUG: (None,),
    ADE: (None,),
    WITHDRAWAL: (None,),
    INDICATION: (None, "relieved", "other", "past"),
}


@cache
def marked_texts(kind: Kind, part: Part, folder: Path = FOLDER) -> Sequence[tuple[str, MarkedText]]:
    """Posts or clinical sentences with their ids and all their marks. A folder is read once."""
    return tuple((line.id, batches.marked(line)) for line in batches.lines(kind, part, folder))


def own_event(marked: MarkedText) -> bool:
    """Whether the text reports an adverse event or a withdrawal symptom of its writer or patient."""
    return any(m.label in (ADE, WITHDRAWAL) and m.flag is None for m in marked.marks)


def gold_texts(
    kind: Kind, part: Part, *, candidates: bool = False, labels: Sequence[str] = LABELS, folder: Path = FOLDER
) -> list[GoldText]:
    """Posts or clinical sentences with mentions of `labels` and the links of effects to drugs.

    Mentions are what a text affirms. With `candidates` flagged marks are mentions of their label too, for a
    tagger that leaves it to another model whether a mention is an event.
    """
    return [gold_text(id_, marked, candidates, labels) for id_, marked in marked_texts(kind, part, folder)]


def gold_text(id_: str, marked: MarkedText, candidates: bool, labels: Sequence[str]) -> GoldText:
    """One text as `gold_texts` gives it."""
    kept = [m for m in marked.marks if m.label in labels and _is_mention(m, candidates)]
    drugs = [i for i, m in enumerate(kept) if m.label == DRUG]
    relations = [
        (d, e)
        for e, mark in enumerate(kept)
        if mark.label == ADE
        for d in drugs
        if set(kept[d].numbers) & set(mark.numbers)
    ]
    mentions = tuple(GoldMention(m.start, m.end, m.label) for m in kept)
    return GoldText(id_, marked.text, mentions, tuple(relations))


def _is_mention(mark: Mark, candidates: bool) -> bool:
    return mark.label != NONE and (candidates or mark.flag in AFFIRMED.get(mark.label, (None,)))


def sample(texts: Sequence[T], share: float, seed: int) -> list[T]:
    """A random share, 0 to 1, of the texts; a smaller share is a part of a larger one of the same seed."""
    order = list(texts)
    random.Random(seed).shuffle(order)
    return order[: round(share * len(order))]


def teaching_sources(texts: Iterable[GoldText]) -> list[TrainingData]:
    """The corpus as manifests name it, with the number of its texts among `texts`; nothing without any."""
    count = sum(t.id.startswith(batches.ID) for t in texts)
    return [teaching_source(count)] if count else []


def teaching_source(count: int) -> TrainingData:
    """`count` texts or phrases of the corpus as manifests name them."""
    return TrainingData(name=f"teaching corpus of pvstream, {count} synthetic texts", licence="CC0-1.0")


def questions(part: Part, folder: Path = FOLDER) -> list[tuple[str, Question]]:
    """Consumers' questions with their ids."""
    return [(line.id, batches.question(line)) for line in batches.lines("questions", part, folder)]


@cache
def phrases(part: Part, folder: Path = FOLDER) -> Sequence[GoldCoding]:
    """Lay phrases with their preferred term, each its own sentence. A folder is read once."""
    found = (batches.phrase(line) for line in batches.lines("phrases", part, folder))
    return tuple(GoldCoding(p.phrase, p.phrase, "", (p.pt,)) for p in found)


def acronym_contexts(part: Part, folder: Path = FOLDER) -> list[AcronymContext]:
    """Sentences with an acronym and what it stands for in them."""
    return [batches.acronym_context(line) for line in batches.lines("acronyms", part, folder)]


def idioms(part: Part, folder: Path = FOLDER) -> list[Idiom]:
    """Idioms with sentences in which they are meant as such and literally."""
    return [batches.idiom(line) for line in batches.lines("idioms", part, folder)]


@cache
def codings(kind: Kind, part: Part, folder: Path = FOLDER) -> Sequence[GoldCoding]:
    """The marks with a preferred term, flagged ones too, in their sentences; `drug` is the first one that the
    mark is due to, as written, in lower case, or empty.
    """
    return tuple(coding for _, marked in marked_texts(kind, part, folder) for coding in coded_marks(marked))


def coded_marks(marked: MarkedText) -> list[GoldCoding]:
    """The marks of one text, as in `codings`."""
    names: dict[int, str] = {}
    for m in marked.marks:
        if m.label == DRUG:
            for n in m.numbers:
                names.setdefault(n, marked.text[m.start : m.end].lower())
    return [
        GoldCoding(
            marked.text[m.start : m.end],
            marked.text,
            names.get(next(iter(m.numbers), 0), ""),
            (m.term,),
            m.start,
        )
        for m in marked.marks
        if m.term
    ]
