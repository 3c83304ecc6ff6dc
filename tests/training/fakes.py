"""Models that answer what they are told, so that their scores can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from models.terminology import Term
from models.types import ADE, DRUG, Candidate, Case, Coding, Mention, Relation, Span

TERMS = [Term("Insomnia", "Insomnia", "P"), Term("Rash", "Rash", "S"), Term("Throwing up", "Vomiting", "G")]


class Fake:
    """Answers by a function of one text."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer

    def predict(self, batch: Sequence[Any], _stated: object = ()) -> list[Any]:
        return [self.answer(text) for text in batch]


def mentions(text: str, **labels: str) -> tuple[Mention, ...]:
    """Every word that has a label, with it."""
    found = []
    for word, label in labels.items():
        at = text.find(word)
        if at >= 0:
            found.append(Mention(at, at + len(word), word, label, 0.9))
    return tuple(sorted(found, key=lambda m: m.start))


def tagger(**labels: str) -> Fake:
    return Fake(lambda text: list(mentions(text, **labels)))


class Relator:
    """Each drug belongs to the first effect."""

    def predict(self, batch: Sequence[Case]) -> list[list[Relation]]:
        return [
            [
                Relation(d, e, 1.0)
                for d, one in enumerate(case.mentions)
                if one.label == DRUG
                for e in [i for i, other in enumerate(case.mentions) if other.label == ADE][:1]
            ]
            for case in batch
        ]


class Coder(Fake):
    """Codes to the terms that it is told, best first."""

    def __init__(self, answers: Mapping[str, Sequence[str]], terms: Sequence[Term] = TERMS) -> None:
        self.terms = list(terms)
        super().__init__(lambda query: self._coding(answers.get(query.surface, ())))

    def mention_only(self) -> Coder:
        return self

    @staticmethod
    def _coding(pts: Sequence[str]) -> Coding:
        return Coding(tuple(Candidate(pt, pt, "-", 0.5) for pt in pts), nil=True)


class Chooser:
    """Always the same sense where it is offered, else the first."""

    def __init__(self, sense: str) -> None:
        self.sense = sense

    def choose_many(self, rows: Sequence[tuple[str, Span, Sequence[str]]]) -> list[list[float]]:
        return [[float(sense == self.sense) for sense in senses] for _, _, senses in rows]
