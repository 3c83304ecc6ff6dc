"""Evaluation of acronyms: the sense that a release chooses, on the test rows of CASI and on SDU@AAAI-22."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.acronym.questions import undotted
from models.scores import Counts, ratio
from models.types import Span
from training.common.corpora import ENCODING, in_form
from training.common.long_forms import casi_senses
from training.evaluation.measures import RecordMeasure, accuracy_at
from training.evaluation.result import Result

SPLITS = ("casi", "sdu22_scientific", "sdu22_legal")
PRIMARY = "accuracy"
DATA = {
    "casi": "CASI, held-out three tenths of the rows of every acronym",
    "sdu22_scientific": "SDU@AAAI-22 scientific English dev",
    "sdu22_legal": "SDU@AAAI-22 legal English dev",
}
#: Columns of the counts.
_RIGHT, _ONE, _GOLD, _CHOSEN, _MARGIN = range(5)
#: Shares of the rows that are answered, the clearest first.
COVERAGE = (0.9, 0.8, 0.6)
BATCH = 64
#: Seed and share of the rows of CASI that are held out from training.
SEED = 0
HELD_OUT = 0.3


class Row(NamedTuple):
    """An acronym in a text, the long forms to choose from, and the right one."""

    text: str
    span: Span
    senses: tuple[str, ...]
    gold: str

    @property
    def short_form(self) -> str:
        return self.text[self.span.start : self.span.end]


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: list[Row]
    majority: list[str]
    """of each record the most frequent sense of its acronym"""
    majority_definition: str


def read(data: Path, split: str, limit: int) -> Corpus:
    """The rows of a split with the most frequent sense of each acronym."""
    folder = data / "acronyms"
    if split == "casi":
        training, rows = casi_parts(folder)
        known = majority(training)
        # An acronym of which all rows are held out has no training rows.
        chosen = [known.get(undotted(row.short_form), row.senses[0]) for row in rows]
        definition = "always the acronym's commonest sense in the training rows"
    else:
        rows = read_sdu(folder / f"{split}_dev.json", folder / f"{split}_dictionary.json")
        commonest = majority(rows)
        chosen = [commonest[undotted(row.short_form)] for row in rows]
        definition = "always the acronym's commonest sense in these same rows"
    end = limit or len(rows)
    return Corpus(DATA[split], rows[:end], chosen[:end], definition)


def read_casi(path: Path) -> list[Row]:
    """The rows of CASI whose text contains the acronym, with or without full stops between its letters; its
    senses are those of its rows. Raises CorpusError.
    """
    with in_form(path), path.open(encoding=ENCODING, newline="") as file:
        return _casi(list(csv.DictReader(file)))


def _casi(entries: Sequence[Mapping[str, str]]) -> list[Row]:
    senses: dict[str, set[str]] = {}
    for row in entries:
        senses.setdefault(row["acronym_"], set()).add(row["expansion"])
    rows = []
    for row in entries:
        at = locate(row["text"], row["acronym_"])
        if at is not None:
            rows.append(Row(row["text"], at, tuple(sorted(senses[row["acronym_"]])), row["expansion"]))
    return rows


def casi_parts(folder: Path) -> tuple[list[Row], list[Row]]:
    """Training and held-out rows of CASI, with their senses as the dictionary calls them."""
    training, held_out = split_casi(read_casi(folder / "casi_dev.csv"))
    return [_as_in_dictionary(row) for row in training], [_as_in_dictionary(row) for row in held_out]


def _as_in_dictionary(row: Row) -> Row:
    short = undotted(row.short_form)
    known = casi_senses()
    senses = sorted({known.get((short, sense), sense) for sense in row.senses})
    return row._replace(senses=tuple(senses), gold=known.get((short, row.gold), row.gold))


def split_casi(rows: Sequence[Row], seed: int = SEED, share: float = HELD_OUT) -> tuple[list[Row], list[Row]]:
    """Training and held-out rows. The rows of each acronym are ordered by sense, within a sense by a hash of
    seed and text, and evenly spaced rows are held out, so that each sense is held out in its proportion. What
    is held out is not trained on either where the corpus has it twice.
    """
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(undotted(row.short_form), []).append(i)
    held: set[int] = set()
    for members in groups.values():
        order = sorted(members, key=lambda i: (rows[i].gold, _hash(seed, rows[i])))
        begin = int(_hash(seed, rows[order[0]])[:8], 16) / 16**8
        # One row wherever share * position passes a whole number.
        held |= {i for n, i in enumerate(order) if int((n + 1) * share + begin) > int(n * share + begin)}
    tested = {(rows[i].text, rows[i].span) for i in held}
    training = [row for row in rows if (row.text, row.span) not in tested]
    return training, [row for i, row in enumerate(rows) if i in held]


def _hash(seed: int, row: Row) -> str:
    return hashlib.sha256(f"{seed} {row.gold} {row.span.start} {row.text}".encode()).hexdigest()


def read_sdu(rows: Path, dictionary: Path) -> list[Row]:
    """SDU@AAAI-22 acronym disambiguation, every row. Raises CorpusError."""
    with in_form(dictionary):
        senses = json.loads(dictionary.read_text(encoding=ENCODING))
    out = []
    with in_form(rows):
        for row in json.loads(rows.read_text(encoding=ENCODING)):
            at = locate(row["sentence"], row["acronym"])
            if at is not None:
                out.append(Row(row["sentence"], at, tuple(senses[row["acronym"]]), row["label"]))
    return out


def locate(text: str, short_form: str) -> Span | None:
    """The first place of the acronym in the text: as a word, else at the beginning of a word, else with full
    stops, else inside a word (SDU@AAAI-22 has acronyms inside longer words too).
    """
    literal = re.escape(short_form)
    dotted = r"\.?\s?".join(map(re.escape, short_form))
    patterns = (
        rf"(?<![^\W_]){literal}(?![^\W_])",
        rf"(?<![^\W_]){literal}",
        rf"(?<![^\W_]){dotted}(?![^\W_])",
        literal,
    )
    for pattern in patterns:
        match = re.search(pattern, text)
        if match:
            return Span(*match.span())
    return None


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates the senses that `model.choose_many` scores highest."""
    rows = corpus.records
    started = time.perf_counter()
    answered = answers(model, rows)
    seconds = time.perf_counter() - started
    return Result(
        counts(rows, [a.sense for a in answered], [a.margin for a in answered]),
        counts(rows, corpus.majority),
        (*MEASURES, *AT_COVERAGE),
        {m.name: corpus.majority_definition for m in MEASURES},
        seconds,
    )


class Answer(NamedTuple):
    """The sense with the highest score, and by how much it is ahead of the second; 1 where there is none."""

    sense: str
    margin: float


def choices(model: Any, rows: Sequence[Row]) -> list[str]:
    """The sense that the model chooses in each row."""
    return [answer.sense for answer in answers(model, rows)]


def answers(model: Any, rows: Sequence[Row]) -> list[Answer]:
    """The model's answer to each row. Rows of similar length share a batch; equal rows are computed once."""
    unique = sorted({(r.text, r.span, r.senses) for r in rows}, key=lambda q: (len(q[0]), q[0], q[1].start))
    by_question: dict[tuple[str, Span, tuple[str, ...]], Answer] = {}
    for start in range(0, len(unique), BATCH):
        part = unique[start : start + BATCH]
        for question, scores in zip(part, model.choose_many(part), strict=True):
            order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
            margin = scores[order[0]] - scores[order[1]] if len(order) > 1 else 1.0
            by_question[question] = Answer(question[2][order[0]], margin)
    return [by_question[r.text, r.span, r.senses] for r in rows]


def majority(rows: Sequence[Row]) -> dict[str, str]:
    """The most frequent sense of each acronym in these rows."""
    senses: dict[str, Counter[str]] = {}
    for row in rows:
        senses.setdefault(undotted(row.short_form), Counter())[row.gold] += 1
    return {short_form: counts.most_common(1)[0][0] for short_form, counts in senses.items()}


def scores(rows: Sequence[Row], chosen: Sequence[str]) -> dict[str, float]:
    """All scores of chosen senses."""
    table = counts(rows, chosen)
    return {measure.name: measure.of(table) for measure in MEASURES}


def counts(rows: Sequence[Row], chosen: Sequence[str], margins: Sequence[float] = ()) -> Counts:
    """(rows, 5): right, one, gold sense, chosen sense, margin; senses have the same numbers each time."""
    numbers = {sense: n for n, sense in enumerate(sorted({s for row in rows for s in row.senses}))}
    return np.array(
        [
            [sense == row.gold, 1, numbers[row.gold], numbers[sense], margin]
            for row, sense, margin in zip(rows, chosen, margins or [0.0] * len(rows), strict=True)
        ],
        np.float64,
    )


def _shared_task_f1(table: Counts) -> Counts:
    """(rows, columns) to (1,): the F1 of macro precision and macro recall over the gold senses. A gold sense
    that is never chosen has precision 1, as in the shared task's scorer.
    """
    gold, chosen = (table[:, column].astype(np.intp) for column in (_GOLD, _CHOSEN))
    size = int(max(gold.max(), chosen.max())) + 1
    expected, chosen_counts = np.bincount(gold, minlength=size), np.bincount(chosen, minlength=size)
    right = np.bincount(gold[gold == chosen], minlength=size)
    senses = expected > 0
    precision = np.where(chosen_counts > 0, right / np.maximum(chosen_counts, 1), 1.0)[senses].mean()
    recall = (right[senses] / expected[senses]).mean()
    return np.array([2 * precision * recall / (precision + recall) if recall else 0.0])


def _authors_f1(sums: Counts) -> Counts:
    accuracy = sums[:, _RIGHT] / np.maximum(sums[:, _ONE], 1)
    doubled: Counts = 2 * accuracy / (1 + accuracy)
    return doubled


ACCURACY = ratio(
    PRIMARY,
    "share of rows whose gold sense scores highest of all that the data set gives the acronym",
    (0, 1),
)
MEASURES = (
    ACCURACY,
    RecordMeasure(
        "macro_f1",
        "F1 of macro precision and macro recall over the gold senses; a sense never chosen has precision 1 "
        "(the scorer of SDU@AAAI-22)",
        _shared_task_f1,
    ),
    type(ACCURACY)(
        "authors_f1", "2 accuracy / (1 + accuracy), what the published m-network code calls F1", _authors_f1
    ),
)
AT_COVERAGE = tuple(
    accuracy_at(
        f"accuracy_at_{share:.0%}".removesuffix("%"),
        f"accuracy of the {share:.0%} of the rows in which the best sense is farthest ahead of the second",
        (_RIGHT, _MARGIN, _ONE),
        share,
    )
    for share in COVERAGE
)
