"""Training of Seneviratne et al. (2022), sections 3 and 4; the best epoch by macro F1 is kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor, nn

from models.acronym.questions import MarkedText
from training.acronym.data import questions, read_parts, sample_rows, sense_of
from training.acronym.network import loss_of, trained_network
from training.acronym.settings import Settings
from training.common import adapter
from training.common.batching import by_length
from training.common.checkpoint import digest_of
from training.common.corpora import CorpusError
from training.common.loop import Trainee, TrainingLoop
from training.evaluation.acronym import Row, scores

console = Console()
BATCH = 32
#: Rows of one acronym that follow each other: they share long forms, which are then encoded once.
RUN = 4
#: The validation score that decides which epoch is kept.
DECIDING = "macro_f1"


class AcronymTrainee(Trainee):
    """A linear layer and the last layer of an encoder."""

    scores_untrained = True
    keeps_untrained = True

    def __init__(
        self,
        settings: Settings,
        training: Sequence[Row],
        validation: Sequence[Row],
        device: torch.device | str = "cpu",
    ) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        sampled = sample_rows(training, settings.seed, settings.limit)
        self.rows = [right_first(r) for r in sampled]
        self.validation = [right_first(r) for r in validation]
        self.network = trained_network(settings)
        self.questions = questions(self.rows)
        self.anchors = self._anchors()
        learning = [
            *adapter.trained_parameters(self.network.encoder.model), *self.network.dense.parameters(),
        ]  # fmt: skip
        # Without the decay of weights it is Adam, and the rate is constant (section 4).
        self.optimizer = torch.optim.AdamW(learning, lr=settings.lr, weight_decay=0.0, fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1.0)

    def _anchors(self) -> list[MarkedText]:
        """The anchor of each row: a sentence of its sense that is drawn at random (the paper)."""
        senses: dict[tuple[str, str], list[MarkedText]] = {}
        for row, asked in zip(self.rows, self.questions, strict=True):
            senses.setdefault(sense_of(row), []).append(asked.anchor())
        rng = random.Random(self.settings.seed)
        drawn = {sense: rng.choice(of_sense) for sense, of_sense in senses.items()}
        return [drawn[sense_of(row)] for row in self.rows]

    def modules(self) -> Sequence[nn.Module]:
        return (self.network.encoder.model, self.network.dense)

    def epoch(self, number: int) -> dict[str, float]:
        order = self.order(random.Random(f"{self.settings.seed} {number}"))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        return self.one_pass(batches, self._loss, number)

    def order(self, rng: random.Random) -> list[int]:
        """The index of every row once, RUN rows of an acronym one after the other."""
        groups: dict[str, list[int]] = {}
        for i, row in enumerate(self.rows):
            groups.setdefault(row.short_form, []).append(i)
        runs = []
        for members in groups.values():
            rng.shuffle(members)
            runs += [members[i : i + RUN] for i in range(0, len(members), RUN)]
        rng.shuffle(runs)
        return [i for run in runs for i in run]

    def _loss(self, batch: Sequence[int]) -> Tensor:
        asked, anchors = [self.questions[i] for i in batch], [self.anchors[i] for i in batch]
        return loss_of(self.network.energies(asked, anchors), self.settings.objective)

    def validate(self, number: int) -> dict[str, float]:
        """Scores of the nearest long forms, the sentence itself being the anchor."""
        self.training(False)
        asked = questions(self.validation)
        best = [0] * len(asked)
        with torch.inference_mode():
            for batch in by_length([len(row.text) for row in self.validation], BATCH):
                part = [asked[i] for i in batch]
                nearest = self.network.energies(part, [q.anchor() for q in part]).argmin(1)
                for i, column in zip(batch, nearest.tolist(), strict=True):
                    best[i] = column
        chosen = [row.senses[i] for row, i in zip(self.validation, best, strict=True)]
        values = scores(self.validation, chosen)
        return {DECIDING: values[DECIDING]} | values


def right_first(row: Row) -> Row:
    """The row with the right long form before the others."""
    return row._replace(senses=(row.gold, *(s for s in row.senses if s != row.gold)))


def train(
    settings: Settings, data: Path, run: Path | None, device: torch.device | str = "cpu"
) -> tuple[AcronymTrainee, TrainingLoop]:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch. Raises
    CorpusError where there is no row to train on, or none to choose the epoch by.
    """
    training, validation = read_parts(data, settings)
    if not training or not validation:
        raise CorpusError(f"{settings.corpora}: no row to train on, or none to choose an epoch by")
    trainee = AcronymTrainee(settings, training, validation, device)
    console.print(f"{len(trainee.rows)} rows, {len(validation)} for validation", highlight=False)
    identity = asdict(settings) | {"data": digest_of([*training, *validation])}
    loop = TrainingLoop(trainee, identity, run)
    loop.run()
    return trainee, loop
