"""Parts of a message that ask nothing: quoted replies, greetings, thanks, signatures, what is not asked."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from models.summarization.sentence_selection import split_sentences
from models.types import ShortQuestion

#: The quotation of a mail: marked lines, the line above them, and what a program puts over a whole message.
_MARKED, _MARKED_NUMBER = re.compile(r"[ \t]{0,3}>[ >]{0,20}+(?![=\d])"), re.compile(r"[ \t]{0,3}>")
_WROTE = re.compile(
    r"[ \t]{0,3}(?:>[ >]{0,9})?(?:On|Am|Le) [^\n]{4,150}(?:wrote|schrieb|a écrit)[^\n:]{0,60}:\s*"
)
_WHOLE = re.compile(r"-{2,9} ?(?:original|forwarded) message ?-{2,9}|_{20,200}", re.IGNORECASE)
_FROM, _SENT = re.compile(r"From:[^\n]+"), re.compile(r"(?:Sent|Date):[^\n]+")
_OPENS = r"hello|hi|hiya|hey|dear|greetings|namaste|salaam"
_CLOSES = (
    r"regards|wishes|sincerely|cheers|yours (?:truly|faithfully|sincerely)|respectfully|thanks?(?: you)?|thx|"
    r"love|god bless(?: you)?"
)
_CORE = re.compile(
    rf"\b(?:{_OPENS}|{_CLOSES}|good (?:morning|afternoon|evening|day)|please|pls|plz|kindly|appreciated?|"
    r"looking forward|a?waiting)\b",
    re.IGNORECASE,
)
_COURTEOUS = frozenset(
    re.findall(
        r"\w+",
        "hello hi hiya hey dear greetings namaste salaam sir sirs madam mam ma am doctor doctors "
        "dr doc team  all everyone everybody folks there friend friends good morning afternoon "
        "evening day thank thanks  thankyou thx you u so very much a lot many again in advance "
        "for your yours help time attention reply  respond response answer consideration support "
        "kind kindly please pls plz soon asap early earliest  quickly possible as back to me us i "
        "we is are will be would could can waiting awaiting hope hoping hear  from looking "
        "forward appreciated appreciate it god bless regards best warm sincerely truly faithfully "
        "respectfully cheers love wishes have nice great well doing fine this finds the with any "
        "advise advice  guide if and",
    )
)
_NAME = r"(?:\[[A-Z_ ]{1,30}\]|[A-Z][\w.'\u2019-]{0,30})"
#: "Regards, Anita" and "Dear Dr. Kumar"; the name may stand in a sentence of its own behind the first.
_SIGNED = re.compile(
    rf"\W{{0,9}}(?i:(?:kind|best|warm|many|with|my) ){{0,2}}(?i:{_CLOSES})[\s,.!-]{{1,9}}"
    rf"{_NAME}(?: {_NAME}){{0,2}}\W{{0,9}}"
)
_GREETED = re.compile(
    rf"\W{{0,9}}(?i:{_OPENS})[\s,]{{1,9}}(?:(?:Dr|Mr|Mrs|Ms)\.? )?{_NAME}(?: {_NAME}){{0,2}}"
    r"(?:[\s,.!-]{1,9}|$)"
)
_NAMES = re.compile(rf"\W{{0,9}}{_NAME}(?: {_NAME}){{0,2}}[\s,.]{{0,9}}")
_CLOSING = re.compile(rf"\b(?:{_CLOSES})\W{{0,9}}$", re.IGNORECASE)
_NOT_ASKED = re.compile(
    r"\W{0,9}(?:i|we)(?: do not| don['\u2019]?t| am not| are not|['\u2019]?m not|['\u2019]re not) "
    r"(?:(?:really|actually|even) )?(?:asking|looking for|interested in|"
    r"(?:want|need|wish|care|mean|try\w{0,3}) to (?:know|hear|ask|learn))\b"
    r"(?!.{0,300}\b(?:but|only|just|rather)\b)",
    re.IGNORECASE | re.DOTALL,
)


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence is a greeting, thanks, a plea for an answer or a signature, and no more."""
    if _SIGNED.fullmatch(sentence):
        return True
    own = re.findall(r"\w+", _GREETED.sub("", sentence, count=1).casefold())
    return _CORE.search(sentence) is not None and _COURTEOUS.issuperset(own)


def is_not_asked(sentence: str) -> bool:
    """Whether a sentence says what its writer does not ask: "I don't want to know about side effects."."""
    return _NOT_ASKED.match(sentence) is not None


def asks_nothing(text: str) -> bool:
    """Whether a message is made of courtesies."""
    sentences = [text[s.start : s.end] for s in split_sentences(text)]
    closed = accumulate((_CLOSING.search(s) is not None for s in sentences), max, initial=False)
    return all(
        is_courtesy(s) or (after and _NAMES.fullmatch(s) is not None)
        for s, after in zip(sentences, closed, strict=False)
    )


class Unquoted(NamedTuple):
    """A message without the messages that it quotes."""

    text: str
    pieces: tuple[tuple[int, int], ...]
    """Where each part of it begins: in `text`, and in the message."""

    def written(self, short: ShortQuestion) -> ShortQuestion:
        """A short question of `text` with its places in the message."""
        start, end = self._place(short.start), self._place(short.end, of_end=True)
        first, last = self._place(short.focus_start), self._place(short.focus_end, of_end=True)
        return replace(short, start=start, end=end, focus_start=first, focus_end=last)

    def _place(self, place: int | None, *, of_end: bool = False) -> int | None:
        if place is None:
            return None
        begin, there = max(p for p in self.pieces if p[0] <= max(0, place - of_end))
        return place - begin + there


def without_quotes(text: str) -> Unquoted:
    """A message without what it quotes, unless nothing else is left."""
    kept, quoting = list[tuple[int, str]](), False
    lines = text.splitlines(keepends=True)
    places = accumulate((len(line) for line in lines), initial=0)
    for i, (place, line) in enumerate(zip(places, lines, strict=False)):
        behind = next((other for other in lines[i + 1 :] if other.strip()), "")
        if _WHOLE.fullmatch(line.strip()) or (
            _FROM.fullmatch(line.strip()) and _SENT.fullmatch(behind.strip())
        ):
            break
        if _WROTE.fullmatch(line):
            # Without marks behind it, all that follows is the other message.
            if not _MARKED_NUMBER.match(behind) and any(other.strip() for _, other in kept):
                break
            quoting = True
            continue
        quoting = _MARKED.match(line) is not None or (quoting and _MARKED_NUMBER.match(line) is not None)
        if not quoting:
            kept.append((place, line))
    own = "".join(line for _, line in kept)
    if not own.strip() or len(own) == len(text):
        return Unquoted(text, ((0, 0),))
    begins = accumulate((len(line) for _, line in kept), initial=0)
    return Unquoted(own, tuple(zip(begins, (place for place, _ in kept), strict=False)))
