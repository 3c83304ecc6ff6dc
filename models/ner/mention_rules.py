"""Rules for the tagger's mentions: none is on a hashtag or handle (a hashtag may be a drug), inside the name
of a drug, across the end of a sentence or line, or only of words without content. A mention that ends with a
function word is joined with the one that follows, or the word is cut off.

What a mention may end with was counted on the training parts: of 12,005 mentions of the ADE corpus and PsyTAR
three end with a word of DANGLING, and one goes on in another sentence.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter

from models.text import PlacedWords
from models.types import DRUG, Mention, Span

Run = tuple[str, int, int]
"""label, first word, word after the last"""

#: A hashtag may name a drug, a handle names an account.
_TAGGED = re.compile(r"(?<![\w@#])[@#](?=\w*[^\W\d])\w+")
#: No mention ends with one of these words. Where a mention with the same label follows at once, both are one.
DANGLING = frozenset(
    re.findall(r"\S+", "and or but nor the an my your his their of to in with at by from - / ; : ( & # @")
)
#: Nor with one of these, directly behind a word; two mentions around one are two.
_MARKS = frozenset(".,!?")
#: Nor with one of these that no other one in the mention opens ("M\u00e9ni\u00e8re's").
_APOSTROPHES = frozenset("'\u2019")
#: A mention that consists of these words and punctuation has no content.
_FUNCTION_WORDS = DANGLING | frozenset(
    re.findall(
        r"\w+",
        "a this that these those i me mine myself you yours he she it its him her hers we us our ours they "
        "them theirs who whom whose which what if so as than then because while when where on into onto for "
        "without about between during is am are was were be been being have has had having do does did doing "
        "will would can could may might shall should must there here also too very just even some any all "
        "both each every s t m re ve ll d not cannot cant don didn doesn isn wasn aren weren haven hasn hadn "
        "won wouldn couldn shouldn dont didnt doesnt couldnt",
    )
)


def barred_words(text: str, words: PlacedWords) -> list[tuple[int, bool]]:
    """Positions of the words in a hashtag or a handle, and whether they may be a drug (in a hashtag)."""
    tags = _tagged_within(text, words.span(0, len(words.texts))) if words.texts and _tagged(text) else ()
    return [
        (word, text[tag.start] == "#")
        for tag in tags
        for word in range(bisect_left(words.starts, tag.start), bisect_right(words.ends, tag.end))
    ]


def is_whole_tag(text: str, word: Span) -> bool:
    """Whether a word is all of a hashtag."""
    tags = _tagged_within(text, word)
    return [(t.start + 1, t.end, text[t.start]) for t in tags] == [(word.start, word.end, "#")]


def in_handle(text: str, span: Span) -> bool:
    """Whether a span is a part of a handle."""
    return span.start > 0 and any(text[tag.start] == "@" for tag in _tagged_within(text, span))


def _tagged_within(text: str, span: Span) -> Sequence[Span]:
    """The hashtags and handles that overlap a span."""
    tagged = _tagged(text)
    first = bisect_right(tagged, span.start, key=attrgetter("end"))
    return tagged[first : bisect_left(tagged, span.end, key=attrgetter("start"))]


@lru_cache(maxsize=64)
def _tagged(text: str) -> tuple[Span, ...]:
    """The hashtags and handles of a text, in order. Cached, because other sentences and drugs of the same
    text need them.
    """
    return tuple(Span(*m.span()) for m in _TAGGED.finditer(text)) if "#" in text or "@" in text else ()


def sound_runs(runs: Sequence[Run], words: Sequence[str]) -> list[Run]:
    """The runs of a sentence that may be mentions. A run that ends with a word of DANGLING is joined with the
    run of the same label that follows at once; if there is none, the word is cut off. Runs without content
    are left out.
    """
    joined: list[Run] = []
    for label, first, after in runs:
        last = joined[-1] if joined else None
        if last and last[0] == label and last[2] == first and words[first - 1].lower() in DANGLING:
            joined[-1] = (label, last[1], after)
        else:
            joined.append((label, first, after))
    cut = [(label, first, end_of(words, first, after)) for label, first, after in joined]
    return [run for run in cut if not all(_is_empty(w) for w in words[run[1] : run[2]])]


def within_sentences(runs: Sequence[Run], starts: Sequence[int]) -> list[Run]:
    """The runs cut before the words that begin a sentence."""
    cut: list[Run] = []
    for label, first, after in runs:
        ends = [first, *(start for start in starts if first < start < after), after]
        cut += [(label, begin, end) for begin, end in pairwise(ends)]
    return cut


class Cover:
    """Which spans some mentions overlap or have inside, in a time that hardly depends on their number: one
    sentence may have thousands.
    """

    def __init__(self, mentions: Sequence[Mention | Span]) -> None:
        ordered = sorted((m.start, m.end) for m in mentions)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))
        """of the mentions up to this one the last end"""

    def overlaps(self, span: Span) -> bool:
        """Whether a mention shares a character with the span."""
        before = bisect_left(self._starts, span.end)
        return before > 0 and self._ends[before - 1] > span.start

    def holds(self, mention: Mention) -> bool:
        """Whether a mention has all of this one inside."""
        before = bisect_right(self._starts, mention.start)
        return before > 0 and self._ends[before - 1] >= mention.end


def outside_drugs(mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions without those that lie inside the name of a drug."""
    drugs = Cover([m for m in mentions if m.label == DRUG])
    return [m for m in mentions if m.label == DRUG or not drugs.holds(m)]


def end_of(words: Sequence[str], first: int, after: int) -> int:
    """Where a run ends without the words of DANGLING and the marks directly behind a word. Marks stay behind
    a bracket or a quotation mark, where the corpora have them in mentions, and behind a letter ("2 a.m.").
    """
    while after > first:
        before = after
        while before > first and words[before - 1] in _MARKS:
            before -= 1
        if words[after - 1].lower() in DANGLING:
            after -= 1
        elif first < before < after and len(words[before - 1]) > 1 and words[before - 1].isalnum():
            after = before
        elif first < after - 1 and words[after - 1] in _APOSTROPHES.difference(words[first : after - 1]):
            after -= 1
        else:
            break
    return after


def _is_empty(word: str) -> bool:
    return word.lower() in _FUNCTION_WORDS or all(unicodedata.category(c).startswith("P") for c in word)
