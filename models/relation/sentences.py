"""The sentences of a text as the encoder reads them: each acronym with a known long form as the words of that
form, so that "SJS on lamotrigine" is read like the names that the corpora and the encoder know.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from models.drugs import bundled_lexicon
from models.relation.pairs import SentenceMention
from models.rules.sentences import whole_sentences
from models.terminology import term_at_end, term_named
from models.text import word_texts, words_to_read
from models.types import ADE, Expansion, Span

#: The system organ class of what is done to a patient ("liver transplantation").
_PROCEDURES = "Surgical and medical procedures"
#: The rest of a number, whose digits are words of their own.
_REST = re.compile(r"(?<=\d)(?:,\d{3}(?!\d)|\.\d)[\d,]*(?<=\d)|(?<=\d\.)\d+")


class Sentence(NamedTuple):
    """A sentence of a batch of texts."""

    report: int
    """position of its text in the batch"""
    words: list[Span]
    """where each word is in the text; the words of a long form are all where the acronym is"""
    read: list[str]
    """each word as the encoder reads it"""


def split(batch: Sequence[str], expansions: Sequence[Sequence[Expansion]] | None = None) -> list[Sentence]:
    """The sentences of all texts in order; of the `expansions` of each text, none by default, those of
    `naming` are read.
    """
    known = [naming(own) for own in expansions or [()] * len(batch)]
    return [
        Sentence(i, *_read(text, words_to_read(text, s), own))
        for i, (text, own) in enumerate(zip(batch, known, strict=True))
        for s in whole_sentences(text)
    ]


def naming(expansions: Sequence[Expansion]) -> list[Expansion]:
    """The expansions whose long form is a drug, or ends with the name of an adverse event. Others ("patient",
    "international normalized ratio") make a sentence longer and unlike those that were trained on.
    """
    return [e for e in expansions if _names_event(e.long_form) or bundled_lexicon().generic(e.long_form)]


def is_event(name: str) -> bool:
    """Whether the whole name is that of an adverse event in the bundled terminology, in any case."""
    term = term_named(name)
    return term is not None and term.soc != _PROCEDURES


def apart(mentions: Sequence[SentenceMention]) -> list[SentenceMention]:
    """The mentions of a sentence, in order, without those that share characters with another one, which only
    those of one acronym do ("N/V"): of these stays the first effect, else the first mention.
    """
    kept: list[SentenceMention] = []
    for own in mentions:
        if not kept or kept[-1].mention.end <= own.mention.start:
            kept.append(own)
        elif own.mention.label == ADE != kept[-1].mention.label:
            kept[-1] = own
    return kept


def end_of_number(text: str, end: int) -> int:
    """Where the number ends in which a mention ends: "CK 18" of "CK 18,400" would be another value."""
    rest = _REST.match(text, end)
    return rest.end() if rest else end


def _read(text: str, spans: list[Span], expansions: Sequence[Expansion]) -> tuple[list[Span], list[str]]:
    """The words of a sentence, and how they are read."""
    read = [text[s.start : s.end] for s in spans]
    starts, ends = [s.start for s in spans], [s.end for s in spans]
    # From the last one to the first, so that positions in front of it stay what they are.
    for expansion in sorted(expansions, key=lambda e: e.start, reverse=True):
        first, after = bisect_left(starts, expansion.start), bisect_right(ends, expansion.end)
        if first < after:
            long_form = word_texts(expansion.long_form)
            spans[first:after] = [Span(expansion.start, expansion.end)] * len(long_form)
            read[first:after] = long_form
    return spans, read


def _names_event(long_form: str) -> bool:
    term = term_at_end(long_form)
    return term is not None and term.soc != _PROCEDURES
