"""Training ECL: losses by hand, the key encoder, the queue, a run that is killed, ablations and releases."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from torch import Tensor

from models.beam import Search
from models.drugs import DrugLexicon
from models.focus import OwnRecogniser
from models.loading import load
from models.ranker import FEATURES
from models.store import open_release
from models.types import LABELS
from tests.models import tiny_seq2seq
from training import summarization, summarization_release
from training.checkpoint import CheckpointError
from training.evaluations.summarization import bundled_tagger
from training.summarization import is_encoder_decoder, task_of
from training.summarization_data import Corpora, Pair
from training.summarization_network import HubNetwork, PointerNetwork, Read, generated_pieces, pooled
from training.summarization_trainer import Asked, Queue, Settings, Stage, Task, Trainer, batches, contrast

PAIRS = [
    Pair(f"p{i}", f"i have pain {d} and take the drug {d}. is the drug {d} bad?", f"is the drug {d} bad?")
    for i, d in enumerate(["aspirin", "zoloft", "ibuprofen", "metformin"])
]
STAGES = (Stage("pairs", 1, 1e-3, False), Stage("meqsum", 2, 1e-3, True))
SETTINGS = Settings(STAGES, batch=2, negatives=3, queue=6, seed=3)


@pytest.fixture(scope="module")
def task() -> Task:
    names = [p.question.split()[3] for p in PAIRS]
    recogniser = OwnRecogniser(None, [], DrugLexicon({n: n for n in names}))
    return task_of(Corpora(PAIRS[:2], PAIRS, [], {}), recogniser)


def network(base: str, rank: int = 2) -> PointerNetwork:
    targets = [p.summary for p in PAIRS] * 3
    torch.manual_seed(5)
    return PointerNetwork(base, layers=1, rank=rank, trained_layers=1, targets=targets, max_pieces=64)


def asked(pairs: Sequence[Pair], task: Task) -> list[Asked]:
    return [Asked(p, task.entities.get(p.id, ())) for p in pairs]


def unit(*rows: list[float]) -> Tensor:
    return torch.nn.functional.normalize(torch.tensor(rows), dim=-1)


def test_the_contrast_of_a_question_is_that_of_eq_5() -> None:
    query, right = unit([1.0, 0.0], [0.0, 1.0]), unit([1.0, 1.0], [0.0, 1.0])
    wrong = unit([0.0, 1.0], [1.0, 0.0], [-1.0, 0.0])
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    # The second question has no negative and does not count.
    wanted = -math.log(math.exp(math.sqrt(0.5) / 0.5) / (math.exp(0.0) + math.exp(-1 / 0.5)))
    assert float(contrast(query, right, wrong, allowed, 0.5)) == pytest.approx(wanted, abs=1e-6)
    own = wrong.expand(2, -1, -1)
    assert float(contrast(query, right, own, allowed, 0.5)) == pytest.approx(wanted, abs=1e-6)
    assert float(contrast(query, right, wrong, torch.zeros(2, 3, dtype=torch.bool), 0.5)) == 0


def test_a_mean_of_states_leaves_padding_out() -> None:
    states = torch.tensor([[[3.0, 0.0], [0.0, 3.0], [9.0, 9.0]], [[0.0, 2.0], [9.0, 9.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    found = pooled(Read(states, mask, None))
    assert found.flatten().tolist() == pytest.approx([math.sqrt(0.5)] * 2 + [0.0, 1.0])


def test_the_oldest_keys_leave_the_queue() -> None:
    queue = Queue(3)
    queue.put(torch.eye(2), torch.tensor([0, 1]))
    queue.put(2 * torch.eye(2), torch.tensor([2, 3]))
    assert queue.owners.tolist() == [1, 2, 3]
    assert queue.keys.tolist() == [[0, 1], [2, 0], [0, 2]]


def test_a_summary_is_no_negative_of_its_own_question(tiny_bert: str, task: Task) -> None:
    trainer = Trainer(network(tiny_bert), replace(SETTINGS, swap=0.0, hard=0.0), task, None)
    # The queue holds the batch itself: twice the same summary leaves nothing to be told apart.
    twice = [PAIRS[0], Pair("other", "what else?", "IS the drug aspirin bad")]
    assert trainer.losses(asked(twice, task), True)["simple"].item() == 0
    assert trainer.losses(asked(PAIRS[:2], task), True)["simple"].item() != 0


def test_weights_of_zero_leave_losses_out(tiny_bert: str, task: Task) -> None:
    def names(simple: float, hard: float) -> set[str]:
        settings = replace(SETTINGS, simple=simple, hard=hard)
        trainer = Trainer(network(tiny_bert), settings, task, None)
        found = trainer.losses(asked(PAIRS[:2], task), True)
        assert (trainer.keys is None) is (simple == hard == 0)
        assert all(bool(torch.isfinite(v)) for v in found.values())
        return set(found)

    assert names(1.0, 1.0) == {"ce", "simple", "hard"}
    assert names(0.0, 1.0) == {"ce", "hard"}
    assert names(1.0, 0.0) == {"ce", "simple"}
    assert names(0.0, 0.0) == {"ce"}


def test_hard_negatives_are_the_questions_own_and_never_queued(
    tiny_bert: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(network(tiny_bert), replace(SETTINGS, swap=0.0), task, None)
    seen: list[tuple[Tensor, Tensor]] = []

    def watched(query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor) -> Tensor:
        seen.append((wrong, allowed))
        return query.sum() * 0

    monkeypatch.setattr(trainer, "_contrast", watched)
    lonely = Pair("none", "is tea fine?", "is tea fine?")
    trainer.losses(asked([PAIRS[0], lonely], task), True)
    (queue, _), (wrong, allowed) = seen
    assert queue.shape == (2, 32) == trainer.queue.keys.shape
    # Three drugs are not aspirin; a summary without an entity has no hard negative.
    assert wrong.shape == (2, 3, 32)
    assert allowed.tolist() == [[True] * 3, [False] * 3]
    assert wrong[1].abs().max() == 0
    assert len({tuple(row.tolist()) for row in wrong[0]}) == 3


def test_the_right_summary_may_stand_in_the_denominator(tiny_bert: str, task: Task) -> None:
    query, right, wrong = unit([1.0, 0.0]), unit([1.0, 1.0]), unit([0.0, 1.0])
    trainer = Trainer(network(tiny_bert), replace(SETTINGS, positive=True, temperature=1.0), task, None)
    near = math.sqrt(0.5)
    wanted = -math.log(math.exp(near) / (math.exp(near) + 1))
    allowed = torch.tensor([[True]])
    assert float(trainer._contrast(query, right, wrong, allowed)) == pytest.approx(wanted, abs=1e-6)
    assert float(trainer._contrast(query, right, wrong, ~allowed)) == 0


def test_the_key_encoder_follows_slowly(tiny_bert: str) -> None:
    net = network(tiny_bert)
    keys = net.key_encoder()
    before = {n: p.clone() for n, p in keys.model.named_parameters()}
    trained = net.encoder_state()
    assert trained and all("layer.1." in name for name in trained)
    with torch.no_grad():
        for parameter in trained.values():
            parameter.add_(1.0)
    keys.follow(net.encoder_state(), 0.9)
    for name, parameter in keys.model.named_parameters():
        moved = 0.1 if name in trained else 0.0
        assert torch.allclose(parameter, before[name] + moved, atol=1e-6)
        assert not parameter.requires_grad


def test_a_key_is_that_of_the_encoder_whatever_its_company(tiny_bert: str) -> None:
    net = network(tiny_bert)
    keys = net.key_encoder()
    texts = ["is it bad?", "x", "is the drug aspirin bad for the pain?"]
    together = keys(texts)
    assert torch.allclose(together.norm(dim=1), torch.ones(3), atol=1e-5)
    for text, key in zip(texts, together, strict=True):
        assert torch.allclose(keys([text])[0], key, atol=1e-5)
        assert torch.allclose(pooled(net.read([text]))[0], key, atol=1e-5)


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
    tiny_bert: str, task: Task, tmp_path: Path
) -> None:
    def weights(trainer: Trainer) -> list[Tensor]:
        return [t for state in trainer.best for t in state.values()]

    whole = Trainer(network(tiny_bert), SETTINGS, task, None)
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
        run = Trainer(network(tiny_bert), SETTINGS, task, folder).fit(None)
        for _ in range(killed_after):
            next(run)
        again = Trainer(network(tiny_bert), SETTINGS, task, folder)
        rest = list(again.fit(None))
        assert [e.losses for e in rest] == [e.losses for e in curve[killed_after:]]
        assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(again), strict=True))
    with pytest.raises(CheckpointError):
        next(Trainer(network(tiny_bert), replace(SETTINGS, hard=0.5), task, folder).fit(None))


def test_a_run_starts_from_the_weights_of_another(tiny_bert: str, task: Task, tmp_path: Path) -> None:
    first = replace(SETTINGS, stages=STAGES[:1])
    trained = network(tiny_bert)
    list(Trainer(trained, first, task, tmp_path).fit(None))
    torch.manual_seed(99)
    other = Trainer(network(tiny_bert), SETTINGS, task, None)
    with torch.no_grad():
        other.parameters[0].add_(1.0)
    other.start_as(tmp_path)
    for one, two in zip(trained.parts(), other.network.parts(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    with pytest.raises(CheckpointError, match="holds no run"):
        other.start_as(tmp_path / "nowhere")


def test_the_first_stage_is_told_in_messages_and_the_second_is_not(
    tiny_bert: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = ["i was so sleepy on it.", "it did nothing for me."]
    stages = (Stage("pairs", 1, 1e-3, False, 1.0), Stage("meqsum", 1, 1e-3, False))
    trainer = Trainer(
        network(tiny_bert),
        replace(SETTINGS, stages=stages, swap=0.0),
        replace(task, sentences=sentences),
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


def test_the_second_stage_repeats_some_of_the_first(
    tiny_bert: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = (Stage("pairs", 0, 1e-3, False, 1.0), Stage("meqsum", 2, 1e-3, False, 0.0, 1))
    own = replace(task, sentences=["i was so sleepy on it."], pairs={"pairs": PAIRS[:2], "meqsum": PAIRS[2:]})
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


def test_the_epoch_with_the_best_score_is_kept(tiny_bert: str, task: Task) -> None:
    net = network(tiny_bert)
    trainer = Trainer(net, SETTINGS, task, None)
    scores = iter([0.7, 0.4])
    states: list[Any] = []
    for epoch in trainer.fit(lambda: next(scores)):
        states.append((epoch.kept, net.decoder.bias.detach().clone()))
    assert [kept for kept, _ in states] == [False, True, False]
    assert torch.equal(trainer.best[1]["bias"], states[1][1])
    trainer.keep_best()
    assert torch.equal(net.decoder.bias, states[1][1])


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
def test_a_bart_and_a_t5_take_a_step_and_write(
    make: Callable[[Path], str], tmp_path: Path, task: Task
) -> None:
    base = make(tmp_path)
    assert is_encoder_decoder(base)
    net = HubNetwork(base, max_pieces=64)
    before = {n: p.detach().clone() for n, p in net.model.named_parameters()}
    settings = replace(SETTINGS, stages=(Stage("meqsum", 1, 1e-2, True),))
    (epoch,) = Trainer(net, settings, task, None).fit(None)
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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Few questions, and a NER release without training."""
    (tmp_path / "data/questions").mkdir(parents=True)
    rows = [{"id": p.id, "split": "train", "question": p.question, "summary": p.summary} for p in PAIRS]
    rows += [
        {"id": f"v{i}", "split": "train", "question": f"validation question number {i}{i}?", "summary": "v?"}
        for i in range(6)
    ]
    rows.append(
        {"id": "t", "split": "test", "question": "Tea. Is the drug zoloft ok?", "summary": "is zoloft ok?"}
    )
    rqe = [{"id": "r", "entails": True, "question": "does the drug hurt? i fear it.", "faq": "does it hurt?"}]
    for name, lines in (("meqsum", rows), ("rqe_train", rqe)):
        text = "\n".join(json.dumps(r) for r in lines)
        (tmp_path / f"data/questions/{name}.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "data/psytar").mkdir()
    told = "\n".join([*(f"{w}\tO" for w in ("i", "feel", "so", "tired")), ""])
    (tmp_path / "data/psytar/ner_train.conll").write_text(told, encoding="utf-8")
    return tmp_path / "data"


def options(data: Path, base: str, out: Path, **more: Any) -> dict[str, Any]:
    plain = dict(layers=1, rank=2, trained_layers=1, pretraining=1, epochs=1, batch=2, negatives=2)
    return plain | dict(data=data, backbone=base, output=out, precision="float32", held_out=1) | more


def test_the_program_makes_a_release_that_loads_and_says_how_it_was_made(
    data: Path, tiny_bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = options(data, tiny_bert, tmp_path / "out", run=tmp_path / "run", choose="pointer")
    summarization.main(**made)
    (path,) = (tmp_path / "out/summarization").iterdir()
    release = open_release(path)
    manifest = release.manifest
    assert manifest.kind.startswith("ECL: pointer decoder")
    assert {"adapter.safetensors", "decoder.safetensors", "focus_terms.tsv", "words.tsv"} <= set(
        manifest.files
    )
    configuration = manifest.configuration
    searched = configuration["searched"]
    assert set(searched) == {"1", "4"}
    best = str(configuration["search"]["beams"])
    assert searched[best] == max(searched.values())
    assert len(configuration["data"]["validation"]) == 1
    assert configuration["data"] == configuration["data"] | json.loads(
        (tmp_path / "run/split.json").read_text(encoding="utf-8")
    )
    assert {s.name for s in manifest.training_data} == {
        summarization_release.SOURCES[n].name for n in ("meqsum", "rqe", "mediqa", "psytar")
    }
    scores = {s.name: s for s in manifest.scores}
    assert scores["unfaithful"].value == 0
    assert scores["rouge1"].baseline is not None
    loaded = load(release, dtype="float32")
    assert loaded.answers_canary()
    out = capsys.readouterr().out
    assert "validation ROUGE-1" in out and "focus identification rate" in out
    # Without an epoch, a release is made of the weights of a run.
    made |= {"start": tmp_path / "run", "run": None, "pretraining": 0, "epochs": 0}
    summarization.main(**made | {"output": tmp_path / "again", "beams": 2})
    (path,) = (tmp_path / "again/summarization").iterdir()
    names = ("decoder.safetensors", "adapter.safetensors")
    again = open_release(path).manifest
    assert (again.configuration["search"]["beams"], again.configuration["searched"]) == (2, {})
    files = again.files
    assert [files[n].sha256 for n in names] == [manifest.files[n].sha256 for n in names]


@pytest.mark.parametrize("choose", ["templates", "ranked"])
def test_forms_stand_beside_the_decoder_where_they_are_wanted(
    choose: str, data: Path, tiny_bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarization.main(**options(data, tiny_bert, tmp_path / "out", held_out=5, choose=choose))
    (path,) = (tmp_path / "out/summarization").iterdir()
    release = open_release(path)
    configuration = release.manifest.configuration
    assert {"forms.tsv", "forms.safetensors"} <= set(release.manifest.files)
    assert len(configuration["ranker"]) == (0 if choose == "templates" else len(FEATURES))
    assert set(configuration["choice"]["scores"]) == {"pointer", "templates", "ranked"}
    assert ("ranked" if choose == "ranked" else "forms alone") in release.manifest.kind
    assert load(release, dtype="float32").answers_canary()
    assert "by what writes" in capsys.readouterr().out


def test_a_ranker_wants_questions_to_be_fitted_on(data: Path, tiny_bert: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 5"):
        summarization.main(**options(data, tiny_bert, tmp_path / "out", choose="ranked"))


def test_a_hub_model_becomes_a_release_too(data: Path, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = tiny_seq2seq.t5(tmp_path / "base")
    summarization.main(**options(data, base, tmp_path / "out", held_out=0))
    (path,) = (tmp_path / "out/summarization").iterdir()
    loaded = load(open_release(path), dtype="float32")
    assert loaded.kind.startswith("ECL: hub decoder")
    assert loaded.answers_canary()


def test_words_that_come_twice_and_those_of_forms_are_known() -> None:
    corpora = Corpora([Pair("a", "q", "Is tea bad?")], [Pair("b", "q", "Is TEAS good, is it?")], [], {})
    assert summarization_release.known_words(corpora, ["Why {}?"]) == ["is", "tea", "why"]


def test_training_wants_data() -> None:
    with pytest.raises(typer.BadParameter):
        summarization.main()


def test_the_tagger_of_the_guard_knows_all_labels() -> None:
    assert bundled_tagger().manifest.configuration["labels"] == list(LABELS)
