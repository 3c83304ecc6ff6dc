"""Training of S_isolated on lay phrases, before the context is trained: a phrase and a name of the same
preferred term are pulled together, by a softmax over the names of a batch in both directions, and by one over
all names of the terminology, whose vectors are computed anew every REFRESH steps.

Phrases come from the teaching corpus' training part and from the mentions of PsyTAR's training part, names
from the terminology. So preferred terms without a mention in PsyTAR are trained too. A name is
a phrase for the other names of its preferred term, and a part of all phrases is misspelled.

All layers are trained. The kept weights are interpolated between the base and the trained ones (WiSE-FT,
Wortsman et al. 2022), because the phrases lack many words that the base model was trained on.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder
from models.normalization.context_refining import pool_with_gradients
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from training.common.adapter import trainable
from training.common.batching import length_batches
from training.common.codings.split import Split, pts_by_term, right_terms
from training.common.corpora import GoldCoding
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import Precision, mixed
from training.normalization.data import rows_by_pt
from training.normalization.losses import softmax_loss
from training.normalization.phrases.misspelling import misspelled
from training.normalization.settings import TAUGHT_PENALTY
from training.normalization.trainer import SEED_STEP
from training.teaching.batches import MARKED
from training.teaching.readers import codings, phrases

LR, DECAY, BATCH, TEMPERATURE = 1.5e-4, 0.01, 192, 0.05
#: Shares of the phrases that are misspelled in an epoch, and of the names that are used as phrases.
MISSPELLED, NAMES = 0.3, 1 / 3
#: Steps between two computations of the names' vectors.
REFRESH = 100
#: Share of the weight change that is kept.
KEPT = 0.75
#: Cosine from which a phrase counts as equal to another text.
SAME = 0.93
#: Batches whose phrases are sorted by length together; few, so that a batch has many organ classes.
POOL = 10


class Phrase(NamedTuple):
    """Words of a patient and a preferred term that they mean, in lower case."""

    words: str
    pt: str


class TrainingPhrase(NamedTuple):
    """A phrase, or a name that is used as one."""

    words: str
    pt: str
    row: int | None = None
    """row of the name in the terminology; None for a phrase"""


def taught_phrases(split: Split, terms: Sequence[Term]) -> list[Phrase]:
    """The phrases of the training parts whose preferred term the terminology has, each pair once, sorted."""
    by_term, pts = pts_by_term(terms), {t.pt for t in terms}
    golds = [*phrases("train"), *(g for kind in MARKED for g in codings(kind, "train"))]
    pairs = {(g.mention.lower(), pt) for g in golds for pt in g.terms if pt in pts}
    pairs |= {(g.mention.lower(), pt) for g in split.train for pt in right_terms(g, by_term)}
    return [Phrase(*pair) for pair in sorted(pairs)]


def entries(isolated: Encoder, terms: Sequence[Term]) -> Phrases:
    """The phrases of the teaching corpus as they are searched beside the terms, without those that are hardly
    another text for S_isolated than a name or an earlier phrase of their preferred term.
    """
    found = taught_phrases(Split([], [], []), terms)
    vectors = isolated.embed([p.words for p in found])
    named, rows = isolated.embed([t.llt for t in terms]), rows_by_pt(terms)
    kept = []
    for pt, own in _places(found).items():
        kept += [own[i] for i in distinct(vectors[own], named[rows[pt]])]
    kept.sort()
    texts, pts = tuple(found[i].words for i in kept), tuple(found[i].pt for i in kept)
    return Phrases(texts, pts, vectors[kept], -2.0, TAUGHT_PENALTY)


def _places(found: Sequence[Phrase]) -> dict[str, list[int]]:
    """Preferred term to the positions of its phrases."""
    places: dict[str, list[int]] = {}
    for i, phrase in enumerate(found):
        places.setdefault(phrase.pt, []).append(i)
    return places


def distinct(vectors: Tensor, others: Tensor) -> list[int]:
    """The rows of `vectors` (n, d) whose cosine with all of `others` (m, d) and with the chosen rows before
    them is less than SAME; all of unit length.
    """
    chosen: list[int] = []
    far, among = ((vectors @ others.T).amax(1) < SAME).tolist(), vectors @ vectors.T
    for i, is_far in enumerate(far):
        if is_far and bool((among[i, chosen] < SAME).all()):
            chosen.append(i)
    return chosen


class PhraseTrainee(Trainee):
    """Trains all layers of S_isolated; keeps the epoch with the best accuracy on validation mentions."""

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
        """A copy of `isolated` is trained."""
        torch.manual_seed(seed)
        self.epochs, self.device, self._precision = epochs, torch.device(device), precision
        self._base = isolated.model
        self.encoder = trainable(isolated, 0)
        self.encoder.model.eval()
        self.terms = list(terms)
        self._names = [t.llt.lower() for t in terms]
        self._rows = rows_by_pt(self.terms)
        self._pt_ids = {pt: i for i, pt in enumerate(self._rows)}
        self._pts = np.array([self._pt_ids[t.pt] for t in terms])
        self.data = [TrainingPhrase(*p) for p in data]
        self._synonyms = [
            TrainingPhrase(self._names[row], pt, row)
            for pt, rows in self._rows.items()
            for row in rows
            if len(rows) > 1
        ]
        self._synonyms_drawn = round(NAMES * len(self._synonyms))
        self.validation = validation
        self._seed, self.rng = seed, random.Random(seed)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=LR, weight_decay=DECAY, fused=True)
        self.schedule = warmup_linear(
            self.optimizer, steps_of(epochs, len(self.data) + self._synonyms_drawn, BATCH)
        )
        self._step = 0
        self._vectors = torch.empty(0)

    def modules(self) -> Sequence[nn.Module]:
        return [self.encoder.model]

    def epoch(self, number: int) -> dict[str, float]:
        # Dropout is seeded in each epoch, so that a resumed run gives the result of an uninterrupted one.
        torch.manual_seed(self._seed * SEED_STEP + number)
        self.rng = random.Random(self._seed * SEED_STEP + number)
        self._step = 0
        data = [*self.data, *self.rng.sample(self._synonyms, self._synonyms_drawn)]
        batches = length_batches(data, size=BATCH, pool=POOL, length=lambda p: len(p.words), rng=self.rng)
        return self.one_pass(batches, self.loss, number)

    def validate(self, number: int) -> dict[str, float]:
        """Share of the mentions whose nearest term is of a right preferred term, without their sentences."""
        by_term = pts_by_term(self.terms)
        known = [(g, right) for g in self.validation if (right := right_terms(g, by_term))]
        if not known:
            return {}
        index = CosineIndex(self._embedded(self._names).numpy())
        _, rows = index.search(self._embedded([g.mention for g, _ in known]).numpy(), 1)
        hits = sum(self.terms[row].pt in right for row, (_, right) in zip(rows[:, 0], known, strict=True))
        return {"acc@1": hits / len(known)}

    def loss(self, batch: Sequence[TrainingPhrase]) -> dict[str, Tensor]:
        """By what the phrases are compared with: one name for each phrase of the batch, in both directions,
        and all names.
        """
        if self._step % REFRESH == 0:
            self.encoder.model.eval()
            self._vectors = self._embedded(self._names).to(self.device)
            self.encoder.model.train()
        self._step += 1
        texts = [misspelled(p.words, self.rng) if self.rng.random() < MISSPELLED else p.words for p in batch]
        with mixed(self._precision, self.device):
            # Names are shorter than phrases: embedding them separately needs less padding.
            words = pool_with_gradients(self.encoder, self._pieces(texts))
            named = pool_with_gradients(self.encoder, self._pieces([self._name(p) for p in batch]))
        own = torch.eye(len(batch), dtype=torch.bool, device=words.device)
        pts = np.array([self._pt_ids[p.pt] for p in batch])
        same = torch.from_numpy(pts[:, None] == pts).to(words.device)
        there = softmax_loss(words, named, own, same, TEMPERATURE)
        back = softmax_loss(named, words, own, same, TEMPERATURE)
        return {"batch": (there + back) / 2, "names": self._over_names(words, batch, pts)}

    def _over_names(
        self, words: Tensor, batch: Sequence[TrainingPhrase], pts: np.ndarray[Any, Any]
    ) -> Tensor:
        """The loss over all names, in which all names of the right preferred term are right but the name
        itself.
        """
        right = torch.from_numpy(pts[:, None] == self._pts)
        ignored = torch.zeros_like(right)
        for i, phrase in enumerate(batch):
            if phrase.row is not None:
                right[i, phrase.row], ignored[i, phrase.row] = False, True
        return softmax_loss(
            words, self._vectors, right.to(words.device), ignored.to(words.device), TEMPERATURE
        )

    def _name(self, phrase: Phrase | TrainingPhrase) -> str:
        """A name of the phrase's preferred term that is another than the phrase, where there is one."""
        names = [self._names[row] for row in self._rows[phrase.pt]]
        return self.rng.choice([n for n in names if n != phrase.words] or names)

    def _embedded(self, texts: Sequence[str]) -> Tensor:
        """(texts, d) unit vectors on the CPU, without gradients."""
        with mixed(self._precision, self.device):
            return self.encoder.embed(texts).float().clone()

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
