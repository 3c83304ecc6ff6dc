"""The part of a sentence that asks, without greeting, preamble and thanks around it."""

from __future__ import annotations

import re

from models.summarization.extraction.question_form import inverts, is_fragment
from models.types import Span

#: A sentence of more words is cut to its asking clause, if it has one.
LONG = 30
#: Fewer words are no clause, and what is cut off leaves at least so many.
_LEAST, _LEAST_CUT = 4, 3
#: What stands in front of a question in a list: "- ", "2) ", "b) ", "...".
_ITEM = re.compile(
    r"(?:[-*>\u2022\u00b7\u2013\u2014]+\s+|\(?(?:\d{1,2}|[a-h])[).]\s+|(?:\.{2,9}|\u2026)\s*)(?=\w)",
    re.IGNORECASE,
)
#: The subject line of a contact form whose line breaks are lost.
_FIELD = re.compile(r".{0,200}?\bmessage\s?:\s?(?=\S)", re.IGNORECASE)
_MAY_ADVERB = r"(?:(?:just|also|really|only|simply|now|still|always|honestly|truly|very much) ){0,2}"
#: What asks behind its subject, "I" for example.
_WISH = (
    rf"(?:(?:(?:would|d) {_MAY_ADVERB}(?:like|love|want)|like|love|want|wanted|need|wish|keen|hoping|trying|"
    r"(?:(?:would |d |['\u2019]d )?be )?(?:very |so |most )?(?:glad|grateful|thankful|interested|happy)) to "
    r"(?:know|understand|ask(?: you)?|find out|learn|hear|figure out)|(?:am |was |are |were )?"
    r"(?:just |also )?(?:wonder(?:ing)?|curious|(?:wanting|trying|hoping) to (?:know|find out|understand)))"
)
#: An indirect question within a sentence: "I am 75 and would like to know if".
_WISHED = re.compile(
    r"(?:(?:^|\b(?:and|but|so)\s|[.:;]\s)|(?<!what )(?<!all )\b(?:i|we)\b(?:['\u2019](?:d|m|re)\b)?)\s?"
    rf"{_MAY_ADVERB}{_WISH},?\s+"
    r"(?=(?:if|whether|what|how|why|when|where|who|which|can|could|is|are|does|do|should|will)\b)"
    r"(?!is (?:if|whether|what|how|why|when|where)\b)",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(
    r"(?:(?:(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day))"
    r"(?: (?:there|all|every(?:one|body)|again|guys|folks)\b|"
    r"(?: (?:dr|mr|mrs|ms)\.?)? \[?\w+\]?(?=\s?[,!:]))?|"
    r"dear [\w/]+(?:\.? \w+(?=\s?[,!:]))?|sir|madam|doctor|doc|dr|"
    r"to whom it may concern|please|pls|plz|so|and|but|also|well|anyway|anyhow|p\.?\s?s\.?|"
    r"(?:i|we) (?:just |also )?(?:forgot|meant) to ask|"
    r"(?:i|we)(?: would|['\u2019]d| should)? "
    r"(?:be (?:very |so |most )?(?:grateful|thankful|glad)|appreciate it) if "
    r"(?:you|someone|anyone|anybody|somebody) (?:could|can|would) (?:please |kindly )?"
    r"(?:tell (?:me|us)|let (?:me|us) know|advise(?: (?:me|us))?|explain|inform (?:me|us))|"
    r"who can tell (?:me|us)|"
    r"my (?:only |main |second )?questions?(?: (?:is|are|now is)|(?= ?:))|the question is|questions?|"
    r"(?:what|all) (?:i|we)(?:['\u2019](?:d|m|ve))? [^.?!:]{3,60}?(?: is|(?=:))"
    r"(?= (?:if|whether|at|in|for)\b|:? (?:how|what|why|when|where|which|can|could|is|are|do|does|did|"
    r"will|would|should|may)\b)|"
    r"(?:may|might|can|could) i ask(?: you)?|"
    rf"(?:(?:i|we)(?:['\u2019](?:d|m|re))? ?)?{_MAY_ADVERB}{_WISH}|help me|"
    r"(?:can|could|would|will) (?:you|someone|anyone|anybody|somebody) (?:please |kindly )?"
    r"(?:tell (?:me|us)|advise(?: (?:me|us)(?: as to)?| as to|(?! (?:me|us)\b))|let (?:me|us) know|"
    r"explain(?: to (?:me|us)|(?! to\b))|say)|"
    r"(?:(?:some|any)(?:one|body) )?(?:please |kindly )?(?:tell|advise|let|inform) (?:me|us)(?: know)?|"
    r"do you know|does any(?:one|body) know|"
    r"i don'?t know|if you (?:could|can)|"
    r"any(?:one|body) know)\s?[,:;.!-]*\s+)+(?=\S)(?!(?:about|of|for|on|regarding)\b)"
    # Not "I would like to know more about gout", which is no question without its front.
    r"(?!(?:(?:a (?:little|bit|lot) |some )?more|everything) "
    r"(?:about|on|of|regarding)\b(?! (?:how|what|why|when|where|who|which|if|whether)\b))",
    re.IGNORECASE,
)
#: "Kindly help me to cure it", "I need stronger pills", "I am looking for a test", "Information on gout".
_REQUEST = re.compile(
    r"\b(?:please|pls|plz|kindly|if you (?:could|can))\s(?:\w+\s){0,2}?"
    r"(?:get back|send|mail|give|advise|suggest|help|tell|provide|recommend|let|guide|explain|inform)\b|"
    rf"\b(?:i|we)(?:['\u2019](?:d|m|re)|\s(?:would|am|are|was|were))?\s{_MAY_ADVERB}"
    r"(?:need\b(?! to (?:go|take|get up))|in need of\b|seeking\b|searching for\b|"
    r"like\s(?:some|any|more|to (?:know|find|see|get|learn|buy|purchase|order))\b|"
    r"looking (?:for|to (?:find|buy|get))\b|trying to (?:find|locate)\b)|"
    r"^\W{0,5}(?:looking for|need|seeking|(?:any |more )?info(?:rmation)? (?:on|about|regarding))\b",
    re.IGNORECASE,
)
_WHETHER = re.compile(r"(?:if|whether(?: or not)?)\s+", re.IGNORECASE)
_THANKS = re.compile(
    r"\b(?:thanks?(?: you)?(?: so much| very much| in advance| for your [\w ]{1,40})?|"
    r"please(?: help| advise| reply)?|plz)[.!]*$",
    re.IGNORECASE,
)
#: Where a clause begins that has the word order of a question.
_CLAUSE = re.compile(
    r"(?:[,;:.)-]|\b(?:and|but|so|or|because))\s+(?:(?:and|but|so|also|then|please)\s+){0,3}"
    r"(?P<clause>(?:what|which|how|why|where|who|when)\s+(?:is|are|was|do|does|did|can|could|should|would|"
    r"will|causes?|long|much|many|often|else|kinds?|types?)\b|"
    r"(?:is|are|do|does|did|can|could|should|would|will|may|has|have|am)\s+(?:it|this|that|there|they|"
    r"these|those|he|she|i|we|you|the|my|his|her|a|an|any|anyone|someone)\b)",
    re.IGNORECASE,
)
#: What says more of something without a question mark: "my neighbour, who is a nurse".
_RELATIVE = re.compile(r"who|which|where|when", re.IGNORECASE)


def asking_clause(sentence: str) -> Span:
    """The offsets of the part of a sentence that asks; the whole sentence where nothing can be cut off."""
    field = _FIELD.match(sentence)
    item = _ITEM.match(sentence)
    first = field.end() if field and _count(sentence[field.end() :]) >= _LEAST_CUT else 0
    first = max(first, item.end() if item else 0)
    wish = _wish(sentence, first)
    if wish is None and _count(sentence[first:]) > LONG:
        first = max(first, _clause_start(sentence))
    first = _behind(sentence, wish or _PREAMBLE.match(sentence, first), first)
    thanks = _THANKS.search(sentence, first)
    if thanks and _count(sentence[first : thanks.start()]) >= _LEAST_CUT:
        return Span(first, first + len(sentence[first : thanks.start()].rstrip(" ,;:.!")))
    return Span(first, len(sentence))


def asks_indirectly(sentence: str) -> bool:
    """Whether the writer says within a sentence what he or she wants to know."""
    return _wish(sentence, 0) is not None


def requests(sentence: str) -> bool:
    """Whether a sentence asks for something without the form of a question: "Please send me leaflets"."""
    return _REQUEST.search(sentence) is not None


def _wish(sentence: str, first: int) -> re.Match[str] | None:
    """The last wish to know something, from `first` on."""
    return next(reversed(list(_WISHED.finditer(sentence, first))), None)


def _behind(sentence: str, opening: re.Match[str] | None, first: int) -> int:
    """Where the question behind a wish or a preamble begins; `first` where there is none, or "if" and no
    clause that can be brought into the word order of a question.
    """
    if opening is None:
        return first
    end = opening.end()
    if is_fragment(sentence[:end], sentence[end:]):
        return first
    if whether := _WHETHER.match(sentence, end):
        end = whether.end() if inverts(sentence[whether.end() :]) else first
    return end if _count(sentence[end:]) >= _LEAST_CUT else first


def _clause_start(sentence: str) -> int:
    """The first asking clause that is not too long itself, else the last one; 0 where there is none."""
    starts = [m.start("clause") for m in _CLAUSE.finditer(sentence)]
    if not sentence.rstrip("\"') ").endswith("?"):
        starts = [s for s in starts if not _RELATIVE.match(sentence, s)]
    found = [s for s in starts if _count(sentence[s:]) >= _LEAST]
    return next((s for s in found if _count(sentence[s:]) <= LONG), found[-1] if found else 0)


def _count(text: str) -> int:
    """Words with a letter or digit."""
    return sum(any(map(str.isalnum, word)) for word in text.split())
