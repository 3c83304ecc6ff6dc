"""Training ECL: a run that is killed, its stages, and encoder-decoders of the hub."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from models.summarization.beam_search import Search
from tests.models.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import PAIRS, SETTINGS, STAGES, TASK, network
from training.common.checkpoint import CheckpointError
from training.summarization.data import Pair
from training.summarization.network import HubNetwork, generated_pieces
from training.summarization.run import is_encoder_decoder
from training.summarization.trainer import Asked, Stage, Trainer, batches


def test_pieces_that_are_rare_in_summaries_can_only_be_copied(tiny_bert: str) -> None:
    net = network(tiny_bert)
    found = generated_pieces(net.encoder, ["pain pain", "pain drug drug"], least=3)
    tokenizer = net.encoder.tokenizer
    assert found == [tokenizer.sep_token_id, tokenizer.convert_tokens_to_ids("pain")]


def test_every_pair_comes_once_with_those_of_like_length() -> None:
    pairs = [Asked(Pair(str(i), "x" * i, "s"), ()) for i in range(40)]
    import random  # noqa: PLC0415

    found = list(batches(pairs, 4, random.Random(1)))
    assert sorted(a.pair.id for b in found for a in b) == sorted(a.pair.id for a in pairs)
    lengths = [[len(a.pair.question) for a in b] for b in found]
    assert max(max(own) - min(own) for own in lengths) < 20


def test_a_run_learns_its_pairs_and_a_killed_one_ends_as_if_it_had_not_been(
    tiny_bert: str, tmp_path: Path
) -> None:
    def weights(trainer: Trainer) -> list[Tensor]:
        return [t for state in trainer.best for t in state.values()]

    whole = Trainer(network(tiny_bert), SETTINGS, TASK, None)
    curve = list(whole.fit(None))
    assert [(e.number, e.stage, e.kept) for e in curve] == [
        (1, "pairs", False),
        (2, "meqsum", False),
        (3, "meqsum", True),
    ]
    assert set(curve[0].losses) == {"ce"}
    assert set(curve[1].losses) == {"ce", "simple", "hard"}
    assert curve[2].losses["ce"] < curve[0].losses["ce"]
    for killed_after in (1, 2):
        folder = tmp_path / str(killed_after)
        run = Trainer(network(tiny_bert), SETTINGS, TASK, folder).fit(None)
        for _ in range(killed_after):
            next(run)
        again = Trainer(network(tiny_bert), SETTINGS, TASK, folder)
        rest = list(again.fit(None))
        assert [e.losses for e in rest] == [e.losses for e in curve[killed_after:]]
        assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(again), strict=True))
    with pytest.raises(CheckpointError):
        next(Trainer(network(tiny_bert), replace(SETTINGS, hard=0.5), TASK, folder).fit(None))


def test_a_run_starts_from_the_weights_of_another(tiny_bert: str, tmp_path: Path) -> None:
    first = replace(SETTINGS, stages=STAGES[:1])
    trained = network(tiny_bert)
    list(Trainer(trained, first, TASK, tmp_path).fit(None))
    torch.manual_seed(99)
    other = Trainer(network(tiny_bert), SETTINGS, TASK, None)
    with torch.no_grad():
        other.parameters[0].add_(1.0)
    other.start_as(tmp_path)
    for one, two in zip(trained.parts(), other.network.parts(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    with pytest.raises(CheckpointError, match="holds no run"):
        other.start_as(tmp_path / "nowhere")


def test_a_run_names_every_run_before_it_also_after_it_was_killed(tiny_bert: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second", "third")]
    lasting = replace(SETTINGS, stages=STAGES[:1], seed=7)
    for settings, start, folder in zip(
        (SETTINGS, lasting, SETTINGS), (None, *folders), folders, strict=False
    ):
        trainer = Trainer(network(tiny_bert), settings, TASK, folder)
        if start:
            trainer.start_as(start)
        next(trainer.fit(None))
    again = Trainer(network(tiny_bert), SETTINGS, TASK, folders[-1])
    again.start_as(folders[0])
    list(again.fit(None))
    assert again.start and (again.start["seed"], again.start["start"]["seed"]) == (7, SETTINGS.seed)


def test_the_first_stage_is_told_in_messages_and_the_second_is_not(
    tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = ["i was so sleepy on it.", "it did nothing for me."]
    stages = (Stage("pairs", 1, 1e-3, False, 1.0), Stage("meqsum", 1, 1e-3, False))
    trainer = Trainer(
        network(tiny_bert),
        replace(SETTINGS, stages=stages, swap=0.0),
        replace(TASK, sentences=sentences),
        None,
    )
    seen: list[list[Asked]] = []
    losses = trainer.losses

    def watched(batch: Sequence[Asked], contrastive: bool) -> dict[str, Tensor]:
        seen.append(list(batch))
        return losses(batch, contrastive)

    monkeypatch.setattr(trainer, "losses", watched)
    list(trainer.fit(None))
    own = {p.id: p for p in PAIRS}
    first = [a.pair for batch in seen[:1] for a in batch]
    assert {p.id for p in first} == {"p0", "p1"}
    for pair in first:
        whole = own[pair.id]
        assert whole.question.rstrip("?") in pair.question
        assert pair.summary == whole.summary
    assert any(s in p.question or p.question.startswith("SUBJECT") for p in first for s in sentences)
    assert {a.pair for batch in seen[1:] for a in batch} == set(PAIRS)


def test_the_second_stage_repeats_some_of_the_first(tiny_bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = (Stage("pairs", 0, 1e-3, False, 1.0), Stage("meqsum", 2, 1e-3, False, 0.0, 1))
    own = replace(TASK, sentences=["i was so sleepy on it."], pairs={"pairs": PAIRS[:2], "meqsum": PAIRS[2:]})
    trainer = Trainer(network(tiny_bert), replace(SETTINGS, stages=stages, swap=0.0), own, None)
    seen: list[list[str]] = []
    losses = trainer.losses

    def watched(batch: Sequence[Asked], contrastive: bool) -> dict[str, Tensor]:
        seen.append([a.pair.id for a in batch])
        return losses(batch, contrastive)

    monkeypatch.setattr(trainer, "losses", watched)
    assert len(list(trainer.fit(None))) == 2
    # Three pairs an epoch, in two batches.
    for part in (seen[:2], seen[2:]):
        names = sorted(name for batch in part for name in batch)
        assert len(names) == 3
        assert set(names) >= {"p2", "p3"}
        assert set(names) & {"p0", "p1"}


def test_what_is_not_trained_writes_the_same_twice(tiny_bert: str) -> None:
    net = network(tiny_bert)
    assert not any(m.training for part in net.parts() for m in part.modules())
    writer = net.writer(Search(beams=1))
    assert writer.write([PAIRS[0].question]) == writer.write([PAIRS[0].question])


def test_the_epoch_with_the_best_score_is_kept(tiny_bert: str) -> None:
    net = network(tiny_bert)
    trainer = Trainer(net, SETTINGS, TASK, None)
    scores = iter([0.7, 0.4])
    states: list[Any] = []
    for epoch in trainer.fit(lambda: next(scores)):
        states.append((epoch.kept, net.decoder.bias.detach().clone()))
    assert [kept for kept, _ in states] == [False, True, False]
    assert torch.equal(trainer.best[1]["bias"], states[1][1])
    trainer.keep_best()
    assert torch.equal(net.decoder.bias, states[1][1])


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
def test_a_bart_and_a_t5_take_a_step_and_write(make: Callable[[Path], str], tmp_path: Path) -> None:
    base = make(tmp_path)
    assert is_encoder_decoder(base)
    net = HubNetwork(base, max_pieces=64)
    before = {n: p.detach().clone() for n, p in net.model.named_parameters()}
    settings = replace(SETTINGS, stages=(Stage("meqsum", 1, 1e-2, True),))
    (epoch,) = Trainer(net, settings, TASK, None).fit(None)
    assert set(epoch.losses) == {"ce", "simple", "hard"}
    assert all(math.isfinite(v) for v in epoch.losses.values())
    encoder = [n for n in net.encoder_state()]
    assert encoder
    assert any(not torch.equal(p, before[n]) for n, p in net.model.named_parameters() if "encoder" in n)
    assert any(not torch.equal(p, before[n]) for n, p in net.model.named_parameters() if "decoder" in n)
    ((written, *_),) = net.writer(Search(beams=2, longest=6)).write(["is the drug aspirin bad?"])
    assert 0 <= written.score <= 1


def test_the_smoothing_of_a_hub_model_is_that_of_eq_3(tmp_path: Path) -> None:
    net = HubNetwork(tiny_seq2seq.bart(tmp_path), max_pieces=64)
    net.model.eval()
    with torch.no_grad():
        found = net.cross_entropy(net.read(["tea"]), ["fine"], 0.2)
        labels = net._tokens(["fine"])["input_ids"]
        logs = net.model(**net._tokens(["tea"]), labels=labels).logits[0].log_softmax(-1)
    right = logs.gather(1, labels[0].unsqueeze(1)).squeeze(1)
    others = (logs.sum(1) - right) / (logs.shape[1] - 1)
    assert float(found) == pytest.approx(float(-(0.8 * right + 0.2 * others).mean()), rel=1e-4)
