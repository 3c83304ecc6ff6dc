"""What a message is about: the medicines, illnesses and other phrases that may be the focus of its question.

Candidates are names of both lexicons, noun phrases that end like the name of an illness or a procedure, what
stands behind cues such as "diagnosed with", the subject line or title, names by their capitals, and phrases
of probable key words. A linear ranker chooses among them by their features, see focus_features.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from models.summarization.extraction.key_words import FUNCTION_WORDS, phrases
from models.summarization.extraction.message import Message, without_masks
from models.summarization.medical_entities import GENERAL
from models.types import Span

_NAME = re.compile(r"[^\W_][\w'\u2019-]*")
_ENDING = (
    r"(?:syndromes?|diseases?|disorders?|cancers?|infections?|deficienc(?:y|ies)|surgery|failure|attacks?|"
    r"tumou?rs?|cysts?|stones?|fractures?|virus|vaccines?|palsy|dystrophy|sclerosis|anemia|apnea|defects?|"
    r"degeneration|injur(?:y|ies)|pain|blockage|rash(?:es)?|allerg(?:y|ies)|ulcers?|spasms?|hernia|mutation|"
    r"malformation|seizures?|diabetes|weakness|"
    r"[a-z]{3,30}(?:itis|osis|emia|aemia|oma|pathy|plasty|ectomy|algia|uria|rrhea|penia|plegia|trophy|plasia|"
    r"lepsy|asthma|philia))"
)
_PHRASE = re.compile(rf"\b(?:[a-z0-9][\w'\u2019-]{{0,30}} ){{0,3}}{_ENDING}\b", re.IGNORECASE)
#: Words in front of a name that are no part of it: "doc says Baker's cyst", "saw diverticulosis".
_NO_QUALITY = re.compile(
    r"says?|said|saw|see|seen|heard|told|tells?|recommend\w*|only|no|not|without|significant|according|"
    r"think\w*|thought|called|found|finds?|show\w*|mention\w*|suspect\w*|suggest\w*|wrote|written|gave|"
    r"give|given|never|before|during|just|now|still|then|since|after|while|\d+(?:st|nd|rd|th)|first|second|third|another|other|"
    r"new|likely|possible|maybe|via|until|while|off|out|up|doc|also|really|both|mg|ml|too|all|her|every|now|"
    r"im|its|sure|everything|days?|weeks?|months?|years?|two|three|four|five|six|seven|eight|nine|ten|"
    r"healthy|want\w*|need\w*|died|lost|started|taking|takes?|took|uses?|using|used|call\w*|diagnosis|result|due|having",
    re.IGNORECASE,
)
#: Words for the time of what has a name, "ALS last month", which are no part of it; numbers in front of some.
TIME = re.compile(
    r"last|next|ago|recently|lately|earlier|yesterday|today|tonight|tomorrow|again|already|currently|previously|"
    r"wks?|mos|yrs?|hrs?",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(?:day|week|wk|month|mo|year|yr|hour|hr)s?", re.IGNORECASE)
#: More words that are no part of a name, however probable it is that the short question has them.
_NO_KEY = re.compile(
    r"(?:every|any|some|no)(?:thing|one|body|where)|nights?|hours?|one|many|much|same|done|hit|safe|normal|"
    r"usual\w*|mak(?:e|es|ing)|made|goes?|going|gone|went|help\w*|hurts?|costs?|worr(?:y|ies|ied)|questions?|"
    r"info|okay|ok|right|wrong|good|bad|best|better|worse|stick\w*|keeps?|kept|feel\w*|felt|people|someone|"
    r"places?|times?|things?|\w{3,}(?:ologists?|iatrists?|icians?)|surgeons?|dentists?|gps?",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\b(?:diagnosed (?:with|as)|suffer(?:s|ing|ed)? (?:from|with)|information (?:on|about|regarding)|"
    r"cure for|treatments? (?:for|of)|(?:i|he|she|who|son|daughter|mother|father|husband|wife|we) "
    r"(?:have|has|had)(?: (?:got|a|an|been having))?|test(?:ed|ing)? for|about|called)\s+"
    r"((?:[^\W_][\w'\u2019-]* ?){1,5})",
    re.IGNORECASE,
)
#: A first line that is no topic: a greeting, and what contact forms ask of the writer.
_NO_SUBJECT = (
    r"(?!(?:hi|hello|hey|dear|greetings|good (?:morning|afternoon|evening|day))\b|"
    r"(?:subject|(?:first |last |full |your )?name|e-?mail|from|to|date|sent|age|sex|gender|phone|country|"
    r"state|city)\s{0,3}:)"
)
_SUBJECT = re.compile(
    rf"(?:subject\s{{0,3}}:)?\s{{0,5}}{_NO_SUBJECT}"
    r"([^\s?][^\n?]{2,59}?)\s{0,5}(?:\n|\bmessage\s{0,3}:)",
    re.IGNORECASE,
)
#: A first sentence without a verb that is the title of a message.
_TITLE = re.compile(
    r"\s{0,9}(?:subject\s{0,3}:\s{0,5})?(?!subject\b)(?![^.]{0,60}?\b(?:i|my|we|our|he|she|it|you|am|is|are|was|"
    r"were|have|has|had|do|does|can|got|get)\b)"
    rf"{_NO_SUBJECT}"
    r"([^\s.?!][^\n.?!]{2,59})\.\s",
    re.IGNORECASE,
)
_LONGEST_SUBJECT = 6
#: "PCOS", "Kartagener's syndrome", "the Cologuard": a capital within a sentence, or only capitals.
_CAPITALS = re.compile(
    r"(?:(?<=[a-z,;(] )(?:[A-Z][\w-]{0,30} ){0,2}[A-Z][a-z]{2,30}[\w-]{0,30}(?:['\u2019]s [a-zA-Z]{4,30})?|"
    r"(?<![\w-])[A-Z][A-Z0-9]{2,6}(?![\w'-]))"
)
_NO_NAME = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|"
    r"september|october|november|december|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec|christmas|easter|mom|mum|dad|mother|father|grandma|grandpa|aunt|"
    r"uncle|doctor|dr|sir|madam|internet|google|english|american|spanish|the|usa|subject|message|"
    r"not|and|why|what|how|please|thank|thanks|hello|you|your|help|ever|still|never|really|mayo|asap",
    re.IGNORECASE,
)
#: In front of a name that the writer does not have: "no pain", "do not have a fever".
_DENIED = re.compile(
    r"\b(?:no|without|nor|denie[sd]|(?:(?:do|does|did)(?: not|n['\u2019]?t)|never) (?:have|had))\s+"
    r"(?:any |an? )?\Z",
    re.IGNORECASE,
)
#: In front of the name of a person: as a greeting, in what the writer says of himself, and below a message.
_ADDRESSED = re.compile(
    r"(?:\b(?:dear|hi|hello|hey|dr|mrs?|ms|my name is|(?<![a-z] )name:|regards|sincerely)[.,]?\s+|"
    r"\b(?:thanks|thank you|god bless|wishes|yours truly|(?<![a-z] )(?:best|cheers|yours|love|respectfully))"
    r"(?:[,!]\s+|[,!.]?\s*\n\s*)|"
    r"(?:\A|\n|\b(?:hi|hello|hey|dear|morning|afternoon|evening)\b[^.!?\n]{0,14}"
    r"(?:[.!?]\s?\w{0,9})?[,.!]?)\s*"
    r"(?:this is|it['\u2019]s|i am|i['\u2019]m)\s+)"
    r"(?:(?-i:[A-Z])[a-z]+ ){0,2}\Z",
    re.IGNORECASE,
)
_PERSONAL_NAME = re.compile(r"[A-Z][\w'\u2019-]*(?:\.? [A-Z][\w'\u2019-]*){0,2}")
#: The ways that know a name by what it is, not by capitals or the words around it.
_KNOWN = frozenset(("drug", "term", "phrase"))
_DENIED_REACH, _ADDRESSED_REACH = 24, 48
_NEGATED_VERB = re.compile(r"\w+n['\u2019]t", re.IGNORECASE)
#: People are what a question is for, not what it is about.
_PERSON = re.compile(
    r"\b(?:sons?|daughters?|mother|father|(?:grand|god)\w+|mom|mum|dad|wife|husband|(?:boy|girl)?friends?|"
    r"partner|sisters?|brothers?|aunt|uncle|cousin|nephew|niece|girl|boy|child|children|kids?|bab(?:y|ies)|"
    r"toddler|doctors?|nurses?|pharmacist|patients?|people|man|woman)\b",
    re.IGNORECASE,
)
#: What someone is, not what a question is about.
_QUALITY = re.compile(
    r"numb|bald|diabetic|weak|paraly[sz]ed|swollen|tired|sick|shaky|dizzy|pregnant|allergic|sore|itchy|"
    r"depressed|anxious|painful|frozen|crippled|blind|deaf",
    re.IGNORECASE,
)
#: Behind a name that ends inside of a number ("16p-13" of "16p-13.11"), and before one that begins there.
_IN_NUMBER, _BEHIND_POINT = re.compile(r"(?<=\d)[.,]\d"), re.compile(r"\d[.,]\Z")
#: A letter or number that belongs to the name before it: "vitamin D", "hep c", "omega 3", "Plan B".
_LABELLED = re.compile(
    r"\b(?:(?P<letter>vitamin|hepatitis|hep|plan|influenza|strep)|"
    r"(?P<number>omega|trisomy|factor|covid))\Z",
    re.IGNORECASE,
)
_LABEL = {
    "letter": re.compile(r"[ -](?:[A-HJ-Z]|[b-hj-z])(?: ?\d{1,2})?(?![\w'\u2019-])"),
    "number": re.compile(r"[ -](?:\d{1,2}[a-dA-D]?|I{2,3}|I?V|VI{1,3}|IX)(?!\.?\d|[\w'\u2019-])"),
}
#: The name of a field of a contact form within a name: "Gout MESSAGE".
_FIELD_NAME = re.compile(r"\b(?:MESSAGE|SUBJECT)\b")
#: Of a long text only the first candidates are compared.
_MOST = 50


@dataclass(slots=True)
class Focus:
    """A candidate: its first mention in the text, and which of the SOURCES of focus_features.py found it."""

    span: Span
    text: str
    sources: set[str] = field(default_factory=set)


def candidates(message: Message) -> list[Focus]:
    """The candidates of a text, each name once, in the order of their first mentions."""
    found: dict[str, Focus] = {}
    for source, own in _spans(message):
        span = own if source == "drug" else _with_label(message.text, own)
        name = message.text[span.start : span.end]
        if _IN_NUMBER.match(message.text, span.end) or _BEHIND_POINT.search(
            message.text, max(0, span.start - 2), span.start
        ):
            continue
        if GENERAL.fullmatch(name.lower()) or _FIELD_NAME.search(name):
            continue
        if _DENIED.search(message.text, max(0, span.start - _DENIED_REACH), span.start):
            continue
        if source not in _KNOWN and _is_addressed(message.text, span):
            continue
        if source != "drug" and (_PERSON.search(name) or _QUALITY.fullmatch(name)):
            continue
        focus = found.setdefault(name.lower(), Focus(span, name))
        focus.sources.add(source)
        if span.start < focus.span.start:
            focus.span, focus.text = span, name
    return sorted(found.values(), key=lambda f: (f.span.start, f.span.end))[:_MOST]


def _spans(message: Message) -> Iterator[tuple[str, Span]]:
    """Every candidate with its source, repeated names too."""
    yield from (("drug", span) for span in message.drugs)
    yield from (("term", span) for span in message.terms)
    text = without_masks(message.text)
    for match in _PHRASE.finditer(text):
        inside = _content(text, Span(*match.span()))
        cut = max((i + 1 for i, w in enumerate(inside) if _ends_phrase(text, w)), default=0)
        yield from _one("phrase", inside[cut:])
    for match in _CUE.finditer(text):
        inside = _content(text, Span(*match.span(1)))
        end = next((i for i, w in enumerate(inside) if _ends_phrase(text, w)), len(inside))
        yield from _one("cue", _without_time(text, inside, end))
    for line in (_SUBJECT.match(text, len(text) - len(text.lstrip())), _TITLE.match(text)):
        inside = _content(text, Span(*line.span(1))) if line else []
        if len(inside) <= _LONGEST_SUBJECT:
            yield from _one("subject", inside)
    for span in phrases(text, message.words, message.keys):
        inside = _content(text, span)
        cut = max((i + 1 for i, w in enumerate(inside) if _breaks_key(text, w)), default=0)
        left = inside[cut:] or inside[: cut - 1]
        yield from _one("key", [] if all(_breaks_key(text, w) for w in left) else left)
    for match in () if text.isupper() else _CAPITALS.finditer(text):
        if not _NO_NAME.fullmatch(match.group()):
            yield "capitals", Span(*match.span())


def _is_addressed(text: str, span: Span) -> bool:
    """Whether a name is that of a person who is greeted, or of the writer."""
    before = max(0, span.start - _ADDRESSED_REACH), span.start
    named = _PERSONAL_NAME.fullmatch(text, span.start, span.end)
    return named is not None and _ADDRESSED.search(text, *before) is not None


def _with_label(text: str, span: Span) -> Span:
    """The span of a name with the letter or number that belongs to it."""
    kind = _LABELLED.search(text, span.start, span.end)
    label = _LABEL[kind.lastgroup or ""].match(text, span.end) if kind else None
    # In a text of capitals an A may be the article.
    return (
        span if label is None or (label.group() == " A" and text.isupper()) else Span(span.start, label.end())
    )


def _one(source: str, inside: Sequence[Span]) -> Iterable[tuple[str, Span]]:
    return [(source, Span(inside[0].start, inside[-1].end))] if inside else []


def _content(text: str, span: Span) -> list[Span]:
    """The words of a span without function words at its edges."""
    inside = [Span(*m.span()) for m in _NAME.finditer(text, span.start, span.end)]
    while inside and _is_function(text, inside[0]):
        inside.pop(0)
    while inside and _is_function(text, inside[-1]):
        inside.pop()
    return inside


def _without_time(text: str, inside: Sequence[Span], end: int) -> Sequence[Span]:
    """The first words of a name, up to `end`, without a time at their end: "surgery 6 wks"."""
    number = 0 < end < len(inside) and text[inside[end - 1].start : inside[end - 1].end].isdigit()
    if number and _COUNTED.fullmatch(text, inside[end].start, inside[end].end):
        end -= 1
    return inside[:end]


def _ends_phrase(text: str, word: Span) -> bool:
    own = text[word.start : word.end]
    known = _NO_QUALITY.fullmatch(own) or TIME.fullmatch(own) or _NEGATED_VERB.fullmatch(own)
    return known is not None or _is_function(text, word)


def _breaks_key(text: str, word: Span) -> bool:
    own = text[word.start : word.end]
    patterns = _NO_KEY, _NO_QUALITY, TIME, _NEGATED_VERB
    return any(pattern.fullmatch(own) for pattern in patterns)


def _is_function(text: str, word: Span) -> bool:
    return text[word.start : word.end].lower() in FUNCTION_WORDS
