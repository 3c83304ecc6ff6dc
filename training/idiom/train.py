"""Idiom-aware vectors in training (He et al. 2024, sections 3.1, 3.2 and 4.1): triplets, the loss that keeps
other cosines, and the rule for which epochs may be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from models.encoder.added_tokens import ExtendedEmbedding
from models.encoder.model import Encoder
from models.idiom import IdiomModel, Marker, with_pooling
from training.common.corpora import CorpusError
from training.common.loop import Trainee, TrainingLoop, steps_of, warmup_linear
from training.common.precision import mixed
from training.evaluation.idiom import FOLDER, STS, Pair, halves, pair_counts, read_pairs, scores
from training.idiom.data import (
    Group,
    Row,
    limit_sentences,
    meanings,
    read_groups,
    split_by_expression,
    training_rows,
    validation_pairs,
    written_groups,
)
from training.idiom.network import TripletLoss, cosine_change, mean_vectors, trainable_encoder
from training.idiom.settings import Settings
from training.teaching.batches import PARTS
from training.teaching.readers import idioms

console = Console()
#: Share of SemEval's expressions of which all sentences but one are held out.
HELD_OUT = 0.1
#: Learning rate of the embeddings of tokens.
TOKEN_LR = 3e-3
#: What an epoch that is kept may lose of Spearman on STS pairs.
MOST_STS_LOST = 0.05


class IdiomTrainee(Trainee):
    """An encoder with a token for each expression, trained on groups of sentence and paraphrases."""

    scores_untrained = True
    keeps_untrained = True

    def __init__(
        self,
        settings: Settings,
        training: Sequence[Group],
        held_out: Sequence[Group],
        sts: Sequence[Pair],
        device: torch.device | str = "cpu",
    ) -> None:
        """`held_out`, and `sts`, pairs of the STS benchmarks, are for validation."""
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        training = limit_sentences(training, settings.sentences)[: settings.limit or None]
        held_out = limit_sentences(held_out, 2 * settings.sentences)
        self.validation = [*validation_pairs(held_out), *sts]
        self.marker = Marker(sorted({g.expression for g in training}))
        self.data = training_rows(training, self.marker)
        self.encoder = trainable_encoder(settings, meanings(training, self.marker))
        self.untrained_vectors = self._untrained_vectors() if settings.distillation else {}
        self.triplet_loss = TripletLoss()
        self.optimizer = torch.optim.AdamW(self._rates(), lr=settings.lr, fused=True)
        steps = steps_of(settings.epochs, len(self.data), settings.batch)
        self.schedule = warmup_linear(self.optimizer, steps)

    def _untrained_vectors(self) -> dict[str, Tensor]:
        """The unit vector of every paraphrase by the untrained encoder."""
        texts = list(dict.fromkeys(row.text for row in self.data if not row.idiom))
        base, limit = self.settings.base, self.encoder.max_pieces
        encoder = Encoder.load(base, device=str(self.device), max_pieces=limit)
        vectors = with_pooling(encoder, self.settings.pooling).embed(texts)
        return dict(zip(texts, vectors, strict=True))

    def _rates(self) -> list[dict[str, Any]]:
        """Parameter groups with their learning rates."""
        # A token may occur in one sentence alone: its embedding must learn faster than the shared weights.
        tokens = [m.rows for m in self.encoder.model.modules() if isinstance(m, ExtendedEmbedding)]
        shared = [p for p in self.parameters() if all(p is not rows for rows in tokens)]
        return [{"params": shared}, {"params": tokens, "lr": TOKEN_LR, "weight_decay": 0.0}]

    def modules(self) -> Sequence[nn.Module]:
        return (self.encoder.model,)

    def model(self) -> IdiomModel:
        """The model as a release holds it, before its weights are rounded."""
        return IdiomModel(self.encoder, self.marker, self.settings.base, self.settings.pooling)

    def epoch(self, number: int) -> dict[str, float]:
        """Batches are not shuffled: a triplet needs the rows of its group in one batch."""
        size = self.settings.batch
        batches = [self.data[start : start + size] for start in range(0, len(self.data), size)]
        return self.one_pass(batches, self.loss, number)

    def loss(self, batch: Sequence[Row]) -> Tensor:
        """The triplet loss of a batch and the weighted one that keeps cosines."""
        settings = self.settings
        with mixed(settings.precision, self.device):
            vectors = mean_vectors(self.encoder, [row.text for row in batch])
        labels = torch.tensor([row.label for row in batch], device=self.device)
        loss = self.triplet_loss(vectors, labels)
        paraphrases = [i for i, row in enumerate(batch) if not row.idiom]
        if settings.distillation and paraphrases:
            before = torch.stack([self.untrained_vectors[batch[i].text] for i in paraphrases])
            groups = torch.tensor([batch[i].group for i in paraphrases], device=self.device)
            change = cosine_change(vectors[paraphrases], before.to(self.device), groups)
            loss = loss + settings.distillation * change
        return loss

    def validate(self, number: int) -> dict[str, float]:
        """Spearman on the held-out expressions (the first score, which decides), and on the STS pairs."""
        return scores(pair_counts(self.model(), self.validation))

    def refusal(self, scores: Mapping[str, float], untrained: Mapping[str, float]) -> str:
        return "loses too much STS" if untrained[STS] - scores[STS] > MOST_STS_LOST else ""


def train(
    settings: Settings, data: Path, run: Path | None, device: torch.device | str = "cpu"
) -> tuple[IdiomTrainee, TrainingLoop]:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch, which may be
    the untrained ones. Raises CorpusError where there is no row to train on.
    """
    sts, _ = halves(read_pairs(data / FOLDER, settings.language))
    if settings.corpus == "semeval":
        groups = read_groups(data / FOLDER / "semeval22_train.csv", settings.language)
        training, held_out = split_by_expression(groups, HELD_OUT, settings.seed)
    else:
        training, held_out = (written_groups(idioms(part)) for part in PARTS)
    trainee = IdiomTrainee(settings, training, held_out, sts, device)
    if not trainee.data:
        raise CorpusError(f"{data / FOLDER} has no row to train on in the language {settings.language}")
    console.print(f"{len(trainee.data)} rows, {len(trainee.validation)} pairs for validation")
    loop = TrainingLoop(trainee, asdict(settings), run)
    loop.run()
    return trainee, loop
