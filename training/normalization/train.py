"""Dynamic Context Refining (CONORM-EN) in training: S_context, M_K and M_Q; S_isolated is frozen.

AdamW with a one-cycle rate; the epoch with the best validation accuracy is kept (with one prediction for each
mention that is the paper's micro F1).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.normalization.model import NormalizationModel
from models.terminology import Term
from training.common import UserError
from training.common.batching import length_batches
from training.common.codings.split import Split, pts_by_term, query, right_terms
from training.common.corpora import GoldCoding
from training.common.loop import Trainee, steps_of
from training.normalization.data import Example, examples, negative, shortened
from training.normalization.network import RefiningNetwork, cosine_embedding
from training.normalization.settings import Settings

#: Batches out of which sentences of similar length are put together.
POOL = 10
#: So far apart are the seeds of runs' epochs that no two are the same.
SEED_STEP = 100_003
#: An example and the row of its negative.
Pair = tuple[Example, int]


class RefiningTrainee(Trainee):
    """A network trained on the mentions of a split's training part, each whole or shortened in an epoch."""

    def __init__(
        self,
        settings: Settings,
        isolated: Encoder,
        terms: Sequence[Term],
        split: Split,
        device: torch.device | str = "cpu",
    ) -> None:
        """Raises UserError where no training mention can be learned from, or no term is wrong for one."""
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        self.network = RefiningNetwork(isolated, terms, settings, self.device)
        self.validation = split.valid
        rng = random.Random(settings.seed)
        whole = examples(split.train, terms, self.network.context)
        short = examples([shortened(g, rng) for g in split.train], terms, self.network.context)
        # A mention without context has nothing to train, as S_isolated is frozen.
        self.data = [pair for pair in zip(whole, short, strict=True) if pair[0].pieces is not None]
        if not self.data:
            raise UserError("no training mention has both a sentence and a term that the terminology knows")
        if any(len({*e.right_rows}) == len(terms) for e, _ in self.data) or len({t.pt for t in terms}) == 1:
            raise UserError(
                "a training mention needs a wrong term too: the terminology has no other preferred term"
            )
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
        drawn = [rng.choice(pair) for pair in self.data]
        pairs = [(e, negative(e, len(self.network.terms), rng)) for e in drawn]
        batches = length_batches(
            pairs, size=self.settings.batch, pool=POOL, length=lambda pair: len(pair[0].pieces or ()), rng=rng
        )
        return self.one_pass(batches, lambda batch: self.loss(batch, rng), number)

    def validate(self, number: int) -> dict[str, float]:
        return accuracy(self.network.model(), self.validation)

    def loss(self, batch: Sequence[Pair], rng: random.Random) -> Tensor:
        """Of a batch of examples with their negatives; the positives are drawn here."""
        positives = [rng.choice(example.gold_rows) for example, _ in batch]
        refined, vectors = self.network.refined([example for example, _ in batch]), self.network.term_vectors
        return cosine_embedding(refined, vectors(positives), vectors([row for _, row in batch]))


def accuracy(model: NormalizationModel, golds: Sequence[GoldCoding]) -> dict[str, float]:
    """The share of mentions whose best preferred term is right, over those with a gold term that the
    terminology contains, and the mean context weight of those with context; nothing without any: then the
    last epoch is kept.
    """
    by_term = pts_by_term(model.terms)
    known = [(g, right) for g in golds if (right := right_terms(g, by_term))]
    if not known:
        return {}
    codings = model.predict([query(g) for g, _ in known])
    hits = sum(c.candidates[0].pt in right for c, (_, right) in zip(codings, known, strict=True))
    weights = [c.context_weight for c in codings if c.context_weight is not None]
    return {"acc@1": hits / len(known)} | ({"context weight": sum(weights) / len(weights)} if weights else {})
