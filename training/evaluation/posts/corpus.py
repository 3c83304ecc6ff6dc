"""Posts with their writers' events: held-out posts of the teaching corpus, and PsyTAR's test sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from models.drugs import DrugLexicon
from models.drugs.informal_names import generic_of_nickname
from models.types import ADE, CODED_LABELS, DRUG, INDICATION, SYMPTOM
from training.common.codings.split import heldout_split, split_groups
from training.common.corpora import GoldCoding, GoldText, letters_and_digits, read_psytar, read_psytar_codes
from training.teaching.markup import NONE, MarkedText
from training.teaching.readers import marked_texts

#: Kinds of posts with an event of the writer's: one event and nothing else, several events and nothing else,
#: and events beside other marks that are no event of the writer's.
OWN_KINDS = ("one_event", "several_events", "mixed")
#: Kinds of posts without one, by what they have instead: the first that fits.
OTHER_KINDS = (
    "other_person", "hypothetical", "negated", "past", "relief", "indication", "symptom", "idiom", "plain",
)  # fmt: skip
_BY_FLAG = {
    "other": "other_person",
    "hypothetical": "hypothetical",
    "negated": "negated",
    "past": "past",
    "relieved": "relief",
}
_BY_LABEL = {INDICATION: "indication", SYMPTOM: "symptom", NONE: "idiom"}
TEACHING = "teaching corpus, held-out posts, synthetic"
PSYTAR = "PsyTAR test, sentences of reviews that are not among its training sentences"


@dataclass(frozen=True, slots=True)
class GoldEvent:
    """An adverse event or withdrawal symptom of the writer's."""

    start: int
    end: int
    terms: tuple[str, ...] = ()
    """names of right terms; empty where none is known"""
    drugs: tuple[frozenset[str], ...] = ()
    """the names of each medicine that it is due to; empty where none is known"""


@dataclass(frozen=True, slots=True)
class GoldPost:
    """A post, its writer's events, and its kind."""

    text: str
    events: tuple[GoldEvent, ...]
    kind: str
    weight: float = 1.0
    """how often the post counts in the scores of coded events"""
    drug: str | None = None
    """what its source states as the medicine it is about; the stages are given it"""


class Corpus(NamedTuple):
    """What is evaluated."""

    data: str
    records: Sequence[GoldPost]
    spans: bool = True
    """whether it is known where the events are told"""


def teaching(limit: int = 0) -> Corpus:
    """The held-out posts of the teaching corpus, which is a part of the package."""
    lexicon = DrugLexicon.load()
    posts = [_marked_post(marked, lexicon) for _, marked in marked_texts("posts", "held_out")]
    return Corpus(TEACHING, posts[:limit] if limit else posts)


def _marked_post(marked: MarkedText, lexicon: DrugLexicon) -> GoldPost:
    names: dict[int, set[str]] = {}
    for m in marked.marks:
        if m.label == DRUG:
            words = marked.text[m.start : m.end]
            generic = lexicon.generic(words) or generic_of_nickname(words, marked.text) or words.lower()
            for number in m.numbers:
                names.setdefault(number, set()).update({words.lower(), generic})
    of_writer = [m for m in marked.marks if m.label in CODED_LABELS and m.flag is None]
    events = tuple(
        GoldEvent(m.start, m.end, (m.term,) if m.term else (), tuple(frozenset(names[n]) for n in m.numbers))
        for m in of_writer
    )
    others = [
        _BY_FLAG.get(m.flag or "") or _BY_LABEL.get(m.label, "") for m in marked.marks if m not in of_writer
    ]
    return GoldPost(marked.text, events, kind_of(len(events), others))


def kind_of(events: int, others: Iterable[str]) -> str:
    """The kind of a post with `events` events of the writer; `others`: kinds of its other marks."""
    kinds = [kind for kind in OTHER_KINDS if kind in set(others)]
    if not events:
        return kinds[0] if kinds else "plain"
    return "mixed" if kinds else OWN_KINDS[events > 1]


def psytar(data: Path, limit: int = 0) -> Corpus:
    """PsyTAR's test sentences. Only sentences whose every effect is coded and held out from the training of
    normalization count in the scores of coded events, and those without an effect in the same proportion.
    The events of a sentence are due to the medicine of its review, where a code of the sentence names it.
    """
    lexicon = DrugLexicon.load()
    trained = {letters_and_digits(t.text) for t in read_psytar(data / "psytar/ner_train.conll")}
    texts = [
        t for t in read_psytar(data / "psytar/ner_test.conll") if letters_and_digits(t.text) not in trained
    ]
    codes: dict[str, list[GoldCoding]] = {}
    for gold in read_psytar_codes(data / "psytar/normalization.csv", unmapped=True):
        codes.setdefault(letters_and_digits(gold.sentence), []).append(gold)
    mapped = list(read_psytar_codes(data / "psytar/normalization.csv"))
    test = set(heldout_split(mapped, split_groups()).test)
    posts = [_sentence(t, codes.get(letters_and_digits(t.text), ()), test, lexicon) for t in texts]
    with_event = [p for p in posts if p.events]
    share = sum(p.weight for p in with_event) / max(1, len(with_event))
    posts = [p if p.events else replace(p, weight=share) for p in posts]
    return Corpus(PSYTAR, posts[:limit] if limit else posts)


def _sentence(
    text: GoldText, codes: Sequence[GoldCoding], test: set[GoldCoding], lexicon: DrugLexicon
) -> GoldPost:
    stated = {c.drug for c in codes}
    drug = stated.pop() if len(stated) == 1 else None
    due = (frozenset(lexicon.generics(drug)),) if drug else ()
    terms = {letters_and_digits(c.mention): c.terms for c in codes if c in test}
    of_writer = [m for m in text.mentions if m.label in CODED_LABELS]
    events = tuple(
        GoldEvent(
            m.start,
            m.end,
            terms.get(letters_and_digits(text.text[m.start : m.end]), ()) if m.label == ADE else (),
            due,
        )
        for m in of_writer
    )
    others = [_BY_LABEL.get(m.label, "") for m in text.mentions if m not in of_writer]
    held_out = all(e.terms for e in events) and all(c in test for c in codes)
    return GoldPost(text.text, events, kind_of(len(events), others), float(held_out), drug)
