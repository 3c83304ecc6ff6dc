"""The part of a sentence that asks, without greeting, preamble and thanks around it."""

from __future__ import annotations

import re

from models.summarization.extraction.question_form import inverts
from models.types import Span

#: A sentence of more words is cut to its asking clause, if it has one.
LONG = 30
#: Fewer words are no clause, and what is cut off leaves at least so many.
_LEAST, _LEAST_CUT = 4, 3
#: The subject line of a contact form whose line breaks are lost.
_FIELD = re.compile(r".{0,200}?\bmessage\s?:\s?(?=\S)", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"(?:(?:hi|hello|hey|dear \w+|sir|madam|doctor|dr|please|pls|plz|so|and|but|also|well|anyway|anyhow|"
    r"my (?:only |main |second )?questions?(?: (?:is|are|now is)|(?= ?:))|the question is|questions?|"
    r"what i(?:['\u2019]d)? [^.?!:]{3,60}?(?: is|(?=:))"
    r"(?= (?:if|whether)\b|:? (?:how|what|why|when|where|which|can|could|is|are|do|does|did|will|would|"
    r"should|may)\b)|"
    r"(?:may|might|can|could) i ask(?: you)?|"
    r"i(?: would|'d|\u2019d| d) (?:just |really )?(?:like|love|want) to (?:know|ask|find out|learn|hear)|"
    r"i (?:just |really )?(?:want|wanted|need|wish|would love) to (?:know|ask|find out|learn)|"
    r"i(?:'m| am| was)? ?(?:just |also )?(?:wonder(?:ing)?|(?:wanting|trying|hoping) to (?:know|find out))|"
    r"help me|"
    r"(?:can|could|would|will) (?:you|someone|anyone|anybody|somebody) (?:please |kindly )?"
    r"(?:tell me|advise|let me know|explain|say)|"
    r"(?:please |kindly )?(?:tell|advise|let) (?:me|us)(?: know)?|do you know|does any(?:one|body) know|"
    r"i don'?t know|if you (?:could|can)|"
    r"any(?:one|body) know)\s?[,:;.!-]*\s+)+(?=\S)(?!(?:about|of|for|on|regarding)\b)",
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


def asking_clause(sentence: str) -> Span:
    """The offsets of the part of a sentence that asks; the whole sentence where nothing can be cut off."""
    field = _FIELD.match(sentence)
    first = field.end() if field and _count(sentence[field.end() :]) >= _LEAST_CUT else 0
    if _count(sentence[first:]) > LONG:
        first = max(first, _clause_start(sentence))
    first = _preamble_end(sentence, first)
    thanks = _THANKS.search(sentence, first)
    if thanks and _count(sentence[first : thanks.start()]) >= _LEAST_CUT:
        return Span(first, first + len(sentence[first : thanks.start()].rstrip(" ,;:.!")))
    return Span(first, len(sentence))


def _preamble_end(sentence: str, first: int) -> int:
    """Where the question behind a preamble begins; `first` where there is none, or "if" and no clause that
    can be brought into the word order of a question.
    """
    preamble = _PREAMBLE.match(sentence, first)
    if preamble is None:
        return first
    end = preamble.end()
    if whether := _WHETHER.match(sentence, end):
        end = whether.end() if inverts(sentence[whether.end() :]) else first
    return end if _count(sentence[end:]) >= _LEAST_CUT else first


def _clause_start(sentence: str) -> int:
    """The first asking clause that is not too long itself, else the last one; 0 where there is none."""
    starts = [m.start("clause") for m in _CLAUSE.finditer(sentence)]
    found = [s for s in starts if _count(sentence[s:]) >= _LEAST]
    return next((s for s in found if _count(sentence[s:]) <= LONG), found[-1] if found else 0)


def _count(text: str) -> int:
    """Words with a letter or digit."""
    return sum(any(map(str.isalnum, word)) for word in text.split())
