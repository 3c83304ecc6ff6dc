"""What two posts have in common, word by word: whether one is the other again, or may be about the same case.

Letters decide only that texts are the same. Of a text that is merely like another one the words must agree
that tell cases apart whatever a model finds in them, as its numbers and negations; what happened with which
drug is compared when it is coded (`streams.store.same_case`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from models.quantities import NUMBER_WORDS
from models.vocabulary import common_words

#: same: the later text is the earlier one with slips of the pen, or its beginning. near: words were added or
#: left out. reworded: some words are others. Nothing that tells cases apart differs.
Agreement = Literal["same", "near", "reworded"]
Words = tuple[str, ...]
#: Characters of which the writer's lines are looked for.
LINES = 4000
#: Letters after which the beginning of a text is a repost that was cut off, and where three dots say so.
CUT, CUT_BY_DOTS = 60, 15
#: Of so many words one may be misspelt, and one that is short or says nothing may differ. A near text has as
#: many words, and for so many one may be another one.
MISSPELT, DOUBTFUL, SWAPPED = 5, 8, 8
#: Share of the words of a near text that are those of the other.
MOST = 0.6
#: Words of a comment that may be longer than the text that it is about.
ADDED = 12
#: Pairs of equal words of two texts up to which they are compared: a few words many times over would take a
#: time that grows with the cube of their number.
PAIRS = 10_000
#: Letters of a word that is no other one where one of them differs, and of one that may be.
LONG, SHORT = 5, 2

_REPOST = re.compile(r"^\s*(?:rt|qt|mt|via)\b[\s:]*(?:@\w+)?[\s:]*", re.IGNORECASE)
_REPLY = re.compile(r"^\s*(?:(?:re|aw|fwd?|sv|antw)\s*:\s*)+", re.IGNORECASE)
_QUOTE = re.compile(
    r"^(?:\s*(?:>|&gt;)|(?=.{0,99}$).*\b(?:wrote|said|posted by\b.*)\s*:?\s*$)", re.IGNORECASE
)
_SIGNATURE = re.compile(r"^\s*(?:[-\u2013\u2014_]{2,3}\s*$|sent from my \w)", re.IGNORECASE)
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_NOT = re.compile(
    r"\b(\w+(?=n['\u2019]t\b)|(?:ai|are|ca|could|did|do|does|had|has|have|is|must|should|was|were|wo|would)(?=nt\b))"
    r"n['\u2019]?t\b"
)
_APOSTROPHE = re.compile("['\u2019]")
#: Between words of two sentences, or before a hashtag: a mark that may not stand within one.
_BORDER = re.compile(r"[^\w\s,/&+-]")
_LATIN = re.compile("[a-z\u00df-\u024f]+")
_NUMBERS = {word: str(value) for word, value in NUMBER_WORDS.items()}
_TELLING = """
    no not nor never none neither without cannot nothing nobody denies denied
    nunca sin pas jamais sans nicht kein keine nie ohne
    he she his her him hers man woman men women male female boy girl mother mom mum father dad son daughter
    husband wife brother sister baby infant
    first second third fourth half once twice
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
    mg mcg ug g ml iu kg lb lbs left right
"""
#: Words of which none may be added, lost or replaced, like numbers: negations, of some languages, whose case
#: it is, days and months, units and sides.
TELLING = frozenset(_TELLING.split())
_NOTHING = """
    a an the and i im ive my me it its this that is am are was were be been have has had do did does
    so just really very too also lol omg pls please amp rt via
"""
#: Words that change nothing, whether they are there or not.
_EMPTY = frozenset(_NOTHING.split())


def words_of(text: str) -> tuple[str, ...]:
    """The words in lower case, "n't" as "not", without punctuation, emoji and a repost's mark."""
    return tuple(_WORD.findall(_plain(text)))


def _plain(text: str) -> str:
    return _APOSTROPHE.sub("", _NOT.sub(r"\1 not", _REPOST.sub("", text).lower()))


def borders_of(lines: Sequence[str]) -> frozenset[int]:
    """The numbers of the words, of all lines together, that begin a line, a sentence, what is quoted or a
    hashtag; and the number behind the last one.
    """
    borders, number = set[int](), 0
    for plain in map(_plain, lines):
        borders.add(number)
        end = 0
        for word in _WORD.finditer(plain):
            if _BORDER.search(plain, end, word.start()):
                borders.add(number)
            number, end = number + 1, word.end()
    return frozenset({*borders, number})


def is_repeated(earlier: Words, later: Words, lines: Sequence[str], before: int = 0) -> bool:
    """Whether the later words are the earlier ones between other sentences or hashtags, whatever these say:
    comments of who repeats them. `lines`: those of the later words, with so many words `before` them.
    """
    n = len(earlier)
    if n < SWAPPED or not n < len(later) <= n + max(n, ADDED):
        return False
    if f" {' '.join(earlier)} " not in f" {' '.join(later)} ":
        return False
    borders = {border - before for border in borders_of(lines)}
    starts = (i for i in borders if i + n in borders)
    return any(later[i : i + n] == earlier for i in starts)


def own_lines(text: str) -> list[str]:
    """The lines that are the writer's. A text of quotes only is the writer's all the same."""
    text = text[:LINES]
    unquoted = _unquoted(text)
    lines = [line for line in (unquoted if unquoted.strip() else text).splitlines() if line.strip()]
    if len(lines) > 1 and _REPLY.match(lines[0]):
        lines = lines[1:]
    own: list[str] = []
    for line in lines:
        if own and _SIGNATURE.match(line):
            break
        if not _QUOTE.match(line):
            own.append(line)
    return own or lines


def _unquoted(text: str) -> str:
    """The text without `[quote]...[/quote]`, which may be nested."""
    pieces, depth = [], 0
    for piece in re.split(r"(\[/?quote\b[^\]\n]{0,200}\])", text, flags=re.IGNORECASE):
        if piece[:2] == "[/":
            depth = max(0, depth - 1)
        elif piece[:1] == "[" and piece[1:6].lower() == "quote":
            depth += 1
        elif not depth:
            pieces.append(piece)
    return "\n".join(pieces)


def agreement(earlier: Sequence[str], later: Sequence[str], cut: int = CUT) -> Agreement | None:
    """What the later words are of the earlier ones; None: two texts. `cut`: letters after which the later
    text may end before the earlier one does.
    """
    before, after = Counter(earlier), Counter(later)
    if not later or 2 * (before & after).total() < len(later):
        return None
    if sum(number * before[word] for word, number in after.items()) > PAIRS:
        return None
    found: Counter[str] = Counter()
    letters = 0
    for kind, i, j, k, m in SequenceMatcher(None, earlier, later, autojunk=False).get_opcodes():
        old, new = earlier[i:j], later[k:m]
        if kind == "equal":
            found["equal"] += len(new)
            letters += sum(map(len, new))
        elif m == len(later) and letters >= cut and _is_cut(old, new):
            found["equal"] += len(old)
        elif slip := _slip(old, new):
            found[slip] += 1
            found["equal"] += len(new)
        elif Counter(_telling(old)) != Counter(_telling(new)):
            return None
        else:
            left, added = _left(old), _left(new)
            change = "replaced" if left and added else "inserted" if left or added else "doubtful"
            found[change] += max(len(left), len(added), 1)
    return _judged(found, *sorted((len(earlier), len(later))))


def _judged(found: Counter[str], shorter: int, longer: int) -> Agreement | None:
    """Of the numbers of words that are equal and that differ."""
    if found["misspelt"] > 1 + shorter // MISSPELT:
        return None
    if not (found["replaced"] or found["inserted"] or found["doubtful"] > shorter // DOUBTFUL):
        return "same"
    if shorter < SWAPPED * max(1, found["replaced"]) or found["equal"] < MOST * longer:
        return None
    return "reworded" if found["replaced"] else "near"


def _is_cut(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the text was cut off before `old`, or in its first word."""
    return len(old) >= len(new) and (not new or (len(new) == 1 and old[0].startswith(new[0])))


def _telling(words: Sequence[str]) -> list[str]:
    """The words that tell cases apart, numbers in digits."""
    return [
        _NUMBERS.get(word, word) for word in words if word in TELLING or word in _NUMBERS or word[0].isdigit()
    ]


def _left(words: Sequence[str]) -> list[str]:
    return [word for word in words if not (word in _EMPTY or _telling([word]))]


def _slip(old: Sequence[str], new: Sequence[str]) -> Literal["misspelt", "doubtful"] | None:
    """Whether the words are the same but for a letter in each, or in all of them together where a space is
    wrong. Short ones may be two words all the same.
    """
    one, other = "".join(old), "".join(new)
    if not (_LATIN.fullmatch(one) and _LATIN.fullmatch(other)):
        return None
    if one == other:
        return "misspelt"
    pairs = zip(old, new, strict=True) if len(old) == len(new) else [(one, other)]
    unequal = [pair for pair in pairs if pair[0] != pair[1]]
    if not all(_is_one_edit(*pair) and not _may_tell(*pair) for pair in unequal):
        return None
    return "doubtful" if any(max(map(len, pair)) < LONG for pair in unequal) else "misspelt"


def _may_tell(word: str, other: str) -> bool:
    """Whether a slip may be none: two words that tell cases apart, or a such one and another word, of which
    one is short or begins with another letter, as "never" and "ever".
    """
    telling = _telling([word, other])
    if len(telling) != 1:
        return len(telling) > 1
    is_word = {word, other} <= common_words()
    return is_word and (len(word) < LONG or word[0] != other[0])


def _is_one_edit(word: str, other: str) -> bool:
    """Whether a letter was added, lost, replaced or exchanged with its neighbour."""
    if len(word) > len(other):
        word, other = other, word
    if len(other) - len(word) > 1 or len(word) < SHORT:
        return False
    start = next((i for i, (x, y) in enumerate(zip(word, other, strict=False)) if x != y), len(word))
    if len(word) < len(other):
        return word[start:] == other[start + 1 :]
    exchanged = word[:start] + word[start : start + 2][::-1] + word[start + 2 :]
    return other in (exchanged, word[:start] + other[start : start + 1] + word[start + 1 :])
