"""Learns which form a question takes, and which candidate is its best summary."""

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
from training.evaluation.summarization import summary_counts
from training.summarization.data import Pair

#: Strengths of the ridges; the one of the forms was chosen by cross-validation in the training questions.
FORMS_RIDGE, RANK_RIDGE = 2.0, 3.0
#: Of the cross-validation of the ranker.
FOLDS = 5


class Choice(NamedTuple):
    """ROUGE-1 on questions that nothing was fitted on, by how a summary is chosen."""

    scores: dict[str, float]
    questions: int

    def best(self, least: float) -> str:
        """The decoder alone unless another way is better by at least `least` points."""
        name = max(self.scores, key=lambda n: self.scores[n])
        return name if self.scores[name] >= self.scores["pointer"] + least else "pointer"


def learned_forms(
    pairs: Sequence[Pair], entities: Mapping[str, Sequence[Entity]], least: int = 2
) -> list[str]:
    """The forms of the cues, then those of at least so many summaries with their longest entity left out."""
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


def worths(forms: Sequence[str], pairs: Sequence[Pair], named: Sequence[Sequence[Entity]]) -> Tensor:
    """(pairs, forms): F1 of words of each form about the entity of the question that serves it best, as a
    share; a question without an entity has the form with nothing in it.
    """
    rows = []
    for pair, entities in zip(pairs, named, strict=True):
        right = Counter(word_keys(pair.summary))
        about = [e.text for e in distinct_entities(entities)] or subjects(pair.question, ()) or [""]
        rows.append([max(f1(Counter(word_keys(f.replace(SLOT, a))), right) for a in about) for f in forms])
    return torch.tensor(rows)


def fit_forms(
    encoder: Encoder, recogniser: Recogniser, pairs: Sequence[Pair], entities: Mapping[str, Sequence[Entity]]
) -> TemplateWriter:
    """Forms and their ridge regression; `entities` are those of the summaries, by pair id."""
    forms = learned_forms(pairs, entities)
    questions = [p.question for p in pairs]
    wanted = worths(forms, pairs, recogniser.entities(questions))
    weights = ridge(features(encoder, questions), wanted, FORMS_RIDGE)
    return TemplateWriter(encoder, recogniser, forms, weights)


def ridge(x: Tensor, y: Tensor, strength: float) -> Tensor:
    """(features, outputs) weights of least squares, with a penalty on all but the last feature, a one."""
    penalty = strength * torch.eye(x.shape[1], dtype=torch.float64)
    penalty[-1, -1] = 1e-6
    a = x.double()
    solved: Tensor = torch.linalg.solve(a.T @ a + penalty, a.T @ y.double())
    return solved.float()


def fit_ranker(writer: RankedWriter, pairs: Sequence[Pair]) -> tuple[list[float], Choice]:
    """Weights fitted on all pairs, and what each way of choosing scores on them, the ranker's by
    cross-validation within them. The pairs must be new to the decoder and to the forms, and at least FOLDS.
    """
    found = writer.candidates([p.question for p in pairs])
    gains = [
        summary_counts(texts, [p.summary] * len(texts))[:, 0]
        for (texts, _), p in zip(found, pairs, strict=True)
    ]
    rows = [np.array(r, np.float64) for _, r in found]
    scores = {
        "pointer": _mean(gains, [0] * len(pairs)),
        "templates": _mean(gains, [_first_form(r) for r in rows]),
    }
    chosen = [0] * len(pairs)
    for fold in range(FOLDS):
        inside = [i for i in range(len(pairs)) if i % FOLDS != fold]
        weights = _fit(rows, gains, inside)
        for i in range(fold, len(pairs), FOLDS):
            chosen[i] = int((rows[i] @ weights).argmax())
    scores["ranked"] = _mean(gains, chosen)
    return _fit(rows, gains, range(len(pairs))).tolist(), Choice(scores, len(pairs))


def _fit(rows: Sequence[np.ndarray], gains: Sequence[np.ndarray], which: Sequence[int]) -> np.ndarray:
    """Each candidate's ROUGE-1 as a share, less the mean of its question: only differences matter."""
    x = np.concatenate([rows[i] for i in which])
    y = np.concatenate([(gains[i] - gains[i].mean()) / 100 for i in which])
    return (
        ridge(torch.from_numpy(x), torch.from_numpy(y).unsqueeze(1), RANK_RIDGE).squeeze(1).double().numpy()
    )


def _first_form(rows: np.ndarray) -> int:
    """The place of the first filled form; the decoder's first where there is none."""
    places = np.flatnonzero(rows[:, 2] == 0)
    return int(places[0]) if len(places) else 0


def _mean(gains: Sequence[np.ndarray], chosen: Sequence[int]) -> float:
    return float(np.mean([g[i] for g, i in zip(gains, chosen, strict=True)]))


def save(writer: TemplateWriter, folder: Path) -> None:
    """The files of a release."""
    TemplateWriter.save(writer.templates, folder)
    save_file({"worth": writer.weights.half().contiguous()}, folder / TEMPLATE_WEIGHTS)
