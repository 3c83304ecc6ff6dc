"""Rows made of texts in which a long form is written out: the acronym takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from models.acronym.definitions import best_long_form
from models.text import words
from models.types import Span
from training.common.corpora import read_ade, read_ade_abstracts, read_ade_negatives, read_negative_abstracts
from training.evaluation.acronym import Row

#: Words of the longest long form that is searched for in a text.
_LONGEST = 8
_BRACKET = re.compile(r"\s*\(\s*([^()\s]{2,10})\s*\)")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
#: Two of five abstracts are held out, by their number modulo 5.
_ABSTRACTS, _HELD = 5, 2


class WrittenOut(NamedTuple):
    """Rows made of sentences in which a long form is written out."""

    used: list[Row]
    """the sentence does not name the acronym"""
    defined: list[Row]
    """the sentence itself defines the acronym"""


def read_texts(data: Path, held_out: bool) -> list[str]:
    """The sentences of the ADE corpus and its negatives, of the held-out abstracts or of the others."""
    folder = data / "ade"
    abstracts = read_ade_abstracts(folder)
    texts = [(abstracts[t.id], _detokenised(t.text)) for t in read_ade(folder).values()]
    negatives = folder / "negatives.txt"
    numbers = read_negative_abstracts(negatives)
    texts += [(n, t.text) for n, t in zip(numbers, read_ade_negatives(negatives), strict=True)]
    return sorted({text for number, text in texts if (int(number) % _ABSTRACTS < _HELD) == held_out})


def _detokenised(text: str) -> str:
    """A sentence whose tokens are separated by spaces, without the spaces next to punctuation."""
    return re.sub(r" (?=[,.;:)%])|(?<=\() |(?<= -) | (?=- )", "", text).replace(" - ", "-")


def rows_of_texts(texts: Iterable[str], dictionary: Mapping[str, Sequence[str]]) -> WrittenOut:
    """A row for each long form in a text, the acronym in its place; brackets of definitions go."""
    acronyms = _acronyms_by_key(dictionary)
    first_words = {key.split()[0] for key in acronyms}
    rows = WrittenOut([], [])
    for text in texts:
        for span, key in _occurrences(text, acronyms, first_words):
            bracket = _BRACKET.match(text, span.end)
            for short_form, long_form in acronyms[key]:
                defines = bracket is not None and bracket.group(1) == short_form
                if bracket is not None and not defines and best_long_form(bracket.group(1), key) is not None:
                    # The text abbreviates the long form in another way.
                    continue
                end = bracket.end() if bracket is not None and defines else span.end
                changed = f"{text[: span.start]}{short_form}{text[end:]}"
                place = Span(span.start, span.start + len(short_form))
                row = Row(changed, place, tuple(dictionary[short_form]), long_form)
                (rows.defined if defines else rows.used).append(row)
    return rows


def _acronyms_by_key(dictionary: Mapping[str, Sequence[str]]) -> dict[str, list[tuple[str, str]]]:
    """Key of a long form to the ambiguous short forms that have it, each with its spelling of it."""
    acronyms: dict[str, list[tuple[str, str]]] = {}
    for short_form, long_forms in dictionary.items():
        for long_form in long_forms if len(long_forms) > 1 else ():
            acronyms.setdefault(_key(long_form), []).append((short_form, long_form))
    return acronyms


def _occurrences(text: str, keys: Mapping[str, object], first_words: Set[str]) -> Iterator[tuple[Span, str]]:
    """Spans of a text whose key is one of `keys`, which begin with `first_words`; of those that begin at the
    same word the longest.
    """
    spans = [w for w in words(text) if text[w.start].isalnum() and not _POSSESSIVE.match(text, w.start - 1)]
    lower = [text[w.start : w.end].lower() for w in spans]
    at = 0
    while at < len(spans):
        longest = min(_LONGEST, len(spans) - at) if lower[at] in first_words else 0
        for n in range(longest, 0, -1):
            key = " ".join(lower[at : at + n])
            if key in keys:
                yield Span(spans[at].start, spans[at + n - 1].end), key
                at += n
                break
        else:
            at += 1


def _key(long_form: str) -> str:
    """A long form as it is compared: its words in lower case without punctuation between them and without
    the possessive ("Kaposi's sarcoma", "Kaposi sarcoma").
    """
    return " ".join(re.findall(r"\w+", _POSSESSIVE.sub("", long_form.lower())))
