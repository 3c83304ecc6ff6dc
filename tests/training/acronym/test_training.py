"""The training of m-networks: losses by hand, frozen layers read once, whole runs on a tiny base."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.acronym.m_network import MNetwork
from models.acronym.model import AcronymModel
from models.acronym.prototypes import PrototypeEntry
from models.acronym.scorers import TrainedScorer
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS
from models.releases.loading import load
from models.releases.manifest import Release
from models.releases.store import open_release
from tests.models import tiny
from tests.training.acronym import corpus
from tests.training.acronym.corpus import DICTIONARY
from training.acronym import run as acronym
from training.acronym.data import read_training, split_acronyms, with_rivals
from training.acronym.frozen_states import CHUNK, Bank, chunked
from training.acronym.prototypes import look
from training.acronym.trainer import Settings, Trainer, loss_of, train
from training.common.checkpoint import Checkpoint
from training.evaluation.acronym import Row

INF = float("inf")
SETTINGS = Settings(
    base="",
    corpora=("sdu22_scientific",),
    objective="softmax",
    anchor="own",
    pooling="both",
    size=8,
    distance=True,
    fit=True,
    alone=True,
    surface=True,
    dropout=0.1,
    layers=1,
    rank=2,
    lr=1e-3,
    head_lr=1e-2,
    epochs=2,
    batch=4,
    rows=0,
    rivals=3,
    max_pieces=64,
    held_out=0.25,
    validate=0,
    seed=0,
    precision="float32",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.written(tmp_path_factory.mktemp("acronyms"))


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dictionary") / "dictionary.tsv"
    rows = [f"{short}\t{form}" for short, forms in DICTIONARY.items() for form in forms]
    path.write_text("\n".join(["short_form\tlong_form", *rows]) + "\n", encoding="utf-8")
    return path


def test_the_losses_are_those_of_the_paper_over_the_rivals_that_are_there() -> None:
    energies = torch.tensor([[1.0, 0.5, 3.0], [2.0, 2.2, INF]])
    # max(0, 1 - 0.5 + 0.4), max(0, 1 - 3 + 0.4), max(0, 2 - 2.2 + 0.4)
    assert loss_of(energies, "triplet", 0.4).item() == pytest.approx((0.9 + 0 + 0.2) / 3)
    # The nearest negative alone.
    assert loss_of(energies, "m", 0.4).item() == pytest.approx((0.9 + 0.2) / 2)
    shares = (
        torch.tensor([[-1.0, -0.5, -3.0]]).log_softmax(1)[0, 0],
        torch.tensor([-2.0, -2.2]).log_softmax(0)[0],
    )
    assert loss_of(energies, "softmax", 0.0).item() == pytest.approx(-sum(s.item() for s in shares) / 2)


@pytest.mark.parametrize("objective", ["triplet", "m", "softmax"])
def test_a_missing_rival_gets_no_gradient_and_breaks_none(objective: str) -> None:
    energies = torch.tensor([[1.0, 0.9, INF]], requires_grad=True)
    loss = loss_of(energies * 1.0, objective, 0.4)  # type: ignore[arg-type]
    loss.backward()  # type: ignore[no-untyped-call]
    assert energies.grad is not None
    assert energies.grad[0, 0] > 0 > energies.grad[0, 1]
    assert energies.grad[0, 2] == 0


def test_the_frozen_layers_and_what_is_above_them_are_the_whole_encoder(base: str, folder: Path) -> None:
    trainer = Trainer(replace(SETTINGS, base=base, epochs=0), *parts(folder))
    plain = MNetwork(Encoder.load(base, max_pieces=64), trainer.head)
    asked = [r for r in trainer.validation if len(r.senses) > 1]
    wanted = look(plain, "x", asked).network
    items = trainer.bank.items(asked)
    with torch.inference_mode():
        trainer.validate()
        energies = trainer.energies(items, [i.anchor for i in items])
    for row, found in zip(wanted, energies, strict=True):
        # The bank keeps 16 bits.
        assert row == pytest.approx((-found[: len(row)]).tolist(), abs=0.05)


def parts(folder: Path) -> tuple[list[Row], list[Row]]:
    return split_acronyms(read_training(folder, "sdu22_scientific"), 0.25, 0)


def test_a_text_is_read_once_by_the_frozen_layers(base: str, folder: Path) -> None:
    bank = Bank(Encoder.load(base, max_pieces=64), 1, SETTINGS.shape, "float32")
    rows = [with_rivals(r, 0, random.Random(0)) for r in parts(folder)[0][:4]]
    first = bank.items(rows)
    n = len(bank.states)
    assert bank.items(rows) == first
    assert len(bank.states) == n == len(set(bank.readings))
    assert bank.megabytes() > 0


@pytest.mark.parametrize("rank", [2, 0])
@pytest.mark.parametrize("layers", [1, 0])
def test_only_the_last_layers_and_the_head_are_trained(
    base: str, folder: Path, tmp_path: Path, rank: int, layers: int
) -> None:
    trainer = Trainer(replace(SETTINGS, base=base, rank=rank, layers=layers, epochs=1), *parts(folder))
    trainer.epoch(1)
    network = acronym.write_network(trainer, Encoder.load(base), tmp_path)
    assert (tmp_path / ADAPTER).exists() == bool(rank and layers)
    assert (tmp_path / WEIGHTS).exists() == bool(layers and not rank)
    before = Encoder.load(base).model.state_dict()
    after = network.encoder.model.state_dict()
    # A release keeps 16 bits, also of what was not trained.
    moved = {n for n in before if not torch.allclose(before[n], after[n], atol=1e-3)}
    assert bool(moved) == bool(layers)
    assert all(".layer.1." in name for name in moved)


def test_a_run_learns(base: str, folder: Path) -> None:
    trainer = Trainer(replace(SETTINGS, base=base, epochs=8, dropout=0.0), *parts(folder))
    losses = [trainer.epoch(n) for n in range(1, 9)]
    assert losses[-1] < 0.8 * losses[0]


def test_a_killed_run_goes_on_where_it_was(base: str, folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, base=base, epochs=3)

    class Killed(Exception):
        pass

    class Dies(Trainer):
        def epoch(self, number: int) -> float:
            if number == 3:
                raise Killed
            return super().epoch(number)

    with pytest.raises(Killed):
        train(Dies(settings, *parts(folder)), Checkpoint(tmp_path, {"a": 1}))
    again = Trainer(settings, *parts(folder))
    train(again, Checkpoint(tmp_path, {"a": 1}))
    straight = Trainer(settings, *parts(folder))
    train(straight, Checkpoint(None, {}))
    for name, tensor in straight.head.state_dict().items():
        assert torch.allclose(tensor, again.head.state_dict()[name], atol=1e-5)


def test_rows_of_an_acronym_follow_each_other_and_each_comes_once(base: str, folder: Path) -> None:
    trainer = Trainer(replace(SETTINGS, base=base), *parts(folder))
    order = trainer._order(random.Random(0))
    assert sorted(order) == list(range(len(trainer.items)))
    names = [trainer.items[i].acronym for i in order]
    changes = sum(a != b for a, b in itertools.pairwise(names))
    assert changes < len(names) / 2


def test_texts_of_like_length_share_a_pass_that_is_not_too_large() -> None:
    lengths = [1500, 3, 8, 1600, 9, 5000]
    found = chunked(lengths)
    assert sorted(i for part in found for i in part) == list(range(6))
    for part in found:
        assert len(part) == 1 or len(part) * -(-max(lengths[i] for i in part) // 8) * 8 <= CHUNK
    assert [1, 2, 4] in found


def only_release(root: Path) -> Release:
    (path,) = (root / "acronym").iterdir()
    return open_release(path)


def test_a_whole_run_writes_a_release_that_answers_and_is_scored(
    base: str, folder: Path, dictionary: Path, tmp_path: Path
) -> None:
    acronym.main(
        data=folder,
        dictionary=dictionary,
        output=tmp_path / "out",
        base=base,
        run=tmp_path / "run",
        layers=1,
        epochs=1,
        batch=8,
        max_pieces=64,
        held_out=0.25,
        precision="float32",
    )
    release = only_release(tmp_path / "out")
    files = {"dictionary.tsv", "head.safetensors", "prototypes.tsv", "prototypes.safetensors", ADAPTER}
    assert set(release.manifest.files) == files
    assert {s.name for s in release.manifest.scores} == {
        "accuracy",
        "macro_f1",
        "authors_f1",
        "accuracy_defined",
    }
    names = " ".join(source.name for source in release.manifest.training_data)
    assert all(name in names for name in ("SDU@AAAI-22", "CASI", "ADE"))
    assert release.manifest.configuration["casi_rows"] == {"held_out": 0.3, "seed": 0}
    model = load(release, dtype="float32").model
    assert isinstance(model, AcronymModel)
    assert isinstance(model.scorer, TrainedScorer)
    found, single = model.predict(["a pain with PD today; ONE and XYZ too", "ONE only"])
    assert [(e.short_form, e.source) for e in found] == [("PD", "dictionary"), ("ONE", "dictionary")]
    assert found[0].long_form in DICTIONARY["PD"]
    assert 1 / 3 <= found[0].score <= 1
    assert (found[1].long_form, found[1].score) == ("only this", 1.0)
    assert single[0].score == 1.0
    # UNSURED SENSE is a class of the comparison and nothing that is ever offered.
    assert all(use.long_form != "UNSURED SENSE" for use in uses_offered(model))


def uses_offered(model: AcronymModel) -> list[PrototypeEntry]:
    assert isinstance(model.scorer, TrainedScorer)
    assert model.scorer.prototypes is not None
    return [
        u for u in model.scorer.prototypes.entries if u.long_form in model.dictionary.get(u.short_form, ())
    ]


def test_the_papers_network_has_no_prototypes_and_says_so(
    base: str, folder: Path, dictionary: Path, tmp_path: Path
) -> None:
    acronym.main(
        data=folder,
        dictionary=dictionary,
        output=tmp_path / "out",
        base=base,
        objective="m",
        anchor="other",
        pooling="mean",
        distance=True,
        fit=False,
        alone=False,
        surface=False,
        uses=False,
        dropout=0.5,
        layers=1,
        rank=0,
        epochs=1,
        max_pieces=64,
        held_out=0.25,
        precision="float32",
    )
    release = only_release(tmp_path / "out")
    assert set(release.manifest.files) == {"dictionary.tsv", "head.safetensors", WEIGHTS}
    assert "(m)" in release.manifest.kind
    assert [s.name for s in release.manifest.training_data] == [
        "SDU@AAAI-22 acronym disambiguation, scientific English, training part"
    ]
    ((found, *_),) = load(release, dtype="float32").model.predict(["a pain with PD today"])
    assert found.long_form in DICTIONARY["PD"]
