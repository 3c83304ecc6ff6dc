"""S_isolated learns the words of patients before the context is trained: a phrase and a name of the same
preferred term are pulled together by a softmax over the names of a batch, in both directions.

Phrases come from the teaching corpus' training part and from the mentions of PsyTAR's training part, names
from the terminology. A preferred term that no mention of PsyTAR has is so known by its lay phrases.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder
from models.normalization.context_refining import pool_with_gradients
from models.terminology import Term
from training.common.adapter import adapter_tensors, trainable
from training.common.batching import length_batches
from training.common.codings.split import Split, pts_by_term, right_terms
from training.common.corpora import GoldCoding
from training.common.loop import Trainee, steps_of
from training.common.precision import Precision, mixed
from training.normalization.losses import softmax_loss
from training.normalization.trainer import SEED_STEP
from training.teaching.batches import MARKED
from training.teaching.readers import codings, phrases

RANK, LR, BATCH, TEMPERATURE = 16, 5e-4, 96, 0.05
#: Batches out of which phrases of like length are put together: few, so that a batch has many organs.
POOL = 10


class Phrase(NamedTuple):
    """Words of a patient and a preferred term that they mean, in lower case."""

    words: str
    pt: str


def taught_phrases(split: Split, terms: Sequence[Term]) -> list[Phrase]:
    """The phrases of the training parts whose preferred term the terminology has, each pair once, sorted."""
    by_term, pts = pts_by_term(terms), {t.pt for t in terms}
    golds = [*phrases("train"), *(g for kind in MARKED for g in codings(kind, "train"))]
    pairs = {(g.mention.lower(), pt) for g in golds for pt in g.terms if pt in pts}
    pairs |= {(g.mention.lower(), pt) for g in split.train for pt in right_terms(g, by_term)}
    return [Phrase(*pair) for pair in sorted(pairs)]


class PhraseTrainee(Trainee):
    """An adapter on S_isolated; the epoch with the best accuracy on PsyTAR's validation mentions is kept."""

    scores_untrained = True

    def __init__(
        self,
        isolated: Encoder,
        terms: Sequence[Term],
        data: Sequence[Phrase],
        validation: Sequence[GoldCoding],
        epochs: int,
        precision: Precision,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        torch.manual_seed(seed)
        self.epochs, self.device, self._precision = epochs, torch.device(device), precision
        self.encoder = trainable(isolated, RANK)
        self.encoder.model.eval()
        self.terms, self.data = list(terms), list(data)
        self._names: dict[str, list[str]] = {}
        for term in terms:
            self._names.setdefault(term.pt, []).append(term.llt.lower())
        self.validation = validation
        self._seed, self.rng = seed, random.Random(seed)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=LR, fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=LR, total_steps=steps_of(epochs, len(data), BATCH), pct_start=0.1
        )

    def modules(self) -> Sequence[nn.Module]:
        return [self.encoder.model]

    def epoch(self, number: int) -> dict[str, float]:
        # Dropout is drawn anew in each epoch, so that a resumed run does what one in a piece does.
        torch.manual_seed(self._seed * SEED_STEP + number)
        self.rng = random.Random(self._seed * SEED_STEP + number)
        batches = length_batches(
            self.data, size=BATCH, pool=POOL, length=lambda p: len(p.words), rng=self.rng
        )
        return self.one_pass(batches, self.loss, number)

    def validate(self, number: int) -> dict[str, float]:
        """Share of the mentions whose nearest term is of a right preferred term, without their sentences."""
        by_term = pts_by_term(self.terms)
        known = [(g, right) for g in self.validation if (right := right_terms(g, by_term))]
        if not known:
            return {}
        index = CosineIndex(self.encoder.embed([t.llt for t in self.terms]).numpy())
        _, rows = index.search(self.encoder.embed([g.mention for g, _ in known]).numpy(), 1)
        hits = sum(self.terms[row].pt in right for row, (_, right) in zip(rows[:, 0], known, strict=True))
        return {"acc@1": hits / len(known)}

    def loss(self, batch: Sequence[Phrase]) -> Tensor:
        """The mean of the losses from phrases to names and back."""
        names = [self._name(p) for p in batch]
        with mixed(self._precision, self.device):
            vectors = pool_with_gradients(self.encoder, self._pieces([p.words for p in batch] + names))
        words, named = vectors[: len(batch)], vectors[len(batch) :]
        own = torch.eye(len(batch), dtype=torch.bool, device=vectors.device)
        same = torch.tensor([[a.pt == b.pt for b in batch] for a in batch], device=vectors.device)
        there = softmax_loss(words, named, own, same, TEMPERATURE)
        return (there + softmax_loss(named, words, own, same, TEMPERATURE)) / 2

    def _name(self, phrase: Phrase) -> str:
        """A name of the phrase's preferred term that is another than the phrase, where there is one."""
        names = [n for n in self._names[phrase.pt] if n != phrase.words]
        return self.rng.choice(names or self._names[phrase.pt])

    def _pieces(self, texts: Sequence[str]) -> list[list[int]]:
        limit = self.encoder.max_pieces - 2
        encoded = self.encoder.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [ids[:limit] for ids in encoded["input_ids"]]

    def adapter(self) -> Mapping[str, Tensor]:
        """The adapter as a release holds it."""
        return adapter_tensors(self.encoder.model)
