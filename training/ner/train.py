"""CONORM-NER in training (CONORM, section 3.1): a tagging head over an encoder, in a run for each phase.

A run has its AdamW and its linear schedule with 10 % warm-up; the loss is the cross-entropy over all pieces.
The weights of the last epochs may be averaged (Izmailov et al. 2018). What is validated is the model as a
release holds it; the epoch with the best strict F1 on the validation part is kept.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, merge_adapter
from models.lexicon import NameLexicon
from models.ner.decoding import TRANSITIONS, Decoding, Floats, tags_of
from models.ner.heads import EventHead
from models.ner.model import EVENT_HEAD, HEAD, STATUS_HEAD, NerModel
from models.ner.status_head import StatusHead
from models.releases.manifest import Release
from models.text import words
from models.types import LABELS
from training.common import adapter
from training.common.batching import length_batches
from training.common.checkpoint import digest_of, random_state, set_random_state
from training.common.corpora import CorpusError
from training.common.loop import AveragingTrainee, TrainingLoop, steps_of, warmup_linear
from training.common.precision import mixed
from training.common.tagging.spans import gold_spans, mention_spans
from training.common.tagging.transitions import pairs_of, transitions_of
from training.common.tagging.word_tags import word_tags
from training.evaluation.measures import strict_f1
from training.ner.data import NEGATIVES, Corpus, Example, examples
from training.ner.network import beginning, losses_of
from training.ner.settings import NAMED_FROM, Settings, event_names

console = Console()
#: Batches out of which sentences of similar length are put together.
POOL = 20


class TaggerTrainee(AveragingTrainee):
    """An encoder and a tagging head, trained on `data`."""

    def __init__(
        self,
        settings: Settings,
        data: Sequence[Example],
        score: Callable[[NerModel], dict[str, float]],
        device: torch.device | str = "cpu",
        transitions: Floats | None = None,
        start: Release | None = None,
    ) -> None:
        """`score`: corpus to strict micro F1 on its validation part, of the model as it would be served, with
        `transitions` where it decodes whole sentences. `start`: the release whose weights it begins with.
        """
        super().__init__(max(1, settings.average))
        torch.manual_seed(settings.seed)
        self.settings, self.data, self.start, self.device = settings, data, start, torch.device(device)
        self.epochs = settings.epochs
        self.rng = random.Random(settings.seed)
        encoder, self.head, event_head, status_head = beginning(settings, start)
        self.encoder = adapter.trainable(encoder, rank=settings.rank if settings.layers else 0)
        dimension = self.encoder.dimension
        self.event_head = (event_head or EventHead(dimension)) if settings.heads else None
        self.status_head = (status_head or StatusHead(dimension)) if settings.heads else None
        self.names = event_names() if settings.heads else []
        self.decoding = Decoding(
            transitions=transitions,
            window=settings.window,
            labels_pooled=settings.decode == "viterbi",
            named_from=NAMED_FROM if self.names else 0.0,
            withdrawals_named=settings.decode == "viterbi",
            stated_read=settings.stated > 0,
        )
        self._score = score
        self._number = 0
        if not settings.layers:
            self.encoder.model.requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=settings.lr, fused=True)
        steps = steps_of(settings.epochs, len(data), settings.batch)
        self.schedule = warmup_linear(self.optimizer, steps)

    def modules(self) -> Sequence[nn.Module]:
        heads = [h for h in (self.event_head, self.status_head) if h is not None]
        return [self.encoder.model, self.head, *heads]

    def epoch(self, number: int) -> dict[str, float]:
        batches = length_batches(
            self.data, size=self.settings.batch, pool=POOL, length=lambda e: len(e.pieces), rng=self.rng
        )
        losses = self.one_pass(batches, self._loss, number)
        self.end_epoch()
        return losses

    def validate(self, number: int) -> dict[str, float]:
        """The mean over the corpora first, then each corpus."""
        self._number = number
        with self.averaged():
            scores = self._score(self.released())
        return {"strict micro F1": sum(scores.values()) / len(scores)} | scores

    def refusal(self, scores: Mapping[str, float], untrained: Mapping[str, float]) -> str:
        return "not the last epoch" if self.settings.average and self._number < self.epochs else ""

    def state(self) -> dict[str, Any]:
        return super().state() | {"rng": random_state(self.rng)}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        set_random_state(self.rng, state["rng"])

    def release_files(self) -> dict[str, dict[str, Tensor]]:
        """What a release holds of the model as it is now: file name to tensors, heads and matrices of
        low rank in 16 bits, changes of the layers in 8.
        """
        head = {HEAD: _halved(self.head)}
        if self.event_head is not None:
            head[EVENT_HEAD] = _halved(self.event_head)
        if self.status_head is not None:
            head[STATUS_HEAD] = _halved(self.status_head)
        if self.decoding.transitions is not None:
            head[TRANSITIONS] = {"transitions": torch.from_numpy(self.decoding.transitions)}
        changes = self._changes()
        return ({ADAPTER: changes} if changes else {}) | head

    def _changes(self) -> dict[str, Tensor]:
        """What training has changed in the encoder, as a release holds it."""
        if self.settings.rank and self.settings.layers:
            return adapter.adapter_tensors(self.encoder.model)
        return adapter.quantized(Encoder.load(self.settings.base).model, self.encoder.model)

    def released(self) -> NerModel:
        """The model as it is served from `release_files`."""
        files = self.release_files()
        base = copy.deepcopy(Encoder.load(self.settings.base).model)
        if ADAPTER in files:
            merge_adapter(base, files[ADAPTER])
        head = copy.deepcopy(self.head)
        head.load_state_dict({name: tensor.float() for name, tensor in files[HEAD].items()})
        encoder = Encoder(base.to(self.device), self.encoder.tokenizer, self.encoder.max_pieces)
        event_head, status_head = copy.deepcopy(self.event_head), copy.deepcopy(self.status_head)
        if event_head is not None:
            event_head.load_state_dict({name: tensor.float() for name, tensor in files[EVENT_HEAD].items()})
        if status_head is not None:
            status_head.load_state_dict({name: t.float() for name, t in files[STATUS_HEAD].items()})
        return NerModel(
            encoder,
            head,
            LABELS,
            None,
            event_head=event_head,
            status_head=status_head,
            names=NameLexicon.of(self.names) if self.names else None,
            decoding=replace(self.decoding),
        )

    def _loss(self, batch: Sequence[Example]) -> dict[str, Tensor]:
        with mixed(self.settings.precision, self.device):
            return losses_of(self.encoder, self.head, batch, self.event_head, self.status_head)


def _halved(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().half().cpu().clone() for name, tensor in module.state_dict().items()}


def training_sentences(corpora: Mapping[str, Corpus], settings: Settings) -> list[Example]:
    """The training sentences of all corpora as pieces with tags."""
    encoder, tags = Encoder.load(settings.base), tags_of(LABELS)
    return [example for corpus in corpora.values() for example in examples(corpus, encoder, tags)]


def counted_transitions(corpora: Mapping[str, Corpus]) -> Floats:
    """Transitions between tags of the training sentences, without the negatives, which have no mention."""
    numbers = {tag: i for i, tag in enumerate(tags_of(LABELS))}
    sequences = [
        [numbers[tag] for tag in word_tags(text, words(text.text), corpus.lexicon)]
        for name, corpus in corpora.items()
        if name != NEGATIVES
        for text in corpus.train
    ]
    return transitions_of(pairs_of(sequences, len(numbers)), list(numbers))


def validation_scores(corpora: Mapping[str, Corpus], model: NerModel) -> dict[str, float]:
    """Corpus to strict micro F1 on its validation part."""
    return {
        name: strict_f1(
            mention_spans(model.predict([t.text for t in c.valid])), gold_spans(c.valid), c.labels
        )
        for name, c in corpora.items()
        if c.valid
    }


def train(
    corpora: Mapping[str, Corpus],
    settings: Settings,
    run: Path | None,
    device: torch.device | str = "cpu",
    start: Release | None = None,
) -> tuple[TaggerTrainee, TrainingLoop]:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch. Raises
    CorpusError where there is no sentence to train on.
    """
    data = training_sentences(corpora, settings)
    if not data:
        raise CorpusError(f"there is no sentence to train on: the files of {', '.join(corpora)} are empty")
    valid = sum(len(c.valid) for c in corpora.values())
    console.print(f"{len(data)} training sentences, {valid} for validation")
    scores = partial(validation_scores, corpora)
    transitions = counted_transitions(corpora) if settings.decode == "viterbi" else None
    trainee = TaggerTrainee(settings, data, scores, device, transitions, start)
    digest = digest_of(text for corpus in corpora.values() for text in (*corpus.train, *corpus.valid))
    begun = start.version if start else ""
    loop = TrainingLoop(trainee, asdict(settings) | {"data": digest, "start": begun}, run)
    loop.run()
    return trainee, loop
