"""Words and sentences of a text with their offsets, in code points of the original text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from models.types import Expansion, Mention, Span

#: Stands for the characters of a run that are not read: neither white space nor a letter nor a word.
FILLER = "\ue000"
WORD = re.compile(rf"\w+|[^\w\s{FILLER}]")
_MARK = re.compile(r"\W")
#: Marks in a row that are read, dots or emoji for example: each is a word for the encoder.
MOST_MARKS = 20
#: Runs that no writer means: blanks, a word, marks of one kind, and characters without any blank. Patterns
#: that try each place of a run again need quadratic time for it.
_LONG_RUN = re.compile(r"\s{33,}|(?<!\w)\w{129,}|([^\w\s])\1{64,}|(?<!\S)\S{1025,}")
_BLANKS_LEFT_OUT, _LEFT_OUT = re.compile(rf"(?<=\s){FILLER}+"), re.compile(f"{FILLER}+")
#: Characters at both ends of such a run that are read.
_ENDS = 16
# A sentence ends at closing punctuation followed by white space, and at a line break. It does not end after
# the abbreviations below, which are common in clinical text: the tagger would lose context there.
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|[\r\n]\s*")
_LONGEST_ABBREVIATION = len("approx.")
#: Minimum number of characters of a line that was cut for its length.
_LINE = 50
#: A line of a note or a list that stands for itself, in small letters too: where two such lines follow each
#: other, what the first one denies is not denied by the second.
_ITEM = re.compile(
    r"(?P<stated>(?:reports?|reported|denies|denied|complains?|states?|endorses|admits|notes|feels|takes|no|also)\b)|"
    r"[^\W\d][\w/-]* \d[\d.,]* ?(?:mg|mcg|g|ml|units?|tabs?|puffs?)\b",
    re.IGNORECASE,
)
# Some go on whatever follows. Others may end a sentence, and what follows decides: "5 mg. daily", "No. 3" and
# "Jan. 2019" go on, but "20 mg. It helps" and "Pain? No. Headaches" do not. MS is no title.
_ABBREVIATION = re.compile(
    r"(?:\b(?:(?P<always>dr|mr|mrs|(?!(?-i:MS))ms|vs|e\.g|i\.e|approx|fig|al|etc|st|prof|vit|[a-z])|"
    r"(?P<number>no)|(?P<part>pts?|max|avg|incl|esp|temp)|"
    r"(?P<date>jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec))|"
    r"(?:\b|\d)(?:(?P<unit>mgs?|mcg|gms?|kgs?|ml|oz|lbs?|tabs?|caps?|[cm]m)|"
    r"(?P<time>hrs?|mins?|wks?|mos?|yrs?|ft|mon|tues?|wed|thurs?|fri)))\.$",
    re.IGNORECASE,
)
_GOES_ON = {
    "always": re.compile(""),
    "number": re.compile(r"\d|of\b"),
    "part": re.compile(r"[a-z\d]"),
    "date": re.compile(r"\d|of\b"),
    # A word that may begin a sentence of someone who writes no capitals ends the one before it.
    "unit": re.compile(
        r"(?!(?:im?|its?|my|the|this|that|these|those|there|he|she|we|they|you|your|whats?|how|why|when|where|"
        r"who|which|is|are|was|were|am|can|could|do|does|did|should|would|will|may|has|have|had|but|so|then|"
        r"now|also|any|anyone|if|no|not|never|please|pls|thanks?|help|today|yesterday|just|been|still|started|"
        r"took|felt|got|went|stopped|feel|feeling|having)\b)[a-z]"
    ),
    "time": re.compile(
        r"(?:ago|old|of|later|before|after|from|since|and|or|in|to|until|for|per|daily|apart|at|on|with|without|"
        r"tall|long|post|through)\b"
    ),
}


def readable(text: str) -> str:
    """The text as models read it, of the same length: of a run of white space, of letters, of one mark, or of
    anything without white space that is longer than any writer means, only the first and last characters.
    """
    return _LONG_RUN.sub(_shortened, text) if _LONG_RUN.search(text) else text


def as_written(mentions: Sequence[Mention], text: str) -> list[Mention]:
    """The mentions of a text that was read by `readable`, with what they cover in the text itself."""
    return [replace(m, text=text[m.start : m.end]) if FILLER in m.text else m for m in mentions]


def without_filler(text: str) -> str:
    """A part of what `readable` gives, to be shown: an ellipsis where more than blanks is left out."""
    return _LEFT_OUT.sub("\N{HORIZONTAL ELLIPSIS}", _BLANKS_LEFT_OUT.sub("", text))


def with_long_forms(text: str, start: int, end: int, expansions: Sequence[Expansion]) -> str:
    """The text from `start` to `end` with the long forms of the acronyms that are wholly in it."""
    part = text[start:end]
    for expansion in sorted(expansions, key=attrgetter("start"), reverse=True):
        if start <= expansion.start and expansion.end <= end:
            part = part[: expansion.start - start] + expansion.long_form + part[expansion.end - start :]
    return part


def _shortened(run: re.Match[str]) -> str:
    found = run.group()
    return found[:_ENDS] + FILLER * (len(found) - 2 * _ENDS) + found[-_ENDS:]


def words(text: str, within: Span | None = None) -> list[Span]:
    """Spans of words and single punctuation marks in order, of the whole text or of the part `within`.

    Offsets are those of `text` in both cases; white space is in no span.
    """
    matches = WORD.finditer(text, within.start, within.end) if within else WORD.finditer(text)
    return [Span(*m.span()) for m in matches]


def words_to_read(text: str, within: Span | None = None) -> list[Span]:
    """Spans of `words`, but of marks in a row only the first MOST_MARKS."""
    read, n_marks = [], 0
    for word in words(text, within):
        n_marks = n_marks + 1 if _MARK.match(text, word.start) else 0
        if n_marks <= MOST_MARKS:
            read.append(word)
    return read


def word_texts(text: str) -> list[str]:
    """The words of a text as strings, as `Encoder.split` reads them."""
    return WORD.findall(text)


def sentences(text: str) -> list[Span]:
    """Spans of sentences in order, without white space around them; every word of the text is in one."""
    spans: list[Span] = []
    start = 0
    for end_mark in _END.finditer(text):
        if {"\n", "\r"}.isdisjoint(end_mark.group()) and _goes_on(text, start, end_mark):
            continue
        _append(spans, text, start, end_mark.end())
        start = end_mark.end()
    _append(spans, text, start, len(text))
    return spans


def whole_sentences(text: str) -> list[Span]:
    """Spans of `sentences`, but a sentence that a program cut into lines for their length is one span: mail
    and notes have such lines.
    """
    joined: list[Span] = []
    for span in sentences(text):
        if joined and _is_cut(text, joined[-1], span):
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def _is_cut(text: str, one: Span, other: Span) -> bool:
    """Whether a sentence is the first part of another: a long line without a mark at its end, and the next
    line begins with a small letter, but is no other item of a list.
    """
    between = text[one.end : other.start]
    if between.strip(" \t") not in ("\n", "\r\n") or not text[other.start].islower():
        return False
    items = (
        _ITEM.match(text, max(one.start, text.rfind("\n", 0, one.end) + 1)),
        _ITEM.match(text, other.start),
    )
    if items[0] and items[1] and items[0].lastgroup == items[1].lastgroup:
        return False
    line = text[max(0, one.end - _LINE) : one.end]
    return len(line) == _LINE and {"\n", "\r"}.isdisjoint(line) and line[-1] not in ".?!:;"


def _goes_on(text: str, start: int, end_mark: re.Match[str]) -> bool:
    """Whether the mark, the first after `start`, belongs to an abbreviation within a sentence."""
    # Only the last characters are searched: a text of abbreviations would need quadratic time.
    before = text[max(start, end_mark.start() - _LONGEST_ABBREVIATION - 1) : end_mark.start()]
    found = _ABBREVIATION.search(before)
    return found is not None and _GOES_ON[found.lastgroup or ""].match(text, end_mark.end()) is not None


def _append(spans: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        first = start + len(piece) - len(piece.lstrip())
        spans.append(Span(first, first + len(stripped)))
