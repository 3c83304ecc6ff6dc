"""The training of m-networks: losses by hand, rows, frozen layers read once, whole runs on a tiny base."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.acronym import AcronymModel, Trained
from models.encoder import ADAPTER, WEIGHTS, Encoder
from models.loading import load
from models.m_network import Head, MNetwork, Shape
from models.prototypes import Mixture, Prototypes, Use
from models.release import Release
from models.store import open_release
from models.types import Span
from tests.models import tiny
from training import acronym
from training.acronym_data import (
    at_most,
    read_training,
    read_written,
    split_acronyms,
    with_rivals,
    written,
)
from training.acronym_prototypes import Validated, best_mixture, chosen, folds, look, prototypes
from training.acronym_training import CHUNK, Bank, Settings, Trainer, chunked, loss_of, train
from training.acronym_uses import Looks, with_aliases
from training.checkpoint import Checkpoint, CheckpointError
from training.evaluations.acronym import Row

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
DICTIONARY = {
    "PD": ["pain drug", "plain dose", "pilot day"],
    "TP": ["the pain", "top pick"],
    "DD": ["drug day", "dull dose"],
    "PT": ["pain the", "pick test"],
    "ONE": ["only this"],
}


def sdu_rows() -> list[dict[str, str]]:
    rows = []
    for short, forms in DICTIONARY.items():
        for i, form in enumerate(forms):
            rows += [
                {"sentence": f"case {n}: {short} near {form[0]}{i}", "acronym": short, "label": form}
                for n in range(3)
            ]
    return rows


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def folder(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that a run reads."""
    data = tmp_path_factory.mktemp("acronyms")
    (data / "acronyms").mkdir()
    (data / "ade").mkdir()
    for name in ("sdu22_scientific", "sdu22_legal"):
        for part in ("train", "dev"):
            (data / f"acronyms/{name}_{part}.json").write_text(json.dumps(sdu_rows()), encoding="utf-8")
        (data / f"acronyms/{name}_dictionary.json").write_text(json.dumps(DICTIONARY), encoding="utf-8")
    lines = ["acronym_,expansion,text"]
    for n in range(10):
        lines += [f"PD,pain drug,a pain with PD {n}", f"PD,UNSURED SENSE,what is PD {n}"]
        lines += [f"TP,thepain,more TP came {n}"]
    (data / "acronyms/casi_dev.csv").write_text("\n".join(lines), encoding="utf-8")
    (data / "ade/sentences.json").write_text("[]", encoding="utf-8")
    (data / "ade/DRUG-AE.rel").write_text("", encoding="utf-8")
    texts = [
        f"{n} NEG {text}."
        for n in range(20)
        for text in (
            f"A pain drug (PD) helped {n}",
            f"Day {n} had a plain dose",
            f"Dull dose (DD), {n} times",
        )
    ]
    (data / "ade/negatives.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return data


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


def test_validation_has_other_acronyms_than_training(folder: Path) -> None:
    rows = read_training(folder, "sdu22_scientific")
    training, held_out = split_acronyms(rows, 0.4, 1)
    assert len(training) + len(held_out) == len(rows)
    assert not {r.short_form for r in training} & {r.short_form for r in held_out}
    assert len({r.short_form for r in held_out}) == 2


def test_rivals_are_drawn_and_the_right_long_form_comes_first() -> None:
    row = Row("x PD", Span(2, 4), ("a", "b", "c", "d"), "c")
    drawn = with_rivals(row, 3, random.Random(0))
    assert drawn.senses[0] == "c"
    assert len(set(drawn.senses)) == 3
    assert set(with_rivals(row, 0, random.Random(0)).senses) == {"a", "b", "c", "d"}
    assert with_rivals(row, 9, random.Random(0)).senses == ("c", "a", "b", "d")


def test_rows_are_limited_by_long_form_and_in_all() -> None:
    rows = [Row(f"PD {i}", Span(0, 2), ("a", "b"), "a" if i < 6 else "b") for i in range(8)]
    assert sorted(r.gold for r in at_most(rows, 3, 0)) == ["a", "a", "a", "b", "b"]
    assert len(at_most(rows, 0, 0, 4)) == 4
    assert sorted(at_most(rows, 0, 0)) == sorted(rows)


def test_long_forms_in_texts_give_rows_and_definitions_lose_their_brackets() -> None:
    found = written(
        ["He took a pain-drug (PD) and a Plain dose.", "A pain drug (PAD) and only this (ONE)."], DICTIONARY
    )
    (defined,) = found.defined
    assert (defined.text, defined.gold) == ("He took a PD and a Plain dose.", "pain drug")
    assert defined.text[defined.span.start : defined.span.end] == "PD"
    # The second text abbreviates it in another way, and an acronym with one long form is no choice.
    (used,) = found.used
    assert (used.text, used.gold) == ("He took a pain-drug (PD) and a PD.", "plain dose")


def test_a_possessive_makes_no_other_long_form() -> None:
    dictionary = {"KS": ["Kaposi sarcoma", "Kallmann syndrome"], "CD": ["Crohn's disease", "celiac disease"]}
    found = written(["He had Kaposi's sarcoma (KS).", "Crohn disease, or Crohn 's disease."], dictionary)
    assert [r.text for r in found.defined] == ["He had KS."]
    assert [r.text for r in found.used] == ["CD, or Crohn 's disease.", "Crohn disease, or CD."]


def test_held_out_abstracts_share_no_text_with_the_others(folder: Path) -> None:
    one, other = (read_written(folder, DICTIONARY, held_out) for held_out in (False, True))
    assert len(one.defined) == 24
    assert len(other.defined) == 16
    assert not {r.text for r in one.used} & {r.text for r in other.used}


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
    after = network.reader.model.state_dict()
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


def test_prototypes_are_means_of_unit_vectors_and_count_only_what_is_counted(base: str) -> None:
    encoder = Encoder.load(base, max_pieces=64)
    network = MNetwork(encoder, Head(encoder.dimension, Shape()))
    rows = [Row("a PD", Span(2, 4), ("x", "y"), "x"), Row("the PD hurt", Span(4, 6), ("x", "y"), "x")]
    known = look(network, "s", rows)
    made = prototypes([known], Mixture(), {"s": rows[:1]})
    (use,) = made.uses
    assert use == Use("PD", "x", "s", 1)
    mean = torch.nn.functional.normalize(known.near, dim=-1).mean(0)
    assert torch.allclose(made.vectors[0], torch.nn.functional.normalize(mean, dim=-1), atol=1e-6)


def test_what_a_network_said_is_kept_in_the_folder_of_the_run(base: str, tmp_path: Path) -> None:
    encoder = Encoder.load(base, max_pieces=64)
    network = MNetwork(encoder, Head(encoder.dimension, Shape()))
    rows = [Row("a PD", Span(2, 4), ("x", "y"), "x")]
    first = Looks(network, tmp_path, {"seed": 0})("casi", "casi", rows)
    network.reader.model = None
    again = Looks(network, tmp_path, {"seed": 0})("casi", "casi", rows)
    assert again.network == first.network
    assert torch.equal(again.near, first.near)
    with pytest.raises(CheckpointError, match="other settings"):
        Looks(network, tmp_path, {"seed": 1})("casi", "casi", rows)


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


def test_folds_hold_every_row_once_with_its_share_of_each_sense() -> None:
    rows = [Row(f"PD {i}", Span(0, 2), ("a", "b"), "a" if i < 10 else "b") for i in range(15)]
    found = folds(rows, 0)
    assert sorted(i for part in found for i in part) == list(range(15))
    assert all(sum(rows[i].gold == "a" for i in part) == 2 for part in found)


def test_the_mixture_that_is_right_most_often_is_taken() -> None:
    row = Row("PD", Span(0, 2), ("a", "b"), "b")
    # The network is wrong, the prototypes are right; "a" has none and would win if unseen ones had 0.7.
    rows = [Validated(row, torch.tensor([0.0, -9.0]), torch.tensor([float("nan"), 0.6]), torch.zeros(2))]
    assert chosen(rows, Mixture(1, 0, 0)) == ["a"]
    assert chosen(rows, Mixture(0, 10, 0, unseen=0.7)) == ["a"]
    assert chosen(rows, best_mixture([rows])) == ["b"]


def test_a_prototype_stands_under_the_dictionarys_spelling_too() -> None:
    made = Prototypes([Use("IA", "intraarterial", "casi", 2)], torch.ones(1, 4), Mixture())
    found = with_aliases(made, {"IA": ["intra-arterial", "intracranial aneurysm"]})
    assert [u.long_form for u in found.uses] == ["intraarterial", "intra-arterial"]
    assert len(found.vectors) == 2


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
    assert isinstance(model.scorer, Trained)
    found, single = model.predict(["a pain with PD today; ONE and XYZ too", "ONE only"])
    assert [(e.short_form, e.source) for e in found] == [("PD", "dictionary"), ("ONE", "dictionary")]
    assert found[0].long_form in DICTIONARY["PD"]
    assert 1 / 3 <= found[0].score <= 1
    assert (found[1].long_form, found[1].score) == ("only this", 1.0)
    assert single[0].score == 1.0
    # UNSURED SENSE is a class of the comparison and nothing that is ever offered.
    assert all(use.long_form != "UNSURED SENSE" for use in uses_offered(model))


def uses_offered(model: AcronymModel) -> list[Use]:
    assert isinstance(model.scorer, Trained)
    assert model.scorer.uses is not None
    return [u for u in model.scorer.uses.uses if u.long_form in model.dictionary.get(u.short_form, ())]


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
