"""Training rows of acronyms from all corpora, and how they are parted and sampled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path

from models.acronym.model import CLINICAL, load_dictionary
from models.acronym.prototypes import WRITTEN
from models.acronym.questions import Question, question
from models.acronym.surface_features import undotted
from models.releases.manifest import TrainingData
from models.tables import read_tsv
from models.types import Span
from training.acronym.phrases import rows_of_phrases
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
#: Share of the acronyms, or of the rows, that are held out for validation.
HELD_OUT = 0.15
#: Validation rows at most.
VALIDATED = 1500
#: Sentences that no model learns from: sentence, short form, and its right long forms with bars between them.
SENTENCES = DATA / "acronym_sentences.tsv"


def read_parts(data: Path, settings: Settings) -> tuple[list[Row], list[Row]]:
    """Rows with several long forms for training and for validation; none is in an evaluation part.

    softmax: no acronym is in both; CASI and the definitions in abstracts are for validation only, since its
    acronyms are in the prototypes. The paper's networks: a share of the rows of each acronym is held out.
    """
    trained: list[list[Row]] = []
    validated: list[list[Row]] = []
    folder = data / "acronyms"
    for corpus in settings.names:
        if corpus == WRITTEN:
            dictionary = clinical_dictionary([WRITTEN])
            trained.append(written_rows(contexts_of([WRITTEN]), dictionary, spellings(dictionary, [])))
        elif corpus == "ade":
            texts, dictionary = read_texts(data, held_out=False), clinical_dictionary([])
            rows = rows_of_texts(texts, dictionary)
            trained += [rows.used, rows_of_phrases(texts, dictionary, seed=0)]
            validated.append(rows.defined)
        elif corpus == "casi":
            (trained if settings.is_paper else validated).append(casi_parts(folder)[0])
        else:
            trained.append(read_sdu(folder / f"{corpus}_train.json", folder / f"{corpus}_dictionary.json"))
    if settings.is_paper:
        parts = split_casi(ambiguous([row for rows in trained for row in rows]), settings.seed, HELD_OUT)
        return parts[0], sample_rows(parts[1], 0, settings.seed, settings.limit)
    training, held_out = split_by_acronym(trained, HELD_OUT, settings.seed, validated)
    total = min(settings.limit, VALIDATED) or VALIDATED
    validation = sample_validation([*map(ambiguous, held_out)], settings.rows, settings.seed, total)
    return ambiguous(training), validation


def ambiguous(rows: Iterable[Row]) -> list[Row]:
    """The rows with several long forms to choose from."""
    return [row for row in rows if len(row.senses) > 1]


def questions(rows: Sequence[Row]) -> list[Question]:
    return [question(r.text, r.span, Span(0, len(r.text)), r.senses) for r in rows]


def sense_of(row: Row) -> tuple[str, str]:
    """Short form without full stops, and long form."""
    return undotted(row.short_form), row.gold


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
    """At most `total` rows, about as many of each corpus, so that the largest does not decide."""
    each = -(-total // len(corpora)) if corpora else 0
    return [row for rows in corpora for row in sample_rows(rows, per_long_form, seed, each)]


def sample_rows(rows: Sequence[Row], per_long_form: int, seed: int, total: int = 0) -> list[Row]:
    """Rows in random order, at most `per_long_form` of one long form of an acronym and at most `total` in
    all; 0: no limit.
    """
    order = list(rows)
    random.Random(seed).shuffle(order)
    seen: Counter[tuple[str, str]] = Counter()
    sampled = []
    for row in order:
        seen[sense_of(row)] += 1
        if not per_long_form or seen[sense_of(row)] <= per_long_form:
            sampled.append(row)
    return sampled[:total] if total else sampled


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
    """The dictionary extended by the long forms of the sentences, and by `senses` (short form, long form),
    that it lacks in any spelling.
    """
    forms = {short: list(long_forms) for short, long_forms in dictionary.items()}
    for short_form, long_form in [*((c.short_form, c.long_form) for c in contexts), *senses]:
        known = forms.setdefault(short_form, [])
        if key(long_form) not in map(key, known):
            known.append(long_form)
    return dict(sorted(forms.items()))


def spellings(
    dictionary: Mapping[str, Sequence[str]], rows: Iterable[Row]
) -> dict[tuple[str, str], list[str]]:
    """Short form and key of a long form to its spellings in the dictionary and in rows' senses."""
    by_sense: dict[tuple[str, str], list[str]] = {}
    senses = [(short, form) for short, forms in dictionary.items() for form in forms]
    senses += sorted({(undotted(row.short_form), form) for row in rows for form in row.senses})
    for short, form in senses:
        spelled = by_sense.setdefault((short, key(form)), [])
        if form not in spelled:
            spelled.append(form)
    return by_sense


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
