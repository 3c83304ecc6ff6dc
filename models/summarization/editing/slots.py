"""Candidates for the slot of an opening: names of the message, two names joined, and phrases behind the words
of the asking clause that ask its kind.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from models.summarization.extraction.candidates import Candidate
from models.summarization.extraction.focus import TIME, Focus
from models.summarization.extraction.insertion import longest_name
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.extraction.message import Message
from models.types import Span

#: Maximum numbers of the most probable names, and of the others.
_NAMES, _PHRASES = 4, 4
#: Minimum probability of a name.
_LEAST = 0.03
#: Words that join two names to one slot: "dystonia and retinitis", "swelling of the legs after surgery".
_BETWEEN = re.compile(
    r"\s*+(?:(?:,|/|\band\b|\bor\b|&|\bof\b|\bin\b|\bwith\b|\bdue to\b|\bcaused by\b|\bfrom\b|\bafter\b|"
    r"\bfollowing\b|\bduring\b|\bon\b)\s*+)?(?:the |an? |my |his |her )?",
    re.IGNORECASE,
)
#: Behind "treatment" these make one word of both: "treatment resistant depression".
_OF_TREATMENT = r"(?:resistant|refractory|related|emergent|induced)\b"
_NO_TREATMENT = rf"(?![ -]{_OF_TREATMENT})"
_TREATMENT = re.compile(rf"(?<!\w)treatment[ -](?={_OF_TREATMENT})", re.IGNORECASE)
#: Words in front of the topic of a question.
_BEHIND = re.compile(
    rf"\b(?:(?:treat(?:ments?|ing|ed)?{_NO_TREATMENT}|"
    r"cures?|remed(?:y|ies)|medicines?|medications?|helps?|relief|therap(?:y|ies)|"
    r"info|information|details|literature|causes?|caused|causing|symptoms|signs|prognosis|outlook|diagnosis|tests?|"
    r"research|trials|stud(?:y|ies)|specialists?|doctors?|ingredients|side effects|complications|risks|"
    r"rid|know|learn|learning|remove|heal|overcome|fix|reduce|prevent)\s+(?:(?:available|options?|more|possible)\s+)?"
    r"(?P<for>(?:for|of|on|about|with|regarding|concerning|to treat|to cure)\s+)?|"
    r"\b(?:diagnosed with|suffer(?:s|ing)? (?:from|with))\s+)"
    r"(?=(?P<phrase>[^\W_][\w'\u2019-]*(?:[ /][^\W_][\w'\u2019-]*){0,6}))",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_][\w'\u2019-]*")
#: A phrase ends in front of these words.
_END = re.compile(
    r"(?:[\w]+['\u2019](?:ve|m|re|ll|d|t)|myself|sure|really|and|or|but|that|which|who|whom|if|when|where|because|since|as|so|please|thank|thanks|is|are|was|"
    r"were|has|have|had|can|could|will|would|should|do|does|did|i|we|he|she|it|they|you|to|than|then|how|"
    r"what|why|my|me|him|her|them|this|that|these|those|us|there|without|while|at|available|also|etc)",
    re.IGNORECASE,
)
#: A name ends in front of these words.
_NO_PART = re.compile(
    r"since|when|where|who|which|that|because|please|every|is|are|was|were|has|have", re.IGNORECASE
)
#: Words behind a name that ask a kind: "gout treatment", "is gout inherited".
_ASKS = re.compile(
    r"treatments?|cures?|remed(?:y|ies)|medicines?|medications?|symptoms?|causes?|information|info|help|"
    r"questions?|diagnosis|prognosis|research|advice|"
    r"inherited|hereditary|genetic|contagious|curable|treatable|fatal|treated|cured|caused|diagnosed|"
    r"detected|prevented",
    re.IGNORECASE,
)
#: Words for what a person is, not for what a person has.
_QUALITY = re.compile(
    r"allergic|upset|scared|depressed|worr(?:y|ied)|tired|sick|ill|falls?|hurts?|painful|swollen|pregnan(?:t|cy)|"
    r"numb|paraly[sz]ed|weak|frozen|crippled|bald|shaky|itchy|dry|sore|burn|forgotten|ten|rare diseases?|"
    r"specific \w+|.{0,200}\b\d{3,}|allergy|severe|bleed|diab[ei]tic|stress|normal|common|"
    r"better|worse|(?:.{0,200} )?(?:yrs|type)",
    re.IGNORECASE,
)
#: First words of phrases that are not names: "following basal cell carcinoma", "needed on polio".
_NO_FIRST = re.compile(
    r"following|without|solve|solving|stop\w*|need\w*|battl\w+|fight\w*|treat\w*|cur(?:e|ing)|get\w*|find\w*|"
    r"have|having|suffer\w*|diagnosed|tested|positive|negative|undergone|deal\w*|look\w*|try\w*|caused|"
    r"broke|feel\w*|develop\w*|third|remaining|beginning|suddenly|doing|done|being|been|ever|very|so|too|more|less|other|same|any|than",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"(?:the|an?|my|his|her|our|your|their|some|any|such|all)", re.IGNORECASE)
_SMALL = frozenset(
    {"for", "of", "on", "about", "in", "with", "by", "from", "up", "out", "off", "be", "being"}
)


#: Words in front of a name that are not part of it: "treatment for migraine", "Suggestion on ILD problem".
_ASKING = re.compile(
    r"^(?:.{0,40}\b(?:remove|rid of|deals? with|heal|overcome|called|wanted|details|tips|relieve|reduce|"
    rf"treatments?{_NO_TREATMENT}|"
    r"treat|cures?|remed(?:y|ies)|medicines?|medications?|information|info|suggestions?|advice|"
    r"materials?|causes?|symptoms?|prognosis|diagnosis|tests?|research|trials?|specialists?|specializ\w+|"
    r"doctors?|physicians?|hospitals?|clinics?|questions?|help|looking|developments?|latest|cost|ingredients|"
    r"(?:types?|kinds?)(?= of\b)|subject|message|regarding)\b[\s:,-]*"
    r"(?:(?:for|of|on|about|in|with|regarding|concerning|to|the|an?|and|my|his|her|our)\s+)*)",
    re.IGNORECASE,
)
#: Words of contact forms, greetings and asking, which are not names.
_NO_SLOT = re.compile(
    r"\b(?:clinicaltrials|questions?|general information|customer|service|request|inquiry|hello|hi|dear|"
    r"sir|madam|thanks?|please|help|urgent|doctors?|physicians?|hospitals?|specialists?|ingredients?|"
    r"information|treatments?|medicines?|medications?|suggestions?|myself|anything|something|gov|"
    r"pretty|sure|\w+['\u2019](?:ve|m|re|ll|d|t)|anyone|someone|somebody|nobody|"
    r"greetings?|iam|etc|see|want|know|like|would|ago|article|sons?|daughters?|mother|father|wife|husband|"
    r"patients?|people|stud(?:y|ies)|"
    r"[a-z]+_[a-z]+)\b|[\[:]",
    re.IGNORECASE,
)


class Slot(NamedTuple):
    """A part of the message that fills an opening."""

    span: Span
    text: str
    probability: float
    """probability of its name by the focus ranker; 0 without a name"""
    rank: int
    """rank of its name by probability, from 0"""
    source: str
    """name, joined or phrase"""
    sources: frozenset[str]
    """the sources of its name, see Focus"""


def slots(
    message: Message, chosen: Candidate, found: Sequence[Focus], probabilities: Sequence[float]
) -> list[Slot]:
    """The candidates for the slot, each text once."""
    out: dict[str, Slot] = {}
    for slot in _all(message, chosen, found, probabilities):
        own = without_asking(message.text, slot)
        if own is not None and _is_name(own.text):
            out.setdefault(own.text.lower(), own)
    return list(out.values())


def _is_name(text: str) -> bool:
    """Whether a slot may be the name of a topic."""
    first = text.split(maxsplit=1)[0]
    return not (_NO_SLOT.search(text) or _QUALITY.fullmatch(text) or _NO_FIRST.fullmatch(first))


def objects(message: Message, chosen: Candidate) -> list[Span]:
    """The phrases behind "treatment for", "information on" and the like in the chosen sentence."""
    sentence = chosen.sentence
    found = (
        _trimmed(message.text, Span(*match.span("phrase")))
        for match in _BEHIND.finditer(message.text, sentence.start, sentence.end)
        if match["for"]
    )
    return [span for span in found if span is not None]


def without_asking(text: str, slot: Slot) -> Slot | None:
    """The slot without asking words at its beginning; None if nothing remains."""
    front = _ASKING.match(_of(text, slot.span))
    start = slot.span.start + (front.end() if front else 0)
    inside = [Span(*m.span()) for m in _WORD.finditer(text, start, slot.span.end)]
    end = next((i for i, w in enumerate(inside) if i and _ends_name(_of(text, w))), len(inside))
    while end > 1 and _ASKS.fullmatch(_of(text, inside[end - 1])):
        end -= 1
    while inside[:end] and _of(text, inside[0]).lower() in _SMALL:
        inside.pop(0)
        end -= 1
    if not inside[:end]:
        return None
    last = inside[end - 1].end if end < len(inside) else slot.span.end
    begin = inside[0].start
    front = _TREATMENT.match(text, max(0, begin - len("treatment ")), begin + len("resistant "))
    span = Span(front.start() if front and front.end() == begin else begin, last)
    return slot._replace(span=span, text=_flat(text, span))


def _all(
    message: Message, chosen: Candidate, found: Sequence[Focus], probabilities: Sequence[float]
) -> Iterator[Slot]:
    order = sorted(range(len(found)), key=lambda i: (-round(probabilities[i], 9), i))
    likely = [i for i in order[:_NAMES] if probabilities[i] >= _LEAST]
    for rank, i in enumerate(likely):
        own = longest_name(found[i], found)
        sources = frozenset(found[i].sources | own.sources)
        yield Slot(own.span, _flat(message.text, own.span), probabilities[i], rank, "name", sources)
    by_start = sorted(likely, key=lambda i: found[i].span.start)
    for a, b in itertools.pairwise(by_start):
        one, other = found[a].span, found[b].span
        if one.end <= other.start and _BETWEEN.fullmatch(message.text, one.end, other.start):
            span = Span(one.start, other.end)
            both = frozenset(found[a].sources | found[b].sources)
            p = max(probabilities[a], probabilities[b])
            yield Slot(span, _flat(message.text, span), p, order.index(a), "joined", both)
    yield from list(_phrases(message, chosen, found, probabilities, order))[:_PHRASES]


def _phrases(
    message: Message,
    chosen: Candidate,
    found: Sequence[Focus],
    probabilities: Sequence[float],
    order: Sequence[int],
) -> Iterator[Slot]:
    """The phrases behind words that ask a kind in the chosen sentence."""
    for match in _BEHIND.finditer(message.text, chosen.sentence.start, chosen.sentence.end):
        span = _trimmed(message.text, Span(*match.span("phrase")))
        if span is None:
            continue
        text = _flat(message.text, span)
        inside = [i for i in order if found[i].text.lower() in text.lower()]
        if not match["for"] and not any(
            {"term", "phrase", "subject", "cue"} & found[i].sources for i in inside
        ):
            continue
        best = inside[0] if inside else None
        p = 0.0 if best is None else probabilities[best]
        rank = len(found) if best is None else order.index(best)
        sources = frozenset() if best is None else frozenset(found[best].sources)
        yield Slot(span, text, p, rank, "phrase", sources)


def _trimmed(text: str, span: Span) -> Span | None:
    """The phrase up to the first word that ends it, without function words at its edges."""
    words = [Span(*m.span()) for m in _WORD.finditer(text, span.start, span.end)]
    while words and (_DETERMINER.fullmatch(_of(text, words[0])) or _of(text, words[0]).lower() in _SMALL):
        words.pop(0)
    ends = (i for i, w in enumerate(words) if _END.fullmatch(_of(text, w)) or _ends_name(_of(text, w)))
    end = next(ends, len(words))
    words = words[:end]
    while words and _of(text, words[-1]).lower() in FUNCTION_WORDS | _SMALL:
        words.pop()
    return Span(words[0].start, words[-1].end) if words else None


def _ends_name(word: str) -> bool:
    return (_NO_PART.fullmatch(word) or TIME.fullmatch(word)) is not None


def _of(text: str, span: Span) -> str:
    return text[span.start : span.end]


def _flat(text: str, span: Span) -> str:
    return " ".join(_of(text, span).split()).strip(" -,;:/&'\"")
