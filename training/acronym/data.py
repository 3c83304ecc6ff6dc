"""Training rows of acronyms from all corpora, and how they are parted and sampled."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from models.acronym.model import CLINICAL, load_dictionary
from models.acronym.questions import Question, question, undotted
from models.releases.manifest import TrainingData
from models.tables import read_tsv
from models.types import Span
from training.acronym.settings import Settings
from training.acronym.written_out import read_texts, rows_of_texts
from training.common import DATA
from training.common.long_forms import casi_senses, key
from training.evaluation.acronym import Row, casi_parts, locate, read_sdu, split_casi
from training.teaching.batches import AcronymContext
from training.teaching.readers import acronym_contexts

#: The corpora but "written", which is the teaching corpus.
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
WRITTEN = "written"
#: The corpora that tables read.
COUNTED = (WRITTEN, "ade", "casi")
#: Share of the rows of an acronym that are held out for validation.
HELD_OUT = 0.15
#: Sentences that no model learns from: sentence, short form, and its right long forms with bars between them.
SENTENCES = DATA / "acronym_sentences.tsv"


def read_parts(data: Path, settings: Settings) -> tuple[list[Row], list[Row]]:
    """Rows with several long forms for training, and of each acronym a share of them for validation; none is
    in an evaluation part.
    """
    rows: list[Row] = []
    folder = data / "acronyms"
    for corpus in settings.names:
        if corpus == WRITTEN:
            dictionary = clinical_dictionary([WRITTEN])
            rows += written_rows(contexts_of([WRITTEN]), dictionary)
        elif corpus == "ade":
            rows += rows_of_texts(read_texts(data, held_out=False), clinical_dictionary([])).used
        elif corpus == "casi":
            rows += casi_parts(folder)[0]
        else:
            rows += read_sdu(folder / f"{corpus}_train.json", folder / f"{corpus}_dictionary.json")
    training, held_out = split_casi(sample_rows(ambiguous(rows), settings.seed), settings.seed, HELD_OUT)
    return training, sample_rows(held_out, settings.seed, settings.limit)


def ambiguous(rows: Iterable[Row]) -> list[Row]:
    """The rows with several long forms to choose from."""
    return [row for row in rows if len(row.senses) > 1]


def questions(rows: Sequence[Row]) -> list[Question]:
    return [question(r.text, r.span, Span(0, len(r.text)), r.senses) for r in rows]


def sense_of(row: Row) -> tuple[str, str]:
    """Short form without full stops, and long form."""
    return undotted(row.short_form), row.gold


def sample_rows(rows: Sequence[Row], seed: int, total: int = 0) -> list[Row]:
    """Rows in random order, at most `total`; 0: no limit."""
    order = list(rows)
    random.Random(seed).shuffle(order)
    return order[: total or None]


def contexts_of(corpora: Collection[str]) -> list[AcronymContext]:
    """The sentences of the teaching corpus where that is one of the corpora."""
    return acronym_contexts("train") if WRITTEN in corpora else []


def clinical_dictionary(corpora: Collection[str]) -> dict[str, list[str]]:
    """The dictionary of a release that learned from these corpora, which add their long forms to ours."""
    senses = [(short, form) for (short, _), form in casi_senses().items()] if "casi" in corpora else []
    return extended_dictionary(load_dictionary(CLINICAL), contexts_of(corpora), senses)


def extended_dictionary(
    dictionary: Mapping[str, Sequence[str]],
    contexts: Iterable[AcronymContext],
    senses: Iterable[tuple[str, str]] = (),
) -> dict[str, list[str]]:
    """The dictionary with the long forms of sentences and `senses` that it lacks in any spelling."""
    forms = {short: list(long_forms) for short, long_forms in dictionary.items()}
    for short_form, long_form in [*((c.short_form, c.long_form) for c in contexts), *senses]:
        known = forms.setdefault(short_form, [])
        if key(long_form) not in map(key, known):
            known.append(long_form)
    return dict(sorted(forms.items()))


def written_rows(contexts: Iterable[AcronymContext], dictionary: Mapping[str, Sequence[str]]) -> list[Row]:
    """A row of each sentence; its gold is the dictionary's spelling of the long form."""
    rows = []
    for c in contexts:
        span = locate(c.text, c.short_form)
        if span is None:
            raise ValueError(f"{c.short_form!r} is not in its sentence {c.text!r}")
        forms = tuple(dictionary[undotted(c.short_form)])
        rows.append(Row(c.text, span, forms, next(f for f in forms if key(f) == key(c.long_form))))
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
