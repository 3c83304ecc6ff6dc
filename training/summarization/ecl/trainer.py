"""Entity-driven contrastive learning (ECL, Lu et al. 2024): L = L_ce + L_scl + L_hcl over a momentum key
encoder (Eq. 2 to 7), in two stages.

Each stage has its own AdamW and its own linear schedule with 10 % warm-up. Epochs of the second stage are
validated by the ROUGE-1 of greedy summaries and the best is kept; without a validation part the last one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.summarization.decoding.beam_search import Search
from training.common.batching import length_batches
from training.common.checkpoint import random_state, set_random_state
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.evaluation.summarization.measure import summary_counts
from training.summarization.data import Pair, text_key
from training.summarization.ecl.losses import Queue, contrast, with_positive
from training.summarization.ecl.negatives import hard_negatives
from training.summarization.examples import Example, ExampleSampler, Material
from training.summarization.networks.network import KeyEncoder, Network, pooled
from training.summarization.settings import Settings, Stage, stages_of

#: Batches out of which questions of similar length are put together.
POOL = 8
#: Lambda of Eq. 3, and the momentum of the key encoder (Eq. 4).
SMOOTHING, MOMENTUM = 0.1, 0.999
SCORE = "ROUGE-1"


class SummarizerTrainee(Trainee):
    """A network trained on the pairs of both stages."""

    def __init__(
        self,
        network: Network,
        settings: Settings,
        material: Material,
        validation: Sequence[Pair] = (),
        device: torch.device | str = "cpu",
    ) -> None:
        torch.manual_seed(settings.seed)
        self.network, self.settings, self.material = network, settings, material
        self.validation, self.device = validation, torch.device(device)
        self.epochs = settings.pretraining + settings.epochs
        self.rng = random.Random(settings.seed)
        self.keys: KeyEncoder | None = None
        self.queue = Queue(device=self.device)
        self._sampler = ExampleSampler(material, settings, self.rng)
        self._stage: Stage | None = None
        self._owner: dict[str, int] = {}

    def modules(self) -> Sequence[nn.Module]:
        return self.network.parts()

    def training(self, on: bool) -> None:
        """Dropout in the decoder alone, see `PointerNetwork`."""
        self.network.parts()[-1].train(on)

    def prepare(self, number: int) -> None:
        stage = next(s for s in reversed(stages_of(self.settings)) if s.first <= number)
        if stage == self._stage:
            return
        self._stage = stage
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=stage.lr, fused=True)
        pairs = len(self.material.pairs[stage.name]) + self._sampler.replayed(stage)
        self.schedule = warmup_linear(self.optimizer, steps_of(stage.epochs, pairs, self.settings.batch))

    def epoch(self, number: int) -> dict[str, float]:
        stage = self._stage
        assert stage is not None
        batches = length_batches(
            self._sampler.examples(stage),
            size=self.settings.batch,
            pool=POOL,
            length=lambda example: len(example.pair.question),
            rng=self.rng,
        )
        return self.one_pass(batches, lambda batch: self._mixed_losses(batch, stage.contrastive), number)

    def after_step(self) -> None:
        if self.keys is not None:
            self.keys.follow(self.network.encoder_state(), MOMENTUM)

    def validate(self, number: int) -> dict[str, float]:
        """ROUGE-1 of greedy summaries, in the last stage only."""
        if not self.validation or self._stage != stages_of(self.settings)[-1]:
            return {}
        return {SCORE: rouge1(self.network, self.validation)}

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "keys": [p.detach().to("cpu", copy=True) for p in self._following()],
            "queue": self.queue.state(),
            "owners": self._owner,
            "rng": random_state(self.rng),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if state["keys"]:
            self.keys = self.network.key_encoder()
            with torch.no_grad():
                for parameter, value in zip(self._following(), state["keys"], strict=True):
                    parameter.copy_(value)
        self.queue.restore(state["queue"])
        self._owner = state["owners"]
        set_random_state(self.rng, state["rng"])

    def losses(self, batch: Sequence[Example], contrastive: bool) -> dict[str, Tensor]:
        """Each loss with its weight, by name; those whose weight is 0 are not computed."""
        s = self.settings
        pairs = [example.pair for example in batch]
        questions = self.network.encode([p.question for p in pairs])
        losses = {"ce": self.network.cross_entropy(questions, [p.summary for p in pairs], SMOOTHING)}
        if not contrastive or not (s.simple or s.hard):
            return losses
        if self.keys is None:
            self.keys = self.network.key_encoder()
        query, right = pooled(questions), self.keys([p.summary for p in pairs])
        if s.simple:
            losses["simple"] = s.simple * self._simple(query, right, pairs)
        if s.hard:
            losses["hard"] = s.hard * self._hard(query, right, batch)
        return losses

    def contrast(self, query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor) -> Tensor:
        """Eq. 5 or 6, with the right summary in the denominator where the settings say so."""
        if self.settings.positive:
            wrong, allowed = with_positive(right, wrong, allowed)
        return contrast(query, right, wrong, allowed)

    def _mixed_losses(self, batch: Sequence[Example], contrastive: bool) -> dict[str, Tensor]:
        with mixed(self.settings.precision, self.device):
            return self.losses(batch, contrastive)

    def _simple(self, query: Tensor, right: Tensor, pairs: Sequence[Pair]) -> Tensor:
        """Eq. 5: the queue, with this batch in it, less the keys of the question's own summary."""
        owners = torch.tensor([self._number(p.summary) for p in pairs], device=self.device)
        self.queue.put(right, owners)
        allowed = owners.unsqueeze(1) != self.queue.owners.unsqueeze(0)
        return self.contrast(query, right, self.queue.keys, allowed)

    def _hard(self, query: Tensor, right: Tensor, batch: Sequence[Example]) -> Tensor:
        """Eq. 6: each question against its own replaced summaries alone; they never enter the queue."""
        assert self.keys is not None
        n = self.settings.negatives
        wrong = [
            hard_negatives(e.pair.summary, e.entities, self.material.dictionary, n, self.rng) for e in batch
        ]
        flat = [text for texts in wrong for text in texts]
        counts = torch.tensor([len(w) for w in wrong], device=self.device)
        allowed = torch.arange(n, device=self.device).unsqueeze(0) < counts.unsqueeze(1)
        vectors = torch.zeros(len(batch), n, query.shape[1], device=self.device)
        if flat:
            vectors[allowed] = self.keys(flat).to(vectors.dtype)
        return self.contrast(query, right, vectors, allowed)

    def _number(self, summary: str) -> int:
        return self._owner.setdefault(text_key(summary), len(self._owner))

    def _following(self) -> list[Tensor]:
        """The key encoder's tensors that follow the trained ones of the encoder."""
        if self.keys is None:
            return []
        trained = self.network.encoder_state()
        return [p for name, p in self.keys.model.named_parameters() if name in trained]


def rouge1(network: Network, pairs: Sequence[Pair]) -> float:
    """Mean F1 in percent of the network's greedy summaries."""
    summaries = network.writer(Search(beams=1)).write([p.question for p in pairs])
    return float(summary_counts([s[0].text for s in summaries], [p.summary for p in pairs])[:, 0].mean())
