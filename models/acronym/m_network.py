"""The trained scoring head of an acronym release: scores of the long forms of an acronym.

The score of a long form is the negative sum of up to three energies. The m-network itself (Seneviratne et al.
2022, section 3) is the part `distance`: the sentence as it is (the anchor) and the sentence with each long
form are encoded, the means over their pieces are mapped to SIZE dimensions, and the squared distance to the
anchor is the energy. Two other parts may be in its place: `alone`, the cosines of the anchor, and of the
pieces near the acronym, to the long form encoded without a sentence; and the surface features of the long
form in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from models.acronym import surface_features
from models.acronym.acronym_encoder import AcronymEncoder, Vectors
from models.acronym.questions import MarkedText, Question
from models.encoder.model import Encoder

NO_CANDIDATE = float("inf")
#: Dimension to which `distance` maps the mean of a text.
SIZE = 64


class HeadConfig(NamedTuple):
    """Which parts a head has."""

    distance: bool = True
    alone: bool = False
    surface_features: bool = False

    @classmethod
    def from_manifest(cls, network: Mapping[str, Any]) -> HeadConfig:
        """From the key `network` of a manifest's configuration. Raises KeyError where a part is not named."""
        return cls(network["distance"], network["alone"], network["surface"])

    def to_manifest(self) -> dict[str, Any]:
        """The inverse of `from_manifest`."""
        return {"distance": self.distance, "alone": self.alone, "surface": self.surface_features}


def texts_of(question: Question, config: HeadConfig) -> list[MarkedText]:
    """The texts that a head reads beside the anchor: where needed the sentence with each long form; where
    needed each long form alone.
    """
    forms = question.long_forms
    candidates = [question.replaced(form) for form in forms] if config.distance else []
    alone = [MarkedText(form, 0, len(form)) for form in forms] if config.alone else []
    return [*candidates, *alone]


class VectorRows(NamedTuple):
    """The rows that the texts of each question have among the vectors of all texts, for n questions with at
    most m long forms.
    """

    anchors: Tensor
    """(n,)"""
    candidates: Tensor
    """(n, m): sentences with long forms; 0 where there is no candidate or they are not read"""
    alone: Tensor
    """(n, m): long forms alone; 0 likewise"""
    present: Tensor
    """(n, m): whether there is a candidate"""


def vector_rows(counts: Sequence[int], config: HeadConfig) -> VectorRows:
    """The vector rows of questions by their numbers of long forms; of each the anchor precedes `texts_of`."""
    most = max(counts)
    candidates, alone = (torch.zeros((len(counts), most), dtype=torch.long) for _ in range(2))
    anchors = []
    next_row = 0
    for question, count in enumerate(counts):
        anchors.append(next_row)
        next_row += 1
        for is_read, table in ((config.distance, candidates), (config.alone, alone)):
            if is_read:
                table[question, :count] = torch.arange(next_row, next_row + count)
                next_row += count
    present = torch.arange(most)[None] < torch.tensor(counts)[:, None]
    return VectorRows(torch.tensor(anchors), candidates, alone, present)


class Head(nn.Module):
    """From vectors to energies; the attribute names are the tensor names of a release's head file."""

    spread: Tensor
    """(features,): the standard deviation of each surface feature in training; 1 where it is not known"""

    def __init__(self, dimension: int, config: HeadConfig, dropout: float = 0.5) -> None:
        super().__init__()
        self.config = config
        n_features = len(surface_features.NAMES) if config.surface_features else 0
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(dimension, SIZE) if config.distance else None
        self.alone = nn.Parameter(torch.tensor([6.0, 2.0])) if config.alone else None
        self.surface = nn.Linear(n_features, 1, bias=False) if n_features else None
        self.register_buffer("spread", torch.ones(n_features))
        if self.surface is not None:
            nn.init.zeros_(self.surface.weight)

    def forward(self, vectors: Vectors, rows: VectorRows, features: Tensor) -> Tensor:
        """(n, m) energies, NO_CANDIDATE where there is none; `features`: (n, m, surface features)."""
        energies = torch.zeros(rows.present.shape, device=rows.present.device)
        if self.dense is not None:
            energies = energies + self._distances(self.dense, vectors.mean, rows)
        if self.alone is not None:
            mean, near = (nn.functional.normalize(part, dim=-1) for part in (vectors.mean, vectors.near))
            forms = mean[rows.alone]
            cosines = [(forms * part[rows.anchors].unsqueeze(1)).sum(-1) for part in (mean, near)]
            energies = energies - torch.stack(cosines, -1) @ self.alone
        if self.surface is not None:
            energies = energies - self.surface(features / self.spread).squeeze(-1)
        masked: Tensor = energies.masked_fill(~rows.present, NO_CANDIDATE)
        return masked

    def _distances(self, dense: nn.Linear, pooled: Tensor, rows: VectorRows) -> Tensor:
        """(n, m): the squared distances of the sentences with long forms to the anchors."""
        small = dense(self.dropout(pooled))
        distances: Tensor = (small[rows.candidates] - small[rows.anchors].unsqueeze(1)).square().sum(-1)
        return distances


def pad_features(questions: Sequence[Sequence[Sequence[float]]]) -> Tensor:
    """(n, m, surface features) from the features of each question's long forms, zeros where there is no
    candidate.
    """
    most = max(len(forms) for forms in questions)
    out = torch.zeros(len(questions), most, len(surface_features.NAMES))
    for i, forms in enumerate(questions):
        out[i, : len(forms)] = torch.tensor(forms)
    return out


class MNetwork:
    """Encoder and head, for inference."""

    def __init__(self, encoder: Encoder, head: Head) -> None:
        self.encoder = AcronymEncoder(encoder)
        self.head = head.eval()

    def scores(self, questions: Sequence[Question]) -> tuple[list[list[float]], Tensor]:
        """For each question the scores (negative energies) of its long forms, and the mean vector of the
        pieces near its acronym, (questions, dimension).
        """
        if not questions:
            return [], torch.zeros((0, self.encoder.dimension))
        with torch.inference_mode():
            energies, near = self.energies(questions, [q.anchor() for q in questions])
        rows = zip(energies, questions, strict=True)
        return [(-row[: len(q.long_forms)]).tolist() for row, q in rows], near

    def energies(self, questions: Sequence[Question], anchors: Sequence[MarkedText]) -> tuple[Tensor, Tensor]:
        """For n questions, with at most m long forms, the (n, m) energies between the long forms in their
        places and the anchors, NO_CANDIDATE where there is no long form; and the mean vectors of the pieces
        near the anchors' acronyms, (n, dimension). Gradients flow as far as the encoder lets them.
        """
        config = self.head.config
        texts = [t for q, a in zip(questions, anchors, strict=True) for t in (a, *texts_of(q, config))]
        pieces = self.encoder.tokenize(texts)
        rows = vector_rows([len(q.long_forms) for q in questions], config)
        # The vector of a long form without a sentence is always the same.
        alone = rows.alone[rows.present].tolist() if config.alone else []
        vectors = self.encoder.vectors(pieces, {pieces[i] for i in alone})
        device = vectors.mean.device
        rows = VectorRows(*(part.to(device) for part in rows))
        features = torch.zeros(0)
        if config.surface_features:
            features = pad_features([q.features(self.encoder.count) for q in questions])
        energies = self.head(vectors, rows, features.to(device))
        return energies, vectors.near[rows.anchors]

    def near_vectors(self, questions: Sequence[Question]) -> Tensor:
        """(questions, dimension): the mean vector of the pieces near the acronym; encodes anchors only."""
        return self.encoder.vectors(self.encoder.tokenize([q.anchor() for q in questions])).near
