"""Short texts beside a stated drug, as companies and registries report them ("high blood sugar", "death"): a
tagger, which reads sentences, takes them for a complaint that was treated, or for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from models.rules.notation import patterns
from models.terminology import term_named
from models.types import ADE, WITHDRAWAL, Mention, Span

_SAYS = patterns("verbatims")
#: Words of the longest verbatim.
MOST_WORDS = 5
#: Of the shortest name in small letters.
_LEAST_LETTERS = 3
_MARKS = " \t\n\r.,;:!*\"'-()"


def is_verbatim(text: str) -> bool:
    """Whether a text, beside a stated drug, may report an effect in a few words; a question does not."""
    return len(text.split(maxsplit=MOST_WORDS)) <= MOST_WORDS and "?" not in text


def with_verbatims(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions of a verbatim, in text order: if it is the name of a term, or of several, each is an
    effect, with score 1 and without a status, unless an effect has all of it, and of no other, already.
    """
    made, spans = list(mentions), _names(text)
    for span in spans:
        on = [m for m in made if m.start < span.end and span.start < m.end]
        others = [other for other in spans if other != span]
        if any(_has(m, span) and not any(_has(m, other) for other in others) for m in on):
            continue
        effect = Mention(span.start, span.end, text[span.start : span.end], ADE, 1.0)
        made = [m for m in made if m not in on] + [effect]
    return sorted(made, key=lambda m: (m.start, m.end, m.label))


def _has(mention: Mention, span: Span) -> bool:
    """Whether a mention with all of a span is what it is here; a withdrawal is named as one."""
    is_such = mention.label == ADE or (mention.label == WITHDRAWAL and "withdraw" in mention.text.lower())
    return is_such and mention.start <= span.start and span.end <= mention.end


def joined_names(text: str) -> list[Span]:
    """The names of terms that all parts of a text are, where it is no name itself and has several parts."""
    names = _names(text) if _SAYS["between"].search(text) else []
    return names if len(names) > 1 else []


def _names(text: str) -> list[Span]:
    """The name of a term that is all of the text, or the names of terms that all its parts are."""
    whole = _name(text, 0, len(text))
    parts = [whole] if whole else [_name(text, *part) for part in _parts(text)]
    return [part for part in parts if part] if all(parts) else []


def _parts(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for between in _SAYS["between"].finditer(text):
        yield start, between.start()
        start = between.end()
    if start:
        yield start, len(text)


def _name(text: str, start: int, end: int) -> Span | None:
    """Where a part of a text is the name of a term: all of it, or without what may stand beside one."""
    start += len(text[start:end]) - len(text[start:end].lstrip(_MARKS))
    end = start + len(text[start:end].rstrip(_MARKS))
    words = text[start:end]
    first = _SAYS["before"].match(words)
    last = _SAYS["behind"].search(words)
    for left, right in (
        (0, len(words)),
        (first.end() if first else 0, len(words)),
        (0, last.start() if last else len(words)),
        (first.end() if first else 0, last.start() if last else len(words)),
    ):
        if _is_event(words[left:right]):
            return Span(start + left, start + right)
    return None


def _is_event(name: str) -> bool:
    """Whether a term has this name, or its words in another order ("blood sugar high")."""
    if len(name) < _LEAST_LETTERS and not name.isupper():
        return False
    words = name.split()
    orders = permutations(words) if len(words) < MOST_WORDS else (words,)
    term = next(filter(None, (term_named(" ".join(order)) for order in orders)), None)
    return term is not None and not _SAYS["unlike"].search(term.pt)
