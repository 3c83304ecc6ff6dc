"""Events in posts by the stages, and by a trivial baseline that matches names of the terminology."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from models.drugs import DrugLexicon
from models.lexicon import NameLexicon
from models.terminology import Term
from models.types import ADE, DRUG, Candidate, Coding, Mention, Query
from training.evaluation.posts.corpus import GoldPost

DICTIONARY = (
    "every name of the release's terminology is an adverse event with its preferred term, every name of the "
    "drug lexicon a drug; flags and suspected drugs by the same rules"
)


class Event(Protocol):
    """A coded event, as the record `streams.records.CodedEvent`."""

    mention: int
    drugs: tuple[str, ...]
    pt: str | None
    nil: bool
    negated: bool
    hypothetical: bool
    other_experiencer: bool


class Record(Protocol):
    """A coded report, as the record `streams.records.CodedReport`."""

    text: str
    mentions: tuple[Mention, ...]
    events: tuple[Any, ...]


#: Tagger, coder, texts and the drug that the source of each states to one record for each text.
Stages = Callable[[Any, Any, Sequence[str], Sequence[str | None]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class PostModels:
    """The two models that make events of posts, and the stages that run them."""

    tagger: Any
    coder: Any
    stages: Stages

    def predict(self, posts: Sequence[GoldPost]) -> Sequence[Record]:
        return self.stages(self.tagger, self.coder, [p.text for p in posts], [p.drug for p in posts])

    def dictionary(self) -> PostModels:
        """The same stages with the names of the coder's terminology instead of both models."""
        names = Names(self.coder.terms)
        return PostModels(names.tagger(), names, self.stages)


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event without a flag; `pt` is None for NIL."""

    start: int
    end: int
    pt: str | None
    drugs: tuple[str, ...]


def unflagged(record: Record) -> list[FoundEvent]:
    """The events that no rule calls negated, hypothetical or another person's."""
    return [
        _found(record, e) for e in record.events if not (e.negated or e.hypothetical or e.other_experiencer)
    ]


def _found(record: Record, event: Event) -> FoundEvent:
    mention = record.mentions[event.mention]
    return FoundEvent(mention.start, mention.end, None if event.nil else event.pt, event.drugs)


class Names:
    """Codes a mention to the term of that name."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = {t.llt.lower(): t for t in reversed(terms)}
        self._names = NameLexicon({t.llt: t.llt.lower() for t in terms})

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        return [self._coding(q.surface) for q in batch]

    def tagger(self) -> Any:
        return _NameTagger(self._names, DrugLexicon.load())

    def _coding(self, surface: str) -> Coding:
        term = self._terms[self._names.canonical(surface) or ""]
        return Coding((Candidate(term.llt, term.pt, term.soc, 1.0),), nil=False)


@dataclass(frozen=True, slots=True)
class _NameTagger:
    """Tags every name of the terminology as ADE, and every name of a drug elsewhere."""

    names: NameLexicon
    drugs: DrugLexicon

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        return [self._tag(text) for text in batch]

    def _tag(self, text: str) -> list[Mention]:
        effects = [s for s, _ in self.names.find(text)]
        mentions = [Mention(s.start, s.end, text[s.start : s.end], ADE, 1.0) for s in effects]
        for span, generic in self.drugs.find(text):
            if not any(s.start < span.end and span.start < s.end for s in effects):
                mentions.append(
                    Mention(span.start, span.end, text[span.start : span.end], DRUG, 1.0, generic)
                )
        return sorted(mentions, key=lambda m: (m.start, m.end))
