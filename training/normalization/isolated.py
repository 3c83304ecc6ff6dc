"""Training of S_isolated on lay phrases: a phrase and a name of the same preferred term are pulled together,
by a softmax over the names of a batch in both directions, and by one over all names of the terminology, whose
vectors are computed anew every REFRESH steps.

Phrases come from the teaching corpus' training part and from the mentions of PsyTAR's training part, names
from the terminology. So preferred terms without a mention in PsyTAR are trained too. A name is
a phrase for the other names of its preferred term, and a part of all phrases is misspelled.

All layers are trained. The kept weights are interpolated between those before and the trained ones (WiSE-FT,
Wortsman et al. 2022), because the phrases lack many words that the base model was trained on.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.normalization.context_refining import pool_with_gradients
from models.normalization.model import NormalizationModel
from models.terminology import Term
from training.common.adapter import trainable
from training.common.batching import length_batches
from training.common.corpora import GoldCoding
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.normalization.data import Phrase, misspelled, rows_by_pt
from training.normalization.settings import Settings
from training.normalization.train import SEED_STEP, accuracy

DECAY, TEMPERATURE = 0.01, 0.05
#: Shares of the phrases that are misspelled in an epoch, and of the names that are used as phrases.
MISSPELLED, NAMES = 0.3, 1 / 3
#: Steps between two computations of the names' vectors.
REFRESH = 100
#: Share of the weight change that is kept.
KEPT = 0.75
#: Batches whose phrases are sorted by length together; few, so that a batch has many organ classes.
POOL = 10


class PhraseTrainee(Trainee):
    """Trains all layers of S_isolated; keeps the epoch with the best accuracy on validation mentions."""

    scores_untrained = True

    def __init__(
        self,
        isolated: Encoder,
        terms: Sequence[Term],
        data: Sequence[Phrase],
        validation: Sequence[GoldCoding],
        settings: Settings,
        device: torch.device | str = "cpu",
    ) -> None:
        """A copy of `isolated` is trained."""
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        self._base = isolated.model
        self.encoder = trainable(isolated, 0)
        self.encoder.model.eval()
        self.terms = list(terms)
        self._names = [t.llt.lower() for t in terms]
        self._rows = rows_by_pt(self.terms)
        self._pt_ids = {pt: i for i, pt in enumerate(self._rows)}
        self._pts = np.array([self._pt_ids[t.pt] for t in terms])
        self.data = list(data)
        self._synonyms = [
            Phrase(self._names[row], pt, row)
            for pt, rows in self._rows.items()
            for row in rows
            if len(rows) > 1
        ]
        self._synonyms_drawn = min(round(NAMES * len(self._synonyms)), settings.limit or len(terms))
        self.validation = validation
        self.rng = random.Random(settings.seed)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=settings.lr, weight_decay=DECAY, fused=True)
        steps = steps_of(settings.epochs, len(self.data) + self._synonyms_drawn, settings.batch)
        self.schedule = warmup_linear(self.optimizer, steps)
        self._step = 0
        self._vectors = torch.empty(0)

    def modules(self) -> Sequence[nn.Module]:
        return [self.encoder.model]

    def epoch(self, number: int) -> dict[str, float]:
        # Dropout is seeded in each epoch, so that a resumed run gives the result of an uninterrupted one.
        seed = self.settings.seed * SEED_STEP + number
        torch.manual_seed(seed)
        self.rng = random.Random(seed)
        self._step = 0
        data = [*self.data, *self.rng.sample(self._synonyms, self._synonyms_drawn)]
        batches = length_batches(
            data, size=self.settings.batch, pool=POOL, length=lambda p: len(p.words), rng=self.rng
        )
        return self.one_pass(batches, self.loss, number)

    def validate(self, number: int) -> dict[str, float]:
        """Of the names and the mentions alone, as they are served."""
        model = NormalizationModel(self.encoder, self.terms, self._embedded_names(), k=1, nil_below=0.0)
        return accuracy(model, self.validation)

    def loss(self, batch: Sequence[Phrase]) -> dict[str, Tensor]:
        """By what phrases are compared with: a name for each, in both directions, and all names."""
        if self._step % REFRESH == 0:
            self.encoder.model.eval()
            self._vectors = self._embedded_names().to(self.device)
            self.encoder.model.train()
        self._step += 1
        texts = [misspelled(p.words, self.rng) if self.rng.random() < MISSPELLED else p.words for p in batch]
        with mixed(self.settings.precision, self.device):
            # Names are shorter than phrases: embedding them separately needs less padding.
            words = pool_with_gradients(self.encoder, self._pieces(texts))
            named = pool_with_gradients(self.encoder, self._pieces([self._name(p) for p in batch]))
        own = torch.eye(len(batch), dtype=torch.bool, device=words.device)
        pts = np.array([self._pt_ids[p.pt] for p in batch])
        same = torch.from_numpy(pts[:, None] == pts).to(words.device)
        there = softmax_loss(words, named, own, same, TEMPERATURE)
        back = softmax_loss(named, words, own, same, TEMPERATURE)
        return {"batch": (there + back) / 2, "names": self._over_names(words, batch, pts)}

    def _over_names(self, words: Tensor, batch: Sequence[Phrase], pts: np.ndarray[Any, Any]) -> Tensor:
        """The loss over all names; those of the right preferred term are right, but the name itself."""
        right = torch.from_numpy(pts[:, None] == self._pts)
        ignored = torch.zeros_like(right)
        for i, phrase in enumerate(batch):
            if phrase.row is not None:
                right[i, phrase.row], ignored[i, phrase.row] = False, True
        return softmax_loss(
            words, self._vectors, right.to(words.device), ignored.to(words.device), TEMPERATURE
        )

    def _name(self, phrase: Phrase) -> str:
        """A name of the phrase's preferred term that is another than the phrase, where there is one."""
        names = [self._names[row] for row in self._rows[phrase.pt]]
        return self.rng.choice([n for n in names if n != phrase.words] or names)

    def _embedded_names(self) -> Tensor:
        """(names, d) unit vectors on the CPU, without gradients."""
        with mixed(self.settings.precision, self.device):
            return self.encoder.embed(self._names).float().clone()

    def _pieces(self, texts: Sequence[str]) -> list[list[int]]:
        limit = self.encoder.max_pieces - 2
        encoded = self.encoder.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [ids[:limit] for ids in encoded["input_ids"]]

    def kept(self) -> nn.Module:
        """The model with the share KEPT of its weight change."""
        model: nn.Module = copy.deepcopy(self.encoder.model)
        before = dict(self._base.named_parameters())
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.lerp(before[name].to(parameter), parameter, KEPT))
        return model


def softmax_loss(
    refined: Tensor, terms: Tensor, positive: Tensor, ignored: Tensor, temperature: float
) -> Tensor:
    """Refined (n, d), terms (m, d), positive and ignored (n, m): -log of the positives' share of
    sum exp(cos / t) over the terms that are not ignored, mean over n.
    """
    unit = nn.functional.normalize
    logits = (unit(refined, dim=-1) @ unit(terms, dim=-1).T) / temperature
    logits = logits.masked_fill(ignored & ~positive, float("-inf"))
    numerator = logits.masked_fill(~positive, float("-inf")).logsumexp(1)
    return (logits.logsumexp(1) - numerator).mean()
