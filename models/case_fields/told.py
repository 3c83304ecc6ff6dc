"""The fields of a case that are told in words: sex, pregnancy, route, outcome, seriousness and dechallenge.
An outcome is that of an effect which is named before it in the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.case_fields.around import Around, Told
from models.case_fields.measured import Found
from models.rules.notation import patterns
from models.types import ADE, CODED_LABELS, DRUG

_SAYS = patterns("case_words")
#: Characters between an effect and its outcome, and before what may be denied.
_REACH, _NOT = 80, 40
_ROUTES = {"ingested": "oral"}
#: One of them is in every text, with single blanks, that a pattern of the kind finds something in; most texts
#: have none.
_STEMS = {
    "self": "man,male,girl,lady,moth,mom,mum,wife,guy,father,dad,husband,menstr,period,breast,vagin,gyn,uter,"
    "ovar,hyst,pregn,penis,testic,prost,erect,balls",
    "relative": " wife, mother, mom, mum, sister, daughter, girlfriend, aunt, grand, niece, husband, hubby,"
    " father, dad, brother, son, boyfriend, uncle, nephew",
    "pregnant": "pregnan",
    "route": "oral,by mouth,p.o,i.v,i.m,im inject,intra,subcut,subq,s.c,topic,inhal,rectal,enema,supposit,"
    "vagin,nasal,lingual,dermal,skin patch,epidural,eye drop,eyedrop,ophth,parenteral,infus,inject,ingest",
    "outcome": "resol,subsid,go away,gone,went away,clear,disappear,recover,vanish,abat,dissip,to normal,"
    "to baseline,normali,remit,persist,still ha,still there,still suffer,still present,still ongoing,"
    "still experienc,ongoing,permanent,n't stop,n\u2019t stop,has not stop,improv,got better,getting better,"
    "became better,went better,gotten better,gradually,slowly",
    "serious": "hospital,admit,intensive,threat,died,killed,fatal,death,lethal,permanent,disab,"
    "wheelchair,birth,congenital",
}
STEMS = {kind: tuple(stems.split(",")) for kind, stems in _STEMS.items()}
#: Or one of these as a word.
WORDS = {"route": frozenset({"os", "po", "iv"}), "serious": frozenset({"icu", "ccu"})}
_GONE = ("recovered", "recovering")


def in_words(told: Told, *, clinical: bool) -> Iterator[Found]:
    """The fields that words state; those of a reaction only in a text that has one, or is clinical."""
    yield from _clinical_patient(told.text) if clinical else _patient(told)
    yield from _pregnancy(told)
    if clinical or any(m.label in CODED_LABELS for m in told.mentions):
        yield from _routes(told)
        yield from _outcomes(told)
        yield from _seriousness(told, clinical=clinical)


def _clinical_patient(text: str) -> Iterator[Found]:
    """Sex and age group of whom a clinical sentence names, else the sex of its first pronoun."""
    named = False
    for match in _SAYS["person"].finditer(text):
        named = True
        yield "sex", *match.span(), match.lastgroup
    for match in _SAYS["age_group"].finditer(text):
        yield "age_group", *match.span(), match.lastgroup
    pronoun = None if named else _SAYS["pronoun"].search(text)
    if pronoun:
        yield "sex", *pronoun.span(), (pronoun.lastgroup or "").rpartition("_")[2]


def _patient(told: Told) -> Iterator[Found]:
    """The sex of the writer of a post, or of a relative of whom it tells."""
    for kind in ("self", "relative"):
        for match in _matches(told, kind):
            name = match.lastgroup or ""
            yield "sex", *match.span(name), name.rpartition("_")[2]


def _pregnancy(told: Told) -> Iterator[Found]:
    for match in _matches(told, "pregnant"):
        if not _SAYS["pregnant_not"].search(told.text, max(0, match.start() - _NOT), match.end()):
            count, unit = match["gestation"], match["gestation_unit"]
            yield "pregnancy", *match.span(), f"P{count}{unit.upper()}" if count else None


def _routes(told: Told) -> Iterator[Found]:
    """Routes that are no part of an effect, and do not say where it is."""
    for match in _matches(told, "route"):
        of_effect = told.is_in_effect(match.start(), match.end() + 1)
        if not of_effect and not _SAYS["route_not"].match(told.text, match.end()):
            name = match.lastgroup or ""
            yield "route", *match.span(), match[0].lower() if name == "intra" else _ROUTES.get(name, name)


def _outcomes(told: Told) -> Iterator[Found]:
    """Outcomes; and beside the end of a treatment, what followed from it."""
    for match in _matches(told, "outcome"):
        around, value = told.around(*match.span()), match.lastgroup
        if _has_outcome(told, match, around):
            yield "outcome", *match.span(), value
            stopped = _SAYS["stopped"].search(told.text, around.first, around.last)
            # What goes on as long as a drug is taken, and ends later, stands far before the end of that.
            near = stopped is not None and stopped.start() - match.end() < _NOT
            if stopped and (near or value in _GONE):
                yield "dechallenge", *_both(stopped, match), "positive" if value in _GONE else "negative"


def _has_outcome(told: Told, match: re.Match[str], around: Around) -> bool:
    """Whether what ended, or goes on, is an effect: the last that is named before, or what all are called."""
    first = max(around.first, match.start() - _REACH)
    named = [m for m in around.mentions if m.label != DRUG and first < m.end <= match.start()]
    called = max((m.end() for m in _SAYS["whose"].finditer(told.text, first, match.start())), default=-1)
    if called > (named[-1].end if named else -1):
        return True
    return bool(named) and named[-1].text.casefold() in told.effects


def _seriousness(told: Told, *, clinical: bool) -> Iterator[Found]:
    """Of a post hospitalization alone: who writes it lives, and 8 of 8 other criteria that were read were of
    somebody else or of nobody.
    """
    for match in _matches(told, "serious"):
        around = told.around(*match.span())
        is_read = clinical or match.lastgroup == "hospitalization"
        if is_read and _is_of_effect(told, around) and not _SAYS["not_so"].search(around.before):
            yield "serious", *match.span(), match.lastgroup


def _matches(told: Told, kind: str) -> Iterator[re.Match[str]]:
    """What the patterns of a kind find in a text."""
    if told.has(STEMS[kind], WORDS.get(kind, frozenset())):
        yield from _SAYS[kind].finditer(told.text)


def _is_of_effect(told: Told, around: Around) -> bool:
    """Whether the sentence has an effect, or what all are called."""
    if any(m.label == ADE for m in around.mentions):
        return True
    return _SAYS["whose"].search(told.text, around.first, around.last) is not None


def _both(one: re.Match[str], other: re.Match[str]) -> tuple[int, int]:
    return min(one.start(), other.start()), max(one.end(), other.end())
