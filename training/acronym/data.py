"""Training rows of acronyms: from labelled corpora, and from sentences in which a long form is written
out.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from models.acronym.definitions import best_long_form
from models.acronym.model import CLINICAL, load_dictionary
from models.acronym.surface_features import undotted
from models.releases.manifest import TrainingData
from models.text import words
from models.types import Span
from training.acronym.phrases import rows_of_phrases
from training.acronym.written import extended_dictionary, spellings, written_rows
from training.common.corpora import read_ade, read_ade_abstracts, read_ade_negatives, read_negative_abstracts
from training.evaluation.acronym import Row, casi_parts, read_sdu
from training.teaching.readers import acronym_contexts

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
#: The corpora that are read from another one's texts.
MADE_OF = {"ade_defined": "ade", "phrases": "ade"}
#: Words of the longest long form that is searched for in a text.
_LONGEST = 8
_BRACKET = re.compile(r"\s*\(\s*([^()\s]{2,10})\s*\)")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
#: Two of five abstracts are held out, by their number modulo 5.
_ABSTRACTS, _HELD = 5, 2


def read_training(data: Path, corpus: str) -> list[Row]:
    """The training rows of a corpus; none of them is in its evaluation part. Those of `ade` are sentences in
    which an ambiguous acronym of the bundled dictionary takes the place of one of its long forms, those of
    `ade_defined` the ones that define it, those of `phrases` have the initials of any phrase. `written` is
    the teaching corpus.
    """
    folder = data / "acronyms"
    if corpus in ("ade", "ade_defined"):
        rows = read_written_out(data, load_dictionary(CLINICAL), held_out=False)
        return rows.used if corpus == "ade" else rows.defined
    if corpus == "written":
        contexts = acronym_contexts("train")
        dictionary = extended_dictionary(load_dictionary(CLINICAL), contexts)
        return written_rows(contexts, dictionary, spellings(dictionary, []))
    if corpus == "phrases":
        return rows_of_phrases(read_ade_texts(data, held_out=False), load_dictionary(CLINICAL), seed=0)
    if corpus == "casi":
        return casi_parts(folder)[0]
    return read_sdu(folder / f"{corpus}_train.json", folder / f"{corpus}_dictionary.json")


def split_by_acronym(
    corpora: Sequence[Sequence[Row]], share: float, seed: int, validated: Sequence[Sequence[Row]] = ()
) -> tuple[list[Row], list[list[Row]]]:
    """Rows for training, and of each corpus the rows of a share of all acronyms for validation. No acronym is
    in both, also where one corpus has it in training rows and another one not. `validated`: corpora of which
    nothing is trained on.
    """
    names = sorted({undotted(r.short_form).lower() for rows in corpora for r in rows})
    random.Random(seed).shuffle(names)
    held = set(names[: round(share * len(names))])
    parts = [_parted(rows, held) for rows in corpora]
    never = [_parted(rows, held)[1] for rows in validated]
    return [row for training, _ in parts for row in training], [*(rest for _, rest in parts), *never]


def _parted(rows: Iterable[Row], held: Set[str]) -> tuple[list[Row], list[Row]]:
    """The rows of other acronyms, and those of the acronyms `held`."""
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        parts[undotted(row.short_form).lower() in held].append(row)
    return parts


def sample_validation(
    corpora: Sequence[Sequence[Row]], per_long_form: int, seed: int, total: int
) -> list[Row]:
    """At most `total` rows (0: all), about as many of each corpus, so that the largest does not decide."""
    each = -(-total // len(corpora))
    return [row for rows in corpora for row in sample_rows(rows, per_long_form, seed, each)]


def sample_rows(rows: Sequence[Row], per_long_form: int, seed: int, total: int = 0) -> list[Row]:
    """Rows in random order, at most `per_long_form` of one long form of an acronym and at most `total` in
    all; 0: no limit.
    """
    order = list(rows)
    random.Random(seed).shuffle(order)
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for row in order:
        seen[undotted(row.short_form), row.gold] += 1
        if not per_long_form or seen[undotted(row.short_form), row.gold] <= per_long_form:
            kept.append(row)
    return kept[:total] if total else kept


def right_first(row: Row) -> Row:
    """The row with the right long form before the others."""
    return row._replace(senses=(row.gold, *(s for s in row.senses if s != row.gold)))


class WrittenOut(NamedTuple):
    """Rows made of sentences in which a long form is written out."""

    used: list[Row]
    """the sentence does not name the acronym"""
    defined: list[Row]
    """the sentence itself defines the acronym"""


def read_written_out(data: Path, dictionary: Mapping[str, Sequence[str]], held_out: bool) -> WrittenOut:
    """Rows made of the sentences of the ADE corpus and its negatives in which a long form of an ambiguous
    acronym is written out; of the held-out abstracts or of the others.
    """
    return rows_of_texts(read_ade_texts(data, held_out), dictionary)


def read_ade_texts(data: Path, held_out: bool) -> list[str]:
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
    """A row for each long form that occurs in a text, with the acronym in its place; of a definition the
    bracket is removed.
    """
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
    """Key of a long form to the ambiguous short forms that have it, each with its spelling of the long
    form.
    """
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
