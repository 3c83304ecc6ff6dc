"""Encoders, matrices and terms while Dynamic Context Refining is trained."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.added_tokens import extended_embedding
from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder
from models.normalization.context_refining import (
    DynamicContextRefining,
    Refiner,
    context_encoder,
    marked_sentences,
    pool_with_gradients,
)
from models.normalization.model import NormalizationModel
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from training.common.adapter import restore, trainable, trained_parameters, trained_state
from training.common.precision import mixed
from training.normalization.context_refining import (
    Example,
    Settings,
    cosine_embedding,
    like_length,
    rows_by_pt,
    softmax_loss,
)

#: Nearest wrong terms that a hard negative is drawn from, and terms that are looked at to find them.
HARD, NEAR = 10, 60


class Trainer:
    """Encoders, matrices and terms of one run."""

    def __init__(
        self,
        isolated: Encoder,
        context: Encoder,
        terms: Sequence[Term],
        settings: Settings,
        device: str = "cpu",
    ) -> None:
        """`isolated` and `context` are left as they are: copies are trained."""
        torch.manual_seed(settings.seed)
        self.settings, self.terms, self.device = settings, list(terms), device
        self.seconds = 0.0
        """that training and validation took, before a kill too"""
        own = Encoder(copy.deepcopy(context.model), context.tokenizer, context.max_pieces)
        self.context = trainable(context_encoder(own, None, settings.window), settings.rank)
        extended_embedding(self.context).rows.requires_grad_(True)
        self.isolated = trainable(isolated, settings.rank or 16) if settings.isolated else isolated
        self.isolated.model.eval()
        self.refining = DynamicContextRefining(isolated.dimension).to(device)
        self.modules: list[Any] = [self.context.model, self.refining]
        if settings.isolated:
            self.modules.append(self.isolated.model)
        self.parameters = [p for m in self.modules for p in trained_parameters(m)]
        self._known: dict[str, Tensor] = {}
        self._by_pt = rows_by_pt(self.terms)
        self._shared = [row for rows in self._by_pt.values() if len(rows) > 1 for row in rows]
        self.embed_terms()

    def embed_terms(self) -> None:
        self.vectors = self.isolated.embed([t.llt for t in self.terms]).clone()

    def model(self, k: int = 5, nil_below: float = 0.0, phrases: Phrases | None = None) -> NormalizationModel:
        """As it would be served."""
        refiner = Refiner(self.isolated, self.context, self.refining)
        return NormalizationModel(
            self.isolated,
            self.terms,
            self.vectors,
            k=k,
            nil_below=nil_below,
            refiner=refiner,
            phrases=phrases,
        )

    def state(self) -> list[dict[str, Tensor]]:
        return [trained_state(m) for m in self.modules]

    def restore(self, state: Sequence[Mapping[str, Tensor]]) -> None:
        for module, part in zip(self.modules, state, strict=True):
            restore(module, part)
            module.eval()
        if self.settings.isolated:
            self.embed_terms()

    def refined(self, batch: Sequence[Example]) -> Tensor:
        """e' (batch, d) with gradients, e_isolated where there is no context."""
        surfaces = [e.query.surface for e in batch]
        e_isolated = self._term_like(surfaces) if self.settings.isolated else self._frozen(surfaces)
        inside = [i for i, e in enumerate(batch) if e.pieces is not None]
        if not inside:
            return e_isolated
        with mixed(self.settings.precision, self.device):
            e_context = pool_with_gradients(self.context, [e.pieces for e in batch if e.pieces is not None])
        found, _ = self.refining(e_context, e_isolated[inside])
        return e_isolated.index_copy(0, torch.tensor(inside, device=found.device), found)

    def loss(self, batch: Sequence[Example], negatives: Sequence[int], rng: random.Random) -> Tensor:
        settings, refined = self.settings, self.refined(batch)
        positives = [rng.choice(self._positives(e)) for e in batch]
        if not (settings.in_batch or settings.all_terms):
            return cosine_embedding(refined, self._terms(positives), self._terms(list(negatives)))
        rows = list(range(len(self.terms)))
        if settings.in_batch:
            rows = sorted({*positives, *(negatives if settings.hard_negatives else ())})
        place = {row: i for i, row in enumerate(rows)}
        right, named = (torch.zeros(len(batch), len(rows), dtype=torch.bool) for _ in range(2))
        for i, example in enumerate(batch):
            right[i, [place[r] for r in example.right if r in place]] = True
            named[i, [place[r] for r in self._positives(example) if r in place]] = True
        terms = self.vectors if settings.all_terms else self._terms(rows)
        device = refined.device
        return softmax_loss(
            refined, terms.to(device), named.to(device), right.to(device), settings.temperature
        )

    def negatives(self, data: Sequence[Example], rng: random.Random) -> list[int]:
        """For each example a row whose preferred term is another."""
        if self.settings.hard_negatives:
            vectors, _ = Refiner(self.isolated, self.context, self.refining).embed([e.query for e in data])
            _, near = CosineIndex(self.vectors.numpy()).search(vectors.numpy(), NEAR)
            found = []
            for example, rows in zip(data, near.tolist(), strict=True):
                wrong = [r for r in rows if r not in example.right][:HARD]
                found.append(rng.choice(wrong) if wrong else self._other(example, rng))
            return found
        return [self._other(e, rng) for e in data]

    def swapped(self, data: Sequence[Example], rng: random.Random) -> list[Example]:
        """Terms in the place of some mentions: what no mention of the data teaches is learned from the
        terminology.
        """
        chosen = [i for i, e in enumerate(data) if e.pieces is not None and rng.random() < self.settings.swap]
        rows = [rng.choice(self._shared) for _ in chosen] if self._shared else []
        queries = [
            replace(data[i].query, surface=self.terms[r].llt) for i, r in zip(chosen, rows, strict=False)
        ]
        found = list(data)
        for i, row, asked, pieces in zip(
            chosen, rows, queries, marked_sentences(self.context, queries), strict=False
        ):
            right = tuple(self._by_pt[self.terms[row].pt])
            others = tuple(r for r in right if r != row)
            found[i] = Example(asked, pieces, others, others, right)
        return found

    def train_epoch(
        self, data: Sequence[Example], optimizer: Any, schedule: Any, rng: random.Random
    ) -> float:
        """The mean loss of the epoch."""
        data = self.swapped(data, rng)
        drawn = like_length(list(zip(data, self.negatives(data, rng), strict=True)), self.settings.batch, rng)
        for module in self.modules:
            module.train()
        losses = []
        for batch in drawn:
            loss = self.loss([e for e, _ in batch], [n for _, n in batch], rng)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        for module in self.modules:
            module.eval()
        if self.settings.isolated:
            self.embed_terms()
        return sum(losses) / len(losses)

    def _positives(self, example: Example) -> tuple[int, ...]:
        return example.same if self.settings.synonyms else example.named

    def _other(self, example: Example, rng: random.Random) -> int:
        while (row := rng.randrange(len(self.terms))) in example.right:
            pass
        return row

    def _frozen(self, surfaces: Sequence[str]) -> Tensor:
        new = [s for s in dict.fromkeys(surfaces) if s not in self._known]
        if new:
            # A copy: what was computed in inference mode cannot be saved for a gradient.
            self._known |= dict(zip(new, self.isolated.mean_pooled(new).clone(), strict=True))
        return torch.stack([self._known[s] for s in surfaces]).to(self.device)

    def _terms(self, rows: Sequence[int]) -> Tensor:
        if self.settings.isolated:
            return self._term_like([self.terms[r].llt for r in rows])
        return self.vectors[list(rows)].to(self.device)

    def _term_like(self, texts: Sequence[str]) -> Tensor:
        limit = self.isolated.max_pieces - 2
        encoded = self.isolated.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        with mixed(self.settings.precision, self.device):
            return pool_with_gradients(self.isolated, [ids[:limit] for ids in encoded["input_ids"]])
