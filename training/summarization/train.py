"""Entity-driven contrastive learning (ECL, Lu et al. 2024): L = L_ce + L_scl + L_hcl over a momentum key
encoder (Eq. 2 to 7), by Adam at a constant rate. Each epoch is validated by the ROUGE-1 of greedy summaries.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.summarization.medical_entities import Entity, Recogniser
from training.common.batching import length_batches
from training.common.checkpoint import random_state, set_random_state
from training.common.loop import Trainee
from training.common.precision import mixed
from training.evaluation.summarization.measure import summary_counts
from training.summarization.data import Pair, text_key
from training.summarization.decoder import Search
from training.summarization.losses import Queue, contrast
from training.summarization.negatives import EntityDictionary, hard_negatives
from training.summarization.network import KeyEncoder, Network, pooled
from training.summarization.settings import Settings

#: Batches out of which questions of similar length are put together.
POOL = 8
#: Lambda of Eq. 3, and the momentum of the key encoder (Eq. 4).
SMOOTHING, MOMENTUM = 0.1, 0.999
SCORE = "ROUGE-1"


class Ecl(Trainee):
    """An encoder-decoder trained on questions and their summaries."""

    def __init__(
        self,
        network: Network,
        settings: Settings,
        pairs: Sequence[Pair],
        validation: Sequence[Pair],
        recogniser: Recogniser,
        device: torch.device | str = "cpu",
    ) -> None:
        torch.manual_seed(settings.seed)
        self.network, self.settings, self.epochs = network, settings, settings.epochs
        self.pairs, self.validation, self.device = pairs, validation, torch.device(device)
        found = recogniser.entities([p.summary for p in pairs])
        self.entities: dict[str, list[Entity]] = {p.id: own for p, own in zip(pairs, found, strict=True)}
        self.dictionary = EntityDictionary(e.text for own in found for e in own)
        self.rng = random.Random(settings.seed)
        self.keys: KeyEncoder | None = None
        self.queue = Queue(device=self.device)
        self._owner: dict[str, int] = {}
        self.optimizer = torch.optim.Adam(self.parameters(), lr=settings.lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1.0)

    def modules(self) -> Sequence[nn.Module]:
        return [self.network.model]

    def epoch(self, number: int) -> dict[str, float]:
        batches = length_batches(
            self.pairs,
            size=self.settings.batch,
            pool=POOL,
            length=lambda pair: len(pair.question),
            rng=self.rng,
        )
        return self.one_pass(batches, self._mixed_losses, number)

    def after_step(self) -> None:
        if self.keys is not None:
            self.keys.follow(self.network.encoder_state(), MOMENTUM)

    def validate(self, number: int) -> dict[str, float]:
        """ROUGE-1 of greedy summaries; none without a validation part."""
        return {SCORE: rouge1(self.network, self.validation)} if self.validation else {}

    def state(self) -> dict[str, Any]:
        keys = self.keys.model.parameters() if self.keys else ()
        return super().state() | {
            "keys": [p.detach().to("cpu", copy=True) for p in keys],
            "queue": self.queue.state(),
            "owners": self._owner,
            "rng": random_state(self.rng),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if state["keys"]:
            self.keys = KeyEncoder(self.network)
            for parameter, value in zip(self.keys.model.parameters(), state["keys"], strict=True):
                parameter.data.copy_(value)
        self.queue.restore(state["queue"])
        self._owner = state["owners"]
        set_random_state(self.rng, state["rng"])

    def losses(self, pairs: Sequence[Pair]) -> dict[str, Tensor]:
        """Each loss with its weight, by name; a loss whose weight is 0 is not computed."""
        s = self.settings
        questions = self.network.encode([p.question for p in pairs])
        losses = {"ce": self.network.cross_entropy(questions, [p.summary for p in pairs], SMOOTHING)}
        if not (s.simple or s.hard):
            return losses
        if self.keys is None:
            self.keys = KeyEncoder(self.network)
        query, right = pooled(questions), self.keys([p.summary for p in pairs])
        if s.simple:
            losses["simple"] = s.simple * self._simple(query, right, pairs)
        if s.hard:
            losses["hard"] = s.hard * self._hard(query, right, pairs, self.keys)
        return losses

    def _mixed_losses(self, pairs: Sequence[Pair]) -> dict[str, Tensor]:
        with mixed(self.settings.precision, self.device):
            return self.losses(pairs)

    def _simple(self, query: Tensor, right: Tensor, pairs: Sequence[Pair]) -> Tensor:
        """Eq. 5: the queue, with this batch in it, less the keys of the question's own summary."""
        owners = torch.tensor([self._number(p.summary) for p in pairs], device=self.device)
        self.queue.put(right, owners)
        allowed = owners.unsqueeze(1) != self.queue.owners.unsqueeze(0)
        return contrast(query, right, self.queue.keys, allowed)

    def _hard(self, query: Tensor, right: Tensor, pairs: Sequence[Pair], keys: KeyEncoder) -> Tensor:
        """Eq. 6: each question against its own replaced summaries alone; they never enter the queue."""
        n = self.settings.negatives
        wrong = [
            hard_negatives(p.summary, self.entities.get(p.id, ()), self.dictionary, n, self.rng)
            for p in pairs
        ]
        flat = [text for texts in wrong for text in texts]
        counts = torch.tensor([len(w) for w in wrong], device=self.device)
        allowed = torch.arange(n, device=self.device).unsqueeze(0) < counts.unsqueeze(1)
        vectors = torch.zeros(len(pairs), n, query.shape[1], device=self.device)
        if flat:
            vectors[allowed] = keys(flat).to(vectors.dtype)
        return contrast(query, right, vectors, allowed)

    def _number(self, summary: str) -> int:
        return self._owner.setdefault(text_key(summary), len(self._owner))


def rouge1(network: Network, pairs: Sequence[Pair]) -> float:
    """Mean F1 in percent of the network's greedy summaries."""
    summaries = network.decoder(Search(beams=1)).write([p.question for p in pairs])
    return float(summary_counts([s[0].text for s in summaries], [p.summary for p in pairs])[:, 0].mean())
