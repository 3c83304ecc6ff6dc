"""Sentences of the teaching corpus with an acronym and its long form: as rows, and as a source of long
forms for the dictionary.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

from models.acronym.prototypes import WRITTEN
from models.acronym.surface_features import undotted
from models.tables import read_tsv
from training import common
from training.acronym.prototypes import EncodedRows, Estimates, RowScores, Usage, scored_by, sense_of
from training.common.long_forms import key
from training.evaluation.acronym import Row, locate
from training.teaching.batches import AcronymContext

#: Sentences that no model learns from: sentence, short form, and its right long forms with bars between them.
SENTENCES = Path(common.__file__).with_name("acronym_sentences.tsv")
#: Parts of the senses, each held out once, when the weight of written sentences is chosen.
PARTS = 5


def extended_dictionary(
    dictionary: Mapping[str, Sequence[str]],
    contexts: Iterable[AcronymContext],
    senses: Iterable[tuple[str, str]] = (),
) -> dict[str, list[str]]:
    """The dictionary extended by the long forms of the sentences, and by `senses` (short form, long form),
    that it lacks in any spelling.
    """
    forms = {short: list(long_forms) for short, long_forms in dictionary.items()}
    for short_form, long_form in [*((c.short_form, c.long_form) for c in contexts), *senses]:
        own = forms.setdefault(short_form, [])
        if key(long_form) not in map(key, own):
            own.append(long_form)
    return dict(sorted(forms.items()))


def spellings(
    dictionary: Mapping[str, Sequence[str]], rows: Iterable[Row]
) -> dict[tuple[str, str], list[str]]:
    """Short form and key of a long form to its spellings in the dictionary and in rows' senses."""
    found: dict[tuple[str, str], list[str]] = {}
    senses = [(short, form) for short, forms in dictionary.items() for form in forms]
    senses += sorted({(undotted(row.short_form), form) for row in rows for form in row.senses})
    for short, form in senses:
        own = found.setdefault((short, key(form)), [])
        if form not in own:
            own.append(form)
    return found


def written_rows(
    contexts: Iterable[AcronymContext],
    dictionary: Mapping[str, Sequence[str]],
    known: Mapping[tuple[str, str], Sequence[str]],
) -> list[Row]:
    """A row of each sentence for each of the `spellings` of its long form, so that each has a prototype."""
    rows = []
    for c in contexts:
        span = locate(c.text, c.short_form)
        if span is None:
            raise ValueError(f"{c.short_form!r} is not in its sentence {c.text!r}")
        for form in known.get((undotted(c.short_form), key(c.long_form)), [c.long_form]):
            rows.append(Row(c.text, span, tuple(dictionary[c.short_form]), form))
    return rows


def validation_sentences(dictionary: Mapping[str, Sequence[str]]) -> list[Row]:
    """Sentences with acronyms as frequent as in notes and case reports, written to validate: those that the
    dictionary has several long forms of, the right one among them. A row's gold is the dictionary's spelling.
    """
    rows = []
    for text, short_form, stated in read_tsv(SENTENCES, ("sentence", "short_form", "long_forms")):
        forms = dictionary.get(short_form, ())
        right = {key(form) for form in stated.split("|")}
        gold = next((form for form in forms if key(form) in right), None)
        span = locate(text, short_form)
        if len(forms) > 1 and gold is not None and span is not None:
            rows.append(Row(text, span, tuple(forms), gold))
    return rows


def with_dictionary_forms(rows: Iterable[Row], dictionary: Mapping[str, Sequence[str]]) -> list[Row]:
    """The rows with the dictionary's other long forms of the acronym as further senses, as at inference."""
    out = []
    for row in rows:
        known = set(map(key, row.senses))
        more = (form for form in dictionary.get(undotted(row.short_form), ()) if key(form) not in known)
        out.append(row._replace(senses=(*row.senses, *more)))
    return out


def sense_parts(covered: Iterable[tuple[str, str]], seed: int) -> list[set[tuple[str, str]]]:
    """The senses in PARTS seeded parts of equal size; spellings of one sense are in the same part."""
    senses = sorted(set(covered))
    keys = sorted({(short, key(form)) for short, form in senses})
    random.Random(seed).shuffle(keys)
    part_of = {sense: n % PARTS for n, sense in enumerate(keys)}
    parts: list[set[tuple[str, str]]] = [set() for _ in range(PARTS)]
    for short, form in senses:
        parts[part_of[short, key(form)]].add((short, form))
    return parts


def scored_as_unseen(
    rows: EncodedRows,
    more: Sequence[EncodedRows],
    covered: Set[tuple[str, str]],
    estimated: Estimates,
    seed: int,
) -> list[RowScores]:
    """The rows of the senses `covered`, scored as if only written sentences had them: cross-validation in
    which one part of the senses at a time is removed from all other sources.
    """
    scored = []
    for part in sense_parts(covered & {sense_of(row) for row in rows.rows}, seed):
        rest = rows.without(part)
        sources = [source if source.source == WRITTEN else source.without(part) for source in more]
        asked = rows.part([i for i, row in enumerate(rows.rows) if sense_of(row) in part])
        scored += scored_by([rest, *sources], asked, Usage({rows.source: rest.rows}, estimated))
    return scored
