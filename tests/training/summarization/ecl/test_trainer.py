"""Training ECL: its stages, and a run that is killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.summarization.short_pairs import MATERIAL, PAIRS, loop_of, network, settings, trainee_of
from training.common.checkpoint import CheckpointError
from training.common.loop import TrainingLoop
from training.summarization.ecl import trainer
from training.summarization.ecl.trainer import SummarizerTrainee
from training.summarization.examples import Example


def summarizer(loop: TrainingLoop) -> SummarizerTrainee:
    assert isinstance(loop.trainee, SummarizerTrainee)
    return loop.trainee


def test_the_second_stage_has_contrastive_losses_and_without_validation_the_last_epoch_is_kept(
    tiny_bert: str,
) -> None:
    curve = list(loop_of(trainee_of(tiny_bert)).epochs())
    assert [(e.number, e.kept) for e in curve] == [(1, False), (2, False), (3, True)]
    assert [set(e.losses) for e in curve] == [{"ce"}, {"ce", "simple", "hard"}, {"ce", "simple", "hard"}]
    assert curve[2].losses["ce"] < curve[0].losses["ce"]
    assert [e.scores for e in curve] == [{}, {}, {}]


@pytest.mark.parametrize("killed_after", [1, 2])
def test_a_killed_run_resumes_to_the_same_weights(tiny_bert: str, tmp_path: Path, killed_after: int) -> None:
    whole = loop_of(trainee_of(tiny_bert))
    curve = [e.losses for e in whole.epochs()]
    for epoch in loop_of(trainee_of(tiny_bert), tmp_path).epochs():
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = loop_of(trainee_of(tiny_bert), tmp_path)
    assert [e.losses for e in resumed.epochs()] == curve[killed_after:]
    for one, other in zip(whole.trainee.weights(), resumed.trainee.weights(), strict=True):
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    keys, again = summarizer(whole).queue.keys, summarizer(resumed).queue.keys
    assert torch.equal(keys, again)
    with pytest.raises(CheckpointError):
        list(loop_of(trainee_of(tiny_bert, hard=0.5), tmp_path).epochs())


def watched(trainee: SummarizerTrainee, monkeypatch: pytest.MonkeyPatch) -> list[list[Example]]:
    """The batches that the trainee computes losses of."""
    batches: list[list[Example]] = []
    losses = trainee.losses

    def watch(batch: Sequence[Example], contrastive: bool) -> dict[str, Tensor]:
        batches.append(list(batch))
        return losses(batch, contrastive)

    monkeypatch.setattr(trainee, "losses", watch)
    return batches


def test_questions_of_the_first_stage_are_in_messages_and_those_of_the_second_are_not(
    tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = ["i was so sleepy on it.", "it did nothing for me."]
    material = replace(MATERIAL, sentences=sentences)
    trainee = trainee_of(tiny_bert, material, epochs=1, message_share=1.0, swap=0.0, simple=0, hard=0)
    batches = watched(trainee, monkeypatch)
    list(loop_of(trainee).epochs())
    own = {p.id: p for p in PAIRS}
    first = [example.pair for batch in batches[:1] for example in batch]
    assert {p.id for p in first} == {"p0", "p1"}
    for pair in first:
        whole = own[pair.id]
        assert whole.question.rstrip("?") in pair.question
        assert pair.summary == whole.summary
    assert any(s in p.question or p.question.startswith("SUBJECT") for p in first for s in sentences)
    assert {example.pair for batch in batches[1:] for example in batch} == set(PAIRS)


def test_the_second_stage_repeats_some_of_the_first(tiny_bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = {"pairs": PAIRS[:2], "meqsum": PAIRS[2:]}
    material = replace(MATERIAL, sentences=["i was so sleepy on it."], pairs=pairs)
    changes: dict[str, Any] = {"pretraining": 0, "message_share": 1.0, "swap": 0.0, "replay": 1}
    trainee = trainee_of(tiny_bert, material, simple=0, hard=0, **changes)
    batches = watched(trainee, monkeypatch)
    assert len(list(loop_of(trainee).epochs())) == 2
    # Three pairs an epoch, in two batches.
    for part in (batches[:2], batches[2:]):
        names = sorted(example.pair.id for batch in part for example in batch)
        assert len(names) == 3
        assert set(names) >= {"p2", "p3"}
        assert set(names) & {"p0", "p1"}


def test_the_epoch_of_the_second_stage_with_the_best_score_is_kept(
    tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.7, 0.4])
    monkeypatch.setattr(trainer, "rouge1", lambda *_: next(scores))
    net = network(tiny_bert)
    loop = loop_of(SummarizerTrainee(net, settings(), MATERIAL, PAIRS[:1]))
    biases = [net.decoder.bias.detach().clone() for _ in loop.epochs()]
    assert [e.kept for e in loop.curve] == [False, True, False]
    loop.load_best()
    assert torch.equal(net.decoder.bias, biases[1])
    assert not torch.equal(net.decoder.bias, biases[2])
