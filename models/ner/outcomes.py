"""Deaths and hospital stays of others that a post blames on a drug: "my mother died after her second dose of
Taxol", "hubby is in the ICU from his Humira".

Public corpora annotate what a person has and seldom that he died of it, so a tagger that learns from them
leaves it out, and a report of the most serious kind would be silence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from models.ner.mention_rules import Cover
from models.rules.notation import patterns
from models.text import has_one, lower_words, plain
from models.types import ADE, DRUG, OTHER, Mention, Span

#: Characters between a drug and the person that it harmed.
REACH = 90
#: One of them is in every text, with single blanks, that tells of such an outcome, or one of these words.
STEMS = (
    "died", "passed", "hospi", "admitted", "ambulance", "coma", "intubated", "life support", "ventilator",
    "e.r", "emergency", "a&e", "a & e", "intensive", "psych", "killed", "murdered",
)  # fmt: skip
WORDS = frozenset({"er", "icu", "ccu"})
_SAYS = patterns("outcomes")


def named_outcomes(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The outcomes that `text` names and that overlap none of its mentions, labelled ADE, with score 1 and
    the status of another experiencer; none where no mention is a drug.
    """
    drugs = sorted((m.start, m.end) for m in mentions if m.label == DRUG)
    if not drugs or not _may_tell(text):
        return []
    taken, end, made = Cover(mentions), 0, []
    for span in sorted({*_of_people(text, drugs), *_of_takers(text, drugs), *_by_drugs(text, drugs)}):
        if span[0] >= end and not taken.overlaps(Span(*span)):
            made.append(Mention(*span, text[slice(*span)], ADE, 1.0, status=OTHER))
            end = span[1]
    return made


def _may_tell(text: str) -> bool:
    return has_one(plain(text), STEMS) or not WORDS.isdisjoint(lower_words(text))


def _of_people(text: str, drugs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What happened to somebody in front of a drug or behind it. `drugs`: starts and ends, in text order."""
    starts = [start for start, _ in drugs]
    for match in (*_SAYS["outcome"].finditer(text), *_SAYS["carried"].finditer(text)):
        start, end = match.span("fate")
        if _SAYS["none"].search(text, match.start(), start):
            continue
        first, place = (bisect_left(starts, at) for at in (match.start() - REACH, end))
        in_front = [e for _, e in drugs[first:place] if e < match.start()]
        behind = [s for s, _ in drugs[place : bisect_left(starts, end + REACH)]]
        if any(_links(text, "after", end, s) for s in behind) or any(
            _SAYS["timed"].search(text[max(0, e - REACH) : e]) and _links(text, "before", e, match.start())
            for e in in_front
        ):
            yield start, end


def _of_takers(text: str, drugs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What happened to somebody behind the drug that was taken: "my father got digoxin and died"."""
    for start, end in drugs:
        match = _SAYS["then"].match(text, end, end + REACH)
        if match is None or _SAYS["none"].search(text, end, match.start("fate")):
            continue
        sentence = _SAYS["end"].split(text[max(0, start - REACH) : start])[-1]
        if _SAYS["who"].search(sentence) and not _SAYS["never"].search(sentence):
            yield match.span("fate")


def _by_drugs(text: str, drugs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What a drug did to somebody: "Vioxx killed my dad"."""
    for _, end in drugs:
        match = _SAYS["by"].match(text, end, end + REACH)
        if match is not None:
            yield match.span("fate")


def _links(text: str, kind: str, start: int, end: int) -> bool:
    between = text[start:end]
    return bool(_SAYS[kind].fullmatch(between)) and not any(
        _SAYS[name].search(between) for name in ("none", "end")
    )
