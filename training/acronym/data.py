"""Acronyms with a known long form, to learn from: labelled corpora, and sentences in which a long form is
written out.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from models.acronym.definitions import best_long_form
from models.acronym.surface_features import undotted
from models.releases.manifest import TrainingData
from models.text import words
from models.types import Span
from training.common.corpora import read_ade, read_ade_abstracts, read_ade_negatives, read_negative_abstracts
from training.evaluation.acronym import Row, read_casi, read_sdu, split_casi

CORPORA = {
    "sdu22_scientific": TrainingData(
        name="SDU@AAAI-22 acronym disambiguation, scientific English, training part",
        licence="CC BY-NC-SA 4.0",
    ),
    "sdu22_legal": TrainingData(
        name="SDU@AAAI-22 acronym disambiguation, legal English, training part", licence="CC BY-NC-SA 4.0"
    ),
    "casi": TrainingData(
        name="CASI (Moon et al. 2014), seven tenths of the rows of every acronym",
        licence="no formal text; free for research",
    ),
    "ade": TrainingData(
        name="ADE corpus (Gurulingappa et al. 2012) with negatives, as text without labels, three fifths of "
        "the abstracts",
        licence="none stated; citation asked",
    ),
}
#: Words of the longest long form that is looked for in a text.
_LONGEST = 8
_BRACKET = re.compile(r"\s*\(\s*([^()\s]{2,10})\s*\)")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
#: Two of five abstracts are held out, by the last digits of their number.
_ABSTRACTS, _HELD = 5, 2


def read_training(data: Path, corpus: str) -> list[Row]:
    """The rows of a labelled corpus that may be learned from."""
    folder = data / "acronyms"
    if corpus == "casi":
        return split_casi(read_casi(folder / "casi_dev.csv"))[0]
    return read_sdu(folder / f"{corpus}_train.json", folder / f"{corpus}_dictionary.json")


def split_acronyms(rows: Sequence[Row], share: float, seed: int) -> tuple[list[Row], list[Row]]:
    """Rows for training and rows of other acronyms for validation: whoever is validated must not have seen
    the acronym.
    """
    names = sorted({undotted(r.short_form) for r in rows})
    random.Random(seed).shuffle(names)
    held = set(names[: round(share * len(names))])
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        parts[undotted(row.short_form) in held].append(row)
    return parts


def at_most(rows: Sequence[Row], each: int, seed: int, total: int = 0) -> list[Row]:
    """Random rows, `each` of one long form of an acronym and `total` in all at most; 0: no limit."""
    order = list(rows)
    random.Random(seed).shuffle(order)
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for row in order:
        seen[undotted(row.short_form), row.gold] += 1
        if not each or seen[undotted(row.short_form), row.gold] <= each:
            kept.append(row)
    return kept[:total] if total else kept


def with_rivals(row: Row, most: int, rng: random.Random) -> Row:
    """The row with `most` long forms to choose from at most, the right one always among them; 0: all."""
    others = [s for s in row.senses if s != row.gold]
    if most and len(others) >= most:
        others = rng.sample(others, most - 1)
    return row._replace(senses=(row.gold, *others))


class Written(NamedTuple):
    """Rows made of long forms that stand in texts: any, and those that the texts themselves define."""

    used: list[Row]
    defined: list[Row]


def read_written(data: Path, dictionary: Mapping[str, Sequence[str]], held_out: bool) -> Written:
    """Rows of the sentences of the ADE corpus and its negatives in which a long form of an ambiguous acronym
    is written out, of the held-out abstracts or of the others.
    """
    folder = data / "ade"
    abstracts = read_ade_abstracts(folder)
    texts = [(abstracts[t.id], _joined(t.text)) for t in read_ade(folder).values()]
    negatives = folder / "negatives.txt"
    numbers = read_negative_abstracts(negatives)
    texts += [(n, t.text) for n, t in zip(numbers, read_ade_negatives(negatives), strict=True)]
    wanted = sorted({text for number, text in texts if (int(number) % _ABSTRACTS < _HELD) == held_out})
    return written(wanted, dictionary)


def _joined(text: str) -> str:
    """A sentence that was cut into tokens, without the spaces before its marks."""
    return re.sub(r" (?=[,.;:)%])|(?<=\() |(?<= -) | (?=- )", "", text).replace(" - ", "-")


def written(texts: Iterable[str], dictionary: Mapping[str, Sequence[str]]) -> Written:
    """Each long form that stands in a text gives a row with the acronym in its place; a definition loses its
    bracket.
    """
    places: dict[str, list[tuple[str, str]]] = {}
    for short_form, long_forms in dictionary.items():
        for long_form in long_forms if len(long_forms) > 1 else ():
            places.setdefault(_key(long_form), []).append((short_form, long_form))
    used: list[Row] = []
    defined: list[Row] = []
    first = {key.split()[0] for key in places}
    for text in texts:
        for span, key in _phrases(text, places, first):
            after = _BRACKET.match(text, span.end)
            for short_form, long_form in places[key]:
                is_defined = after is not None and after.group(1) == short_form
                if after is not None and not is_defined and best_long_form(after.group(1), key) is not None:
                    # The text abbreviates it in another way.
                    continue
                end = after.end() if after is not None and is_defined else span.end
                changed = f"{text[: span.start]}{short_form}{text[end:]}"
                at = Span(span.start, span.start + len(short_form))
                row = Row(changed, at, tuple(dictionary[short_form]), long_form)
                (defined if is_defined else used).append(row)
    return Written(used, defined)


def _phrases(text: str, wanted: Mapping[str, object], first: Set[str]) -> Iterator[tuple[Span, str]]:
    """Where a text has one of the keys `wanted`, whose first words are `first`; the longest of each
    beginning.
    """
    found = [w for w in words(text) if text[w.start].isalnum() and not _POSSESSIVE.match(text, w.start - 1)]
    lower = [text[w.start : w.end].lower() for w in found]
    at = 0
    while at < len(found):
        longest = min(_LONGEST, len(found) - at) if lower[at] in first else 0
        for n in range(longest, 0, -1):
            key = " ".join(lower[at : at + n])
            if key in wanted:
                yield Span(found[at].start, found[at + n - 1].end), key
                at += n
                break
        else:
            at += 1


def _key(long_form: str) -> str:
    """A long form as it is compared: its words in lower case, whatever marks stand between them, and without
    the possessive ("Kaposi's sarcoma", "Kaposi sarcoma").
    """
    return " ".join(re.findall(r"\w+", _POSSESSIVE.sub("", long_form.lower())))
