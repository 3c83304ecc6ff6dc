"""Synthetic training rows: phrases of texts replaced by their initials.

A head that is trained on the acronyms of one field overfits to that field. Any phrase that occurs more than
once can be abbreviated by its initials, and other phrases with the same initials are long forms to choose
from.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from models.text import words
from models.types import Span
from training.common import DATA
from training.evaluation.acronym import Row

#: Minimum and maximum number of words of a phrase.
SHORTEST, LONGEST = 2, 4
#: Minimum number of texts with a phrase, so that it is not a chance collocation.
FEWEST_TEXTS = 2
#: Maximum number of long forms to choose from, with the right one.
MOST_FORMS = 6
#: Maximum number of rows of one phrase.
ROWS = 2
#: Share of the plurals that are written as initials and s, and stand for the singular.
PLURAL_OUTSIDE = 0.5
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z][a-z]*(?=[A-Z])")
_PLURAL = re.compile(r"[^\Wsiu]s$")
#: Words that are in no phrase: function words, and words that are mostly verbs in medical reports.
_NO_PHRASE = frozenset((DATA / "acronym_no_phrase.txt").read_text(encoding="utf-8").split())


class Phrase(NamedTuple):
    """A phrase in a text; `form` is in lower case, with a space between its words."""

    span: Span
    form: str

    @property
    def initials(self) -> str:
        return "".join(word[0] for word in self.form.split(" ")).upper()


def phrases(text: str) -> Iterator[Phrase]:
    """The last SHORTEST to LONGEST words of each run of words that may be in a phrase."""
    for run in _runs(text):
        for n in range(SHORTEST, min(LONGEST, len(run)) + 1):
            span = Span(run[-n].start, run[-1].end)
            yield Phrase(span, text[span.start : span.end].lower())


def _runs(text: str) -> list[list[Span]]:
    """The words that may be in a phrase; those of a list follow each other."""
    runs: list[list[Span]] = [[]]
    for word in words(text):
        written = text[word.start : word.end]
        fits = _WORD.fullmatch(written) and written.lower() not in _NO_PHRASE
        if runs[-1] and not (fits and text[runs[-1][-1].end : word.start] == " "):
            runs.append([])
        if fits:
            runs[-1].append(word)
    return runs


def rows_of_phrases(texts: Sequence[str], dictionary: Mapping[str, Sequence[str]], seed: int) -> list[Row]:
    """At most ROWS rows of each phrase that FEWEST_TEXTS texts have, with at least one other phrase or long
    form of the dictionary to choose from, in random order.
    """
    occurrences = [(text, phrase) for text in texts for phrase in phrases(text)]
    in_texts = Counter(form for _, form in {(text, phrase.form) for text, phrase in occurrences})
    frequent = [(text, phrase) for text, phrase in occurrences if in_texts[phrase.form] >= FEWEST_TEXTS]
    forms: dict[str, list[str]] = {short.upper(): list(known) for short, known in dictionary.items()}
    for form, initials in sorted({(phrase.form, phrase.initials) for _, phrase in frequent}):
        known = forms.setdefault(initials, [])
        if form not in known:
            known.append(form)
    rng = random.Random(seed)
    rng.shuffle(frequent)
    seen: Counter[str] = Counter()
    rows = []
    for text, phrase in frequent:
        seen[phrase.form] += 1
        if seen[phrase.form] <= ROWS and len(forms[phrase.initials]) > 1:
            rows.append(_row(text, phrase, forms[phrase.initials], rng))
    return rows


def _row(text: str, phrase: Phrase, forms: Sequence[str], rng: random.Random) -> Row:
    """The text with the phrase's initials in its place. Some of the plurals are initials and s and stand for
    the singular: the plural itself is then no wrong long form.
    """
    singular = phrase.form[:-1]
    rivals = [form for form in forms if form not in (singular, phrase.form)]
    outside = bool(rivals and _PLURAL.search(phrase.form)) and rng.random() < PLURAL_OUTSIDE
    gold = singular if outside else phrase.form
    wrong = rivals if outside else [form for form in forms if form != gold]
    senses = [gold, *rng.sample(wrong, min(MOST_FORMS - 1, len(wrong)))]
    rng.shuffle(senses)
    start = phrase.span.start
    changed = f"{text[:start]}{phrase.initials}{'s' if outside else ''}{text[phrase.span.end :]}"
    return Row(changed, Span(start, start + len(phrase.initials)), tuple(senses), gold)
