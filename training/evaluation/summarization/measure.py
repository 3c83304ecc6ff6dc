"""Evaluation of summarization: ROUGE and whether answer and reference name the same entities; the baselines
are the first sentence and a template for the kind of question.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from models.rules.sentences import sentences
from models.scores import Counts, Measure, ratio
from training.common.corpora import json_lines
from training.evaluation.result import EvaluationError, Result
from training.evaluation.summarization.baselines import template
from training.teaching.readers import questions

if TYPE_CHECKING:
    from models.releases.manifest import Release
    from models.summarization.medical_entities import Entity

SPLITS = ("meqsum_test", "mediqa_valid", "teaching_held_out")
NAMES = dict(
    zip(
        SPLITS,
        (
            "MeQSum test part",
            "MEDIQA 2021 task 1, validation part",
            "teaching corpus, held-out questions, synthetic",
        ),
        strict=True,
    )
)
PRIMARY = "rouge1"
ROUGES = ("rouge1", "rouge2", "rougeL")
#: Columns of `summary_counts`: the three of ROUGES, words, one.
_WORDS, _ONE = 3, 4
#: Columns of `entity_counts` behind them: a focus found, entities of reference and answer, of the reference,
#: an entity of neither question nor reference; then whether the answer is a sentence of the question, and
#: ROUGE of the template.
_FOCUS, _SHARED, _GOLD, _STRANGE, _EXTRACTIVE, _TEMPLATE = range(5, 11)
HOW = "F1 in percent, mean over questions, rouge-score with stemming"
TEMPLATE = "of a trivial method: question type by its words, filled with the first entity of the question"


class Question(NamedTuple):
    """A consumer question and its reference summary."""

    text: str
    summary: str


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: list[Question]
    stanza: Path
    """folder of Stanza's models, used if it exists"""


def read(data: Path, split: str, limit: int) -> Corpus:
    """The questions of a split: of MeQSum, of MEDIQA 2021 or of the teaching corpus."""
    if split == "teaching_held_out":
        asked = [Question(q.question, q.summary) for _, q in questions("held_out")]
    else:
        file = "meqsum.jsonl" if split == "meqsum_test" else "mediqa21_val.jsonl"
        rows = (json.loads(line) for _, line in json_lines(data / "questions" / file))
        asked = [Question(r["question"], r["summary"]) for r in rows if r.get("split") in (None, "test")]
    return Corpus(NAMES[split], asked[:limit] if limit else asked, data / "stanza")


def measures(recogniser: str) -> tuple[Measure, ...]:
    """All scores; the definitions of entity scores name the recogniser."""
    return (
        *(ratio(name, f"{name} {HOW}", (i, _ONE)) for i, name in enumerate(ROUGES)),
        ratio("mean_words", "words between white space of an answer, mean over questions", (_WORDS, _ONE)),
        *_entity_measures(f"entities by {recogniser}"),
        ratio("extractive", "share of answers that are parts of the question", (_EXTRACTIVE, _ONE)),
        *(
            ratio(f"{name}_template", f"{name} {HOW}, {TEMPLATE}", (_TEMPLATE + i, _ONE))
            for i, name in enumerate(ROUGES)
        ),
    )


def _entity_measures(entities: str) -> tuple[Measure, ...]:
    """Scores that count entities, which `entities` describes."""
    return (
        ratio(
            "entity_consistency",
            f"entities of both reference and answer over those of the references (ECL, Eq. 8), {entities}",
            (_SHARED, _GOLD),
        ),
        ratio(
            "unfaithful",
            f"share of answers that name an entity which neither question nor reference names, {entities}",
            (_STRANGE, _ONE),
        ),
        ratio(
            "focus_identification",
            f"share of references in which a focus is found, whatever the answer; {entities}",
            (_FOCUS, _ONE),
        ),
    )


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates the summaries that `model.predict` gives."""
    from models.ner.model import NerModel  # noqa: PLC0415
    from models.summarization.medical_entities import recogniser  # noqa: PLC0415  a model library

    found_by = recogniser(NerModel.load(bundled_tagger()), corpus.stanza)
    texts, references = [q.text for q in corpus.records], [q.summary for q in corpus.records]
    started = time.perf_counter()
    found = model.predict(texts)
    seconds = time.perf_counter() - started
    gold = found_by.entities(references)
    filled = list(map(template, texts, found_by.entities(texts)))
    trivial = summary_counts(filled, references)[:, : len(ROUGES)]

    def counts(answers: Sequence[str], methods: Sequence[str]) -> Counts:
        entities = entity_counts(answers, corpus.records, found_by.entities(answers), gold)
        extractive = np.array([m == "extractive" for m in methods], np.float64).reshape(-1, 1)
        return np.hstack([summary_counts(answers, references), entities, extractive, trivial])

    scores = measures(found_by.name)
    ours = [*ROUGES, "mean_words", "entity_consistency", "unfaithful"]
    first = [first_sentence(t) for t in texts]
    return Result(
        counts([s.text for s in found], [s.method for s in found]),
        counts(first, ["extractive"] * len(texts)),
        scores,
        dict.fromkeys(ours, "first sentence"),
        seconds,
    )


def summary_counts(predictions: Sequence[str], references: Sequence[str]) -> Counts:
    """(texts, 5): F1 in percent of ROUGE-1, 2 and L with stemming (package rouge-score), words, one."""
    try:
        from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415  of the training extra
    except ImportError:
        raise EvaluationError(
            "summaries are scored by rouge-score: in the clone: pip install -e '.[train]'"
        ) from None
    scorer = RougeScorer(list(ROUGES), use_stemmer=True)
    rows = []
    for prediction, reference in zip(predictions, references, strict=True):
        rouge = scorer.score(reference, prediction)
        rows.append([*(100 * rouge[name].fmeasure for name in ROUGES), len(prediction.split()), 1])
    return np.array(rows, np.float64).reshape(len(rows), _ONE + 1)


def entity_counts(
    answers: Sequence[str],
    records: Sequence[Question],
    found: Sequence[Sequence[Entity]],
    gold: Sequence[Sequence[Entity]],
) -> Counts:
    """(texts, 4): 1 where the reference has an entity; number of entities in both, and in the reference; 1
    where the answer names an entity that neither question nor reference names. An entity counts once per
    text, case ignored.
    """
    from models.drugs import DrugLexicon  # noqa: PLC0415  read only where it is needed
    from models.summarization.medical_entities import named_in, word_keys  # noqa: PLC0415

    lexicon = DrugLexicon.load()
    rows = []
    for record, ours, theirs in zip(records, found, gold, strict=True):
        named, wanted = ({tuple(word_keys(e.text)) for e in entities} for entities in (ours, theirs))
        known = (record.text, record.summary)
        strange = any(not any(named_in(e.text, text, lexicon) for text in known) for e in ours)
        rows.append([bool(wanted), len(named & wanted), len(wanted), strange])
    return np.array(rows, np.float64).reshape(len(answers), 4)


def first_sentence(text: str) -> str:
    """The first sentence; empty for a text without words."""
    return next((text[s.start : s.end] for s in sentences(text)), "")


def bundled_tagger() -> Release:
    """The NER release that comes with the code."""
    from models.releases.store import bundled, open_release  # noqa: PLC0415

    return open_release(bundled("ner"))
