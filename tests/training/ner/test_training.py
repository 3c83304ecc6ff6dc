"""Training the tagger: a few steps, a run that is killed, and the adapter that comes out of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from safetensors.torch import load_file

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, merge_adapter
from models.ner.model import NerModel
from models.releases.loading import load
from models.releases.store import open_release
from models.text import words
from models.types import DRUG, LABELS
from tests.models import tiny
from tests.training.ner.test_data import SENTENCES, TAGS
from training.common.adapter import adapter_tensors
from training.common.checkpoint import CheckpointError
from training.common.corpora import read_ade_abstracts
from training.evaluation.relation import split_texts
from training.ner import run as ner
from training.ner.data import examples
from training.ner.run import Run, Settings


class Stopped(Exception):
    """A power cut."""


def run(base: str, folder: Path | None = None, **changes: Any) -> Run:
    settings = Settings(base=base, **{"rank": 4, "batch": 4} | changes)
    return Run(settings, examples(SENTENCES, Encoder.load(base), TAGS, None, settings.scheme), folder)


def constant(model: NerModel) -> dict[str, float]:
    return {"posts": 0.5}


@pytest.fixture(scope="module")
def trained() -> tuple[Run, list[float]]:
    """A run of seven epochs of two steps each, and the mean loss of every epoch."""
    made = run("mini", epochs=7, lr=5e-3)
    return made, [epoch.loss for epoch in made.fit(constant)]


def test_a_few_steps_lower_the_loss(trained: tuple[Run, list[float]]) -> None:
    _, losses = trained
    assert len(losses) == 7
    assert losses[-1] < 0.7 * losses[0]


def test_the_first_of_two_phases_trains_the_head_alone(tiny_bert: str) -> None:
    made = run(tiny_bert, epochs=2)
    before = {n: p.clone() for n, p in made.encoder.model.named_parameters()}
    weight = made.head.linear.weight.detach().clone()
    epochs = made.fit(constant)
    next(epochs)
    assert all(torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())
    assert not torch.equal(made.head.linear.weight, weight)
    assert not made.head.training
    assert not made.encoder.model.training
    next(epochs)
    assert any(not torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())


def test_a_single_phase_trains_everything_at_once(tiny_bert: str) -> None:
    made = run(tiny_bert, epochs=2, phases=1)
    before = {n: p.clone() for n, p in made.encoder.model.named_parameters()}
    next(made.fit(constant))
    assert any(not torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())


@pytest.mark.parametrize("killed_after", [1, 2, 3])
@pytest.mark.parametrize("rank", [0, 4])
def test_a_killed_run_goes_on_to_the_same_weights(
    tiny_bert: str, tmp_path: Path, killed_after: int, rank: int
) -> None:
    def fresh(folder: Path | None) -> Run:
        settings = Settings(base=tiny_bert, rank=rank, batch=4, epochs=4, lr=1e-3)
        return Run(settings, examples(SENTENCES, Encoder.load(tiny_bert), TAGS, None), folder)

    whole = fresh(None)
    curve = [epoch.loss for epoch in whole.fit(constant)]
    broken = fresh(tmp_path)
    for epoch in broken.fit(constant):
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = fresh(tmp_path)
    assert [epoch.loss for epoch in resumed.fit(constant)] == curve[killed_after:]
    one, other = whole.encoder.model.state_dict(), resumed.encoder.model.state_dict()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert torch.equal(whole.head.linear.weight, resumed.head.linear.weight)
    assert resumed.best.keys() == whole.best.keys()


def test_the_best_epoch_before_a_kill_is_kept_after_it(tiny_bert: str, tmp_path: Path) -> None:
    scores = iter([0.9, 0.1])
    first = run(tiny_bert, tmp_path, epochs=3)
    for epoch in first.fit(lambda model: {"posts": next(scores)}):
        if epoch.number == 2:
            break
    resumed = run(tiny_bert, tmp_path, epochs=3)
    (last,) = resumed.fit(lambda model: {"posts": 0.2})
    assert not last.kept
    for name, tensors in first.best.items():
        assert all(torch.equal(t, resumed.best[name][n]) for n, t in tensors.items())


def test_a_run_does_not_go_on_with_other_settings(tiny_bert: str, tmp_path: Path) -> None:
    list(run(tiny_bert, tmp_path, epochs=2).fit(constant))
    with pytest.raises(CheckpointError, match="other settings"):
        list(run(tiny_bert, tmp_path, epochs=2, lr=1e-2).fit(constant))


def test_a_power_cut_while_a_checkpoint_is_written_leaves_the_last_one(
    tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(tiny_bert, tmp_path, epochs=3)
    epochs = made.fit(constant)
    next(epochs)

    def cut(descriptor: int) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr("training.common.checkpoint.os.fsync", cut)
        with pytest.raises(Stopped):
            next(epochs)
    assert [e.number for e in run(tiny_bert, tmp_path, epochs=3).fit(constant)] == [2, 3]


def test_the_stored_adapter_gives_the_trained_models_hidden_states(
    mini: Encoder, trained: tuple[Run, list[float]]
) -> None:
    encoder = trained[0].encoder
    tensors = adapter_tensors(encoder.model)
    assert {t.dtype for t in tensors.values()} == {torch.float16}
    merged = copy.deepcopy(mini.model)
    merge_adapter(merged, tensors)
    surfaces = [[t.text[s.start : s.end] for s in words(t.text)] for t in SENTENCES]
    with torch.inference_mode():
        wanted = torch.cat(encoder.word_vectors(surfaces))
        found = torch.cat(Encoder(merged, mini.tokenizer, mini.max_pieces).word_vectors(surfaces))
        plain = torch.cat(mini.word_vectors(surfaces))
    assert (found - wanted).abs().max() < 1e-2
    # The adapter is no small change, so that agreement says something.
    assert (plain - wanted).abs().max() > 0.1


@pytest.mark.parametrize(("rank", "weights"), [(2, "adapter.safetensors"), (0, "encoder.safetensors")])
def test_a_training_run_publishes_a_tagger_that_loads(
    corpus: Path, tmp_path: Path, rank: int, weights: str
) -> None:
    base = tiny.bert(tmp_path / "base")
    ner.main(data=corpus, output=tmp_path, base=base, epochs=2, rank=rank, batch=4, repair=False)
    (path,) = (tmp_path / "ner").iterdir()
    release = open_release(path)
    manifest = release.manifest
    assert sorted(manifest.files) == sorted([weights, "drugs.tsv", "head.safetensors"])
    assert manifest.configuration["labels"] == list(LABELS)
    assert {(s.data, s.records) for s in manifest.scores} == {
        ("PsyTAR test", 4),
        ("ADE corpus fold 1 test", 4),
    }
    assert {v.dtype for v in load_file(release.file("head.safetensors")).values()} == {torch.float16}
    loaded = load(release, dtype="float32")
    assert loaded.model.gaps_repaired is False  # type: ignore[attr-defined]
    (mentions,) = loaded.model.predict(["Zoloft caused rash"])
    assert ("Zoloft", DRUG, "sertraline") in [(m.text, m.label, m.generic) for m in mentions]


@pytest.mark.parametrize(
    ("corpora", "split", "named"),
    [
        ("ade", "ade_fold_1", ("ADE corpus fold 1 test", "fold 1 training part")),
        ("ade", "ade_group_3", ("ADE corpus group 3 test", "group 3 training part")),
        ("psytar", "ade_fold_1", ("PsyTAR test", "PsyTAR")),
    ],
)
def test_a_run_on_one_corpus_is_scored_on_that_one(
    corpus: Path, tmp_path: Path, corpora: ner.Corpora, split: str, named: tuple[str, str]
) -> None:
    base = tiny.bert(tmp_path / "base")
    ner.main(data=corpus, output=tmp_path, base=base, epochs=2, rank=2, batch=4, corpora=corpora, split=split)
    (path,) = (tmp_path / "ner").iterdir()
    manifest = open_release(path).manifest
    data, source = named
    assert {s.data for s in manifest.scores} == {data}
    (trained,) = manifest.training_data
    assert source in trained.name


def test_a_part_without_shared_abstracts_is_trained_on_the_others(corpus: Path, tmp_path: Path) -> None:
    part = ner.read(corpus, Settings(corpora="ade", split="ade_group_3"))["clinical"]
    abstracts = read_ade_abstracts(corpus / "ade")
    _, test = split_texts(corpus / "ade", "ade_group_3")
    learnt = {abstracts[t.id] for t in part.train + part.valid}
    assert len(learnt) == 9
    assert not learnt & {abstracts[t.id] for t in test}
    with pytest.raises(typer.BadParameter, match="no split 'ade_group_11'"):
        ner.main(data=corpus, output=tmp_path, split="ade_group_11")


def test_a_training_run_leaves_the_shared_weights_alone(corpus: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    before = {n: t.clone() for n, t in Encoder.load(base).model.state_dict().items()}
    ner.main(data=corpus, output=tmp_path, base=base, epochs=2, rank=0, batch=4)
    after = Encoder.load(base).model.state_dict()
    assert all(torch.equal(t, after[n]) for n, t in before.items())


def test_whole_layers_are_trained_and_stored_as_an_adapter(tmp_path: Path) -> None:
    made = run(tiny.bert(tmp_path / "base"), epochs=3, rank=0, factor=2, lr=5e-3)
    epochs = list(made.fit(lambda _: {"x": float(len(made.best))}))
    assert len(epochs) == 3
    pairs = made.best[ADAPTER]
    assert {t.shape[0 if n.endswith("lora_a") else 1] for n, t in pairs.items()} == {2}
    base = Encoder.load(made.settings.base).model.state_dict()
    trained, stored = made.encoder.model, copy.deepcopy(Encoder.load(made.settings.base).model)
    merge_adapter(stored, pairs)
    name = "encoder.layer.0.output.dense.weight"
    whole = trained.state_dict()[name] - base[name]
    left = trained.state_dict()[name] - stored.state_dict()[name]
    assert whole.norm() > 0
    assert left.norm() < whole.norm()
    biases = [n for n in base if n.endswith("bias") and "pooler" not in n]
    assert all(torch.equal(trained.state_dict()[n], base[n]) for n in biases)


def test_a_run_can_end_before_the_encoder_has_moved(tmp_path: Path) -> None:
    made = run(tiny.bert(tmp_path / "base"), epochs=2, rank=0, factor=2)
    scores = iter([1.0, 0.5])
    assert [e.kept for e in made.fit(lambda _: {"x": next(scores)})] == [True, False]
    assert set(made.best) == {"head.safetensors"}


def test_a_large_backbones_class_trains_a_step(tmp_path: Path) -> None:
    made = run(tiny.roberta(tmp_path / "base"), epochs=1, phases=1)
    (epoch,) = made.fit(constant)
    assert epoch.loss > 0
