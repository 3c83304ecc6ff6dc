"""Dynamic Context Refining (CONORM-EN) in training: S_context, M_K and M_Q; S_isolated is frozen by default.

AdamW with a one-cycle rate; the epoch with the best validation accuracy is kept (with one prediction for each
mention that is the paper's micro F1).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from models.encoder.faiss_index import CosineIndex
from models.normalization.model import NormalizationModel
from models.terminology import Term
from training.common import UserError
from training.common.batching import length_batches
from training.common.codings.split import Split, pts_by_term, query, right_terms
from training.common.corpora import GoldCoding
from training.common.loop import Trainee, steps_of
from training.normalization.data import Example, examples
from training.normalization.losses import cosine_embedding, softmax_loss
from training.normalization.network import Encoders, RefiningNetwork
from training.normalization.sampling import NEAREST, TermSampler
from training.normalization.settings import Settings

#: Batches out of which sentences of similar length are put together.
POOL = 10
#: So far apart are the seeds of runs' epochs that no two are the same.
SEED_STEP = 100_003
#: An example and the row of its negative.
Pair = tuple[Example, int]


class RefiningTrainee(Trainee):
    """A network trained on the mentions of a split's training part."""

    def __init__(
        self,
        settings: Settings,
        encoders: Encoders,
        terms: Sequence[Term],
        split: Split,
        device: torch.device | str = "cpu",
    ) -> None:
        """Raises UserError where no training mention can be learned from, or no term is wrong for one."""
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        self.network = RefiningNetwork(encoders, terms, settings, self.device)
        self.validation = split.valid
        data = examples(split.train, terms, self.network.context)
        # With S_isolated frozen, a mention without context has nothing to train.
        self.data = data if settings.isolated else [e for e in data if e.pieces is not None]
        if not self.data:
            raise UserError("no training mention has both a sentence and a term that the terminology knows")
        if any(len({*e.right_rows}) == len(terms) for e in self.data) or len({t.pt for t in terms}) == 1:
            raise UserError(
                "a training mention needs a wrong term too: the terminology has no other preferred term"
            )
        self._sampler = TermSampler(terms)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=settings.lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            max_lr=settings.lr,
            total_steps=steps_of(self.epochs, len(self.data), settings.batch),
        )

    def modules(self) -> Sequence[nn.Module]:
        return self.network.modules()

    def epoch(self, number: int) -> dict[str, float]:
        rng = random.Random(self.settings.seed * SEED_STEP + number)
        data = self.swapped(self.data, rng)
        batches = length_batches(
            list(zip(data, self.negatives(data, rng), strict=True)),
            size=self.settings.batch,
            pool=POOL,
            length=lambda pair: len(pair[0].pieces or ()),
            rng=rng,
        )
        losses = self.one_pass(batches, lambda batch: self.loss(batch, rng), number)
        self._update_terms()
        return losses

    def validate(self, number: int) -> dict[str, float]:
        """None where no validation mention has a term: then the last epoch is kept."""
        by_term = pts_by_term(self.network.terms)
        if not any(right_terms(gold, by_term) for gold in self.validation):
            return {}
        right, weight = accuracy(self.network.model(), self.validation)
        return {"acc@1": right, "context weight": weight}

    def load_weights(self, weights: Sequence[Mapping[str, Tensor]]) -> None:
        super().load_weights(weights)
        self._update_terms()

    def swapped(self, data: Sequence[Example], rng: random.Random) -> list[Example]:
        """The examples of an epoch: some mentions are replaced by terms (`--swap`)."""
        return self._sampler.replaced(data, self.settings.swap, self.network.context, rng)

    def negatives(self, data: Sequence[Example], rng: random.Random) -> list[int]:
        """For each example a row whose preferred term is another."""
        if not self.settings.hard_negatives:
            return self._sampler.random_negatives(data, rng)
        vectors, _ = self.network.refiner().embed([e.query for e in data])
        _, nearest = CosineIndex(self.network.vectors.numpy()).search(vectors.numpy(), NEAREST)
        return self._sampler.hard_negatives(data, nearest.tolist(), rng)

    def loss(self, batch: Sequence[Pair], rng: random.Random) -> Tensor:
        """Of a batch of examples with their negatives; the positives are drawn here."""
        settings = self.settings
        data, negatives = [e for e, _ in batch], [n for _, n in batch]
        refined = self.network.refined(data)
        positives = [rng.choice(self._positives(e)) for e in data]
        if not (settings.in_batch or settings.all_terms):
            vectors = self.network.term_vectors
            return cosine_embedding(refined, vectors(positives), vectors(negatives))
        rows = list(range(len(self.network.terms)))
        if settings.in_batch:
            rows = sorted({*positives, *(negatives if settings.hard_negatives else ())})
        terms = self.network.vectors if settings.all_terms else self.network.term_vectors(rows)
        positive = self._mask(rows, [self._positives(e) for e in data])
        right = self._mask(rows, [e.right_rows for e in data])
        return softmax_loss(refined, terms.to(self.device), positive, right, settings.temperature)

    def _mask(self, rows: Sequence[int], chosen: Sequence[Sequence[int]]) -> Tensor:
        """(examples, rows), True where an example's chosen rows have the row."""
        column = {row: i for i, row in enumerate(rows)}
        mask = torch.zeros(len(chosen), len(rows), dtype=torch.bool)
        for i, example_rows in enumerate(chosen):
            mask[i, [column[r] for r in example_rows if r in column]] = True
        return mask.to(self.device)

    def _positives(self, example: Example) -> tuple[int, ...]:
        return example.synonym_rows if self.settings.synonyms else example.gold_rows

    def _update_terms(self) -> None:
        if self.settings.isolated:
            self.network.embed_terms()


def accuracy(model: NormalizationModel, golds: Sequence[GoldCoding]) -> tuple[float, float]:
    """Share of mentions whose best preferred term is right, over those with a gold term that the terminology
    contains; and the mean context weight of those with context.
    """
    by_term = pts_by_term(model.terms)
    known = [(g, right) for g in golds if (right := right_terms(g, by_term))]
    codings = model.predict([query(g) for g, _ in known])
    hits = sum(c.candidates[0].pt in right for c, (_, right) in zip(codings, known, strict=True))
    weights = [c.context_weight for c in codings if c.context_weight is not None]
    return hits / max(1, len(known)), sum(weights) / max(1, len(weights))
