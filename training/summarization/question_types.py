"""Fits the question templates (forms) to questions, and the ranker that chooses among candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from models.encoder.model import Encoder
from models.summarization.medical_entities import Entity, Recogniser, word_keys
from models.summarization.question_cues import CUES, SLOT
from models.summarization.question_templates import (
    TEMPLATE_WEIGHTS,
    TemplateWriter,
    distinct_entities,
    features,
    subjects,
)
from models.summarization.reranker import RankedWriter, f1
from training.evaluation.summarization.measure import summary_counts
from training.summarization.data import Pair

#: Strengths of the ridge regressions; that of the forms was chosen by cross-validation on the training
#: questions.
FORMS_RIDGE, RANK_RIDGE = 2.0, 3.0
#: Of the cross-validation of the ranker.
FOLDS = 5


class Choice(NamedTuple):
    """ROUGE-1 by the way in which a summary is chosen, on questions that nothing was fitted on."""

    scores: dict[str, float]
    questions: int

    def best(self, least: float) -> str:
        """The decoder alone unless another way is better by at least `least` points."""
        name = max(self.scores, key=lambda n: self.scores[n])
        return name if self.scores[name] >= self.scores["pointer"] + least else "pointer"


def learned_forms(
    pairs: Sequence[Pair], entities: Mapping[str, Sequence[Entity]], least: int = 2
) -> list[str]:
    """The forms of the cues, then those that at least `least` summaries have when their longest entity is
    replaced by the place holder.
    """
    counts: Counter[str] = Counter()
    for pair in pairs:
        own = entities.get(pair.id, ())
        if own and SLOT not in pair.summary:
            longest = max(own, key=lambda e: (e.end - e.start, -e.start))
            text = pair.summary[: longest.start] + SLOT + pair.summary[longest.end :]
            counts[text[:1].upper() + text[1:]] += 1
    given = [form for _, form in CUES]
    known = {form.lower() for form in given}
    return given + sorted(f for f, n in counts.items() if n >= least and f.lower() not in known)


def form_scores(forms: Sequence[str], pairs: Sequence[Pair], named: Sequence[Sequence[Entity]]) -> Tensor:
    """(pairs, forms): F1 of words between the right summary and each form, as a share, with the best entity
    of the question in the form; without an entity the form is left empty. `named`: entities of the questions.
    """
    rows = []
    for pair, entities in zip(pairs, named, strict=True):
        right = Counter(word_keys(pair.summary))
        names = [e.text for e in distinct_entities(entities)] or subjects(pair.question, ()) or [""]
        rows.append([max(f1(Counter(word_keys(f.replace(SLOT, n))), right) for n in names) for f in forms])
    return torch.tensor(rows)


def fit_forms(
    encoder: Encoder, recogniser: Recogniser, pairs: Sequence[Pair], entities: Mapping[str, Sequence[Entity]]
) -> TemplateWriter:
    """Forms and the ridge regression that predicts their scores from a question; `entities` are those of the
    summaries, by pair id.
    """
    forms = learned_forms(pairs, entities)
    questions = [p.question for p in pairs]
    scores = form_scores(forms, pairs, recogniser.entities(questions))
    weights = ridge(features(encoder, questions), scores, FORMS_RIDGE)
    return TemplateWriter(encoder, recogniser, forms, weights)


def ridge(x: Tensor, y: Tensor, strength: float) -> Tensor:
    """(features, outputs) weights of least squares for x (n, features) and y (n, outputs); the penalty leaves
    out the last feature, which is a constant one.
    """
    penalty = strength * torch.eye(x.shape[1], dtype=torch.float64)
    penalty[-1, -1] = 1e-6
    a = x.double()
    solved: Tensor = torch.linalg.solve(a.T @ a + penalty, a.T @ y.double())
    return solved.float()


def fit_ranker(writer: RankedWriter, pairs: Sequence[Pair]) -> tuple[list[float], Choice]:
    """Weights fitted on all pairs, and the ROUGE-1 of each way of choosing on them, the ranker's by
    cross-validation within them. The pairs must be new to the decoder and to the forms, and at least FOLDS.
    """
    candidates = writer.candidates([p.question for p in pairs])
    rouges = [
        summary_counts(texts, [p.summary] * len(texts))[:, 0]
        for (texts, _), p in zip(candidates, pairs, strict=True)
    ]
    rows = [np.array(r, np.float64) for _, r in candidates]
    scores = {
        "pointer": _mean(rouges, [0] * len(pairs)),
        "templates": _mean(rouges, [_first_form(r) for r in rows]),
        "ranked": _mean(rouges, _cross_validated(rows, rouges)),
    }
    return _fit(rows, rouges, range(len(pairs))).tolist(), Choice(scores, len(pairs))


def _cross_validated(rows: Sequence[np.ndarray], rouges: Sequence[np.ndarray]) -> list[int]:
    """The candidate of each question by weights that were fitted on the other folds."""
    chosen = [0] * len(rows)
    for fold in range(FOLDS):
        weights = _fit(rows, rouges, [i for i in range(len(rows)) if i % FOLDS != fold])
        for i in range(fold, len(rows), FOLDS):
            chosen[i] = int((rows[i] @ weights).argmax())
    return chosen


def _fit(rows: Sequence[np.ndarray], rouges: Sequence[np.ndarray], questions: Sequence[int]) -> np.ndarray:
    """Weights that predict each candidate's ROUGE-1 as a share, less the mean of its question: only
    differences matter.
    """
    x = np.concatenate([rows[i] for i in questions])
    y = np.concatenate([(rouges[i] - rouges[i].mean()) / 100 for i in questions])
    weights = ridge(torch.from_numpy(x), torch.from_numpy(y).unsqueeze(1), RANK_RIDGE)
    return weights.squeeze(1).double().numpy()


def _first_form(rows: np.ndarray) -> int:
    """The index of the first filled form; 0, the decoder's best, where there is none."""
    places = np.flatnonzero(rows[:, 2] == 0)
    return int(places[0]) if len(places) else 0


def _mean(rouges: Sequence[np.ndarray], chosen: Sequence[int]) -> float:
    return float(np.mean([r[i] for r, i in zip(rouges, chosen, strict=True)]))


def save(writer: TemplateWriter, folder: Path) -> None:
    """Writes the files of a release."""
    TemplateWriter.save(writer.templates, folder)
    save_file({"worth": writer.weights.half().contiguous()}, folder / TEMPLATE_WEIGHTS)
