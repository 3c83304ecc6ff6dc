"""Training idiom-aware vectors: the reader, triplets counted by hand, the scorer, a run that is killed, and
the release that comes out.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from models.encoder.added_tokens import ExtendedEmbedding
from models.encoder.model import Encoder
from models.idiom.model import LAST, LAST_TWO, TOKENS, IdiomModel, Marker
from models.releases.loading import load
from models.releases.store import open_release
from models.scores import spearman
from tests.models import tiny
from training.common.checkpoint import Checkpoint, CheckpointError
from training.evaluation.evaluate import compare, evaluate
from training.evaluation.idiom import PRIMARY, STS, Pair, halves, pair_counts, read_pairs, scores
from training.idiom import run as idiom
from training.idiom.data import (
    Group,
    at_most,
    batches,
    meanings,
    read_groups,
    rows,
    split_groups,
    validation_pairs,
)
from training.idiom.trainer import Settings, Trainer, Triplets, mean_rows, moved, train, vectors

EXPRESSIONS = ("home run", "big fish", "dead heat", "night owl")


def write(path: Path, fields: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([fields, *lines])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four expressions with three sentences each to train on; one of them, in one sentence, is one-shot."""
    folder = tmp_path_factory.mktemp("corpora")
    idioms = folder / "idioms"
    idioms.mkdir()
    lines: list[tuple[str, ...]] = []
    for expression in EXPRESSIONS:
        name = "train_one_shot" if expression == "night owl" else "train_zero_shot"
        for place in ("the pub", "a shop", "his club")[: 1 if expression == "night owl" else 3]:
            s, c, i = (f"the {x} of {place}" for x in (expression, expression[::-1], f"{expression} pain"))
            lines += [
                (f"{name}.en.{len(lines)}", expression, "EN", s, c, "1", "", ""),
                (f"{name}.en.{len(lines)}", expression, "EN", s, i, "None", c, i),
            ]
    lines.append(("train_zero_shot.pt.1", "olho", "PT", "um olho", "uma vista", "1", "", ""))
    names = ["ID", "MWE1", "Language", "sentence_1", "sentence_2", "sim", "alternative_1", "alternative_2"]
    write(idioms / "semeval22_train.csv", names, lines)
    dev = [
        ("1", "EN", "night owl", "a night owl", "a late person"),
        ("2", "EN", "night owl", "a night owl", "a dark bird"),
        ("3", "EN", "None", "a late person", "a dark bird"),
        ("4", "EN", "None", "drug", "the drug"),
        ("5", "EN", "None", "drug", "a shop"),
        ("6", "EN", "None", "pain", "a dark shop"),
        ("7", "PT", "olho", "um olho", "uma vista"),
    ]
    write(idioms / "semeval22_dev.csv", ["ID", "Language", "MWE1", "sentence1", "sentence2"], dev)
    gold = [
        *(("1", "EN", "1", ""), ("2", "EN", "", "3"), ("4", "EN", "0.9", ""), ("5", "EN", "0.3", "")),
        *(("6", "EN", "0.1", ""), ("7", "PT", "1", "")),
    ]
    write(idioms / "semeval22_dev_gold.csv", ["ID", "Language", "sim", "otherID"], gold)
    return folder


def settings(base: str, **changes: Any) -> Settings:
    fields: dict[str, Any] = dict(
        base=base,
        language="EN",
        pooling=LAST_TWO,
        mark=True,
        paraphrase=True,
        epochs=2,
        rank=2,
        layers=0,
        lr=1e-2,
        token_lr=1e-2,
        batch=4,
        triplet=1.0,
        keep=1.0,
        sentences=0,
        held_out=0.3,
        lose=2.0,
        seed=1,
        precision="float32",
    )
    return Settings(**(fields | changes))


def trainer(data: Path, **changes: Any) -> Trainer:
    sts, _ = halves(read_pairs(data / "idioms", "EN"))
    return Trainer(settings(**changes), read_groups(data / "idioms/semeval22_train.csv"), sts)


def test_rows_of_one_sentence_are_one_group(data: Path) -> None:
    groups = read_groups(data / "idioms/semeval22_train.csv")
    assert len(groups) == 10
    assert groups[0] == Group(
        *("home run", "the home run of the pub", False),
        ["the nur emoh of the pub"],
        ["the home run pain of the pub"],
    )
    assert [g.expression for g in groups if g.one_shot] == ["night owl"]
    (portuguese,) = read_groups(data / "idioms/semeval22_train.csv", "PT")
    assert (portuguese.right, portuguese.wrong) == (["uma vista"], [])


def test_a_held_out_expression_leaves_one_sentence_in_training(data: Path) -> None:
    groups = read_groups(data / "idioms/semeval22_train.csv")
    training, held_out = split_groups(groups, 0.34, seed=1)
    (expression,) = {g.expression for g in held_out}
    assert expression != "night owl"
    assert (len(training), len(held_out)) == (8, 2)
    assert sum(g.expression == expression for g in training) == 1
    assert split_groups(groups, 0.34, seed=1) == (training, held_out)
    assert split_groups(groups, 0.0, seed=1) == (groups, [])


def test_of_many_sentences_the_shortest_with_a_wrong_paraphrase_are_kept_in_their_order() -> None:
    groups = [
        Group("a", s, False, ["c"], ["i"] if s[0] == "i" else []) for s in ("iii", "x", "i", "ii", "xx")
    ]
    assert [g.sentence for g in at_most(groups, 2)] == ["i", "ii"]
    assert [g.sentence for g in at_most(groups, 4)] == ["iii", "x", "i", "ii"]
    assert at_most(groups, 0) == groups


def test_a_sentence_shares_its_label_with_right_paraphrases_only() -> None:
    groups = [Group("big fish", "a big fish", False, ["c"], ["i", "j"]), Group("b", "b", False, ["d"], [])]
    made = rows(groups, Marker(["big fish"]))
    assert [r.text for r in made] == ["a IDbigfishID", "c", "i", "j", "b", "d"]
    assert [r.label for r in made] == [0, 0, 1, 2, 3, 3]
    assert [r.group for r in made] == [0, 0, 0, 0, 1, 1]
    assert [r.text for r in made if r.idiom] == ["a IDbigfishID", "b"]


@pytest.mark.parametrize(
    ("sentence", "right", "wanted"),
    [
        ("a big fish swims", "a boss swims", ["boss"]),
        ("Big fish!", "Important people!", ["Important people"]),
        ("big fish, big fishes", "boss, boss", ["boss"]),
        ("big fish, big fish", "boss, chief", []),
        ("a big fish swims", "one boss swims", []),
        ("a big fish swims", "a swims", []),
        ("no fish swims", "no fish swims", []),
    ],
)
def test_an_expression_means_what_stands_in_its_place(sentence: str, right: str, wanted: list[str]) -> None:
    groups = [Group("big fish", sentence, False, [right], []), Group("unmarked", "x", False, ["y"], [])]
    assert meanings(groups, Marker(["big fish"])) == {"big fish": wanted}


def test_a_token_begins_as_the_mean_of_what_its_expression_means(data: Path, tiny_bert: str) -> None:
    for paraphrase, words in ((True, ["nur emoh"]), (False, ["home run"])):
        made = trainer(data, base=tiny_bert, paraphrase=paraphrase, pooling=LAST)
        extended = made.encoder.model.get_input_embeddings()
        number = made.marker.expressions.index("home run")
        pieces = made.encoder.tokenizer(words, add_special_tokens=False)["input_ids"]
        wanted = torch.stack([extended.weight[p].mean(0) for p in pieces]).mean(0)
        assert torch.allclose(extended.rows[number], wanted, atol=1e-6)
    assert torch.allclose(
        mean_rows(Encoder.load(tiny_bert), [["pain", "drug"]])[0],
        Encoder.load(tiny_bert).model.get_input_embeddings().weight[[5, 6]].mean(0),
    )


def test_batches_keep_the_order_of_the_file() -> None:
    made = rows([Group("x", str(n), False, ["c"], []) for n in range(5)], Marker([]))
    parts = list(batches(made, 4))
    assert [len(p) for p in parts] == [4, 4, 2]
    assert [r for p in parts for r in p] == made


def unit(degrees: float) -> list[float]:
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def test_the_loss_is_that_of_triplets_counted_by_hand() -> None:
    # Cosines: S-c 0.8660 (30 degrees), S-i 0.9397 (20), c-i 0.9848 (10), S-o 0 (90), c-o 0.5 (60).
    batch = 3 * torch.tensor([unit(0), unit(30), unit(20), unit(90)])
    labels = torch.tensor([0, 0, 1, 2])
    triplets = Triplets()
    anchor, positive, negative = triplets.miner(batch, labels)
    found = set(zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True))
    # 0.8660 - 0 is above 0.4; 0.8660 - 0.5 = 0.366 is mined, but above the margin 0.3: its term is zero.
    assert found == {(0, 1, 2), (1, 0, 2), (1, 0, 3)}
    cos = {d: math.cos(math.radians(d)) for d in (10, 20, 30)}
    wanted = ((cos[20] - cos[30] + 0.3) + (cos[10] - cos[30] + 0.3)) / 2
    assert triplets(batch, labels).item() == pytest.approx(wanted, abs=1e-6)


def test_a_batch_without_a_triplet_costs_nothing() -> None:
    batch = torch.tensor([unit(0), unit(0), unit(90)], requires_grad=True)
    loss = Triplets()(batch, torch.tensor([0, 0, 1]))
    assert loss.item() == 0
    loss.backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("pooling", [LAST, LAST_TWO])
def test_training_pools_as_the_release_does(data: Path, tiny_bert: str, pooling: str) -> None:
    made = trainer(data, base=tiny_bert, pooling=pooling)
    texts = ["the pain", "a IDhomerunID", "x" * 50, "pain"]
    with torch.inference_mode():
        found = torch.nn.functional.normalize(vectors(made.encoder, texts), dim=-1)
    assert torch.allclose(found, made.encoder.embed(texts), atol=1e-5)


def test_only_the_last_layers_and_the_tokens_are_trained_where_it_is_asked(
    data: Path, tiny_bert: str
) -> None:
    for rank in (2, 0):
        made = trainer(data, base=tiny_bert, layers=1, rank=rank, mark=True)
        names = [n for n, p in made.encoder.model.named_parameters() if p.requires_grad]
        assert any(".layer.1." in n for n in names)
        assert [n for n in names if ".layer.1." not in n] == [
            n for n in names if n.endswith("word_embeddings.rows")
        ]


class Chosen:
    """Vectors given by hand."""

    def __init__(self, degrees: dict[str, float]) -> None:
        self.degrees = degrees

    def predict(self, texts: Sequence[str]) -> list[list[float]]:
        return [unit(self.degrees[t]) for t in texts]

    def untrained(self) -> Chosen:
        return Chosen({t: 10.0 * i for i, t in enumerate(self.degrees)})


DEGREES = {
    **{"a night owl": 0.0, "a late person": 10.0, "a dark bird": 50.0, "drug": 0.0, "the drug": 30.0},
    **{"a shop": 90.0, "pain": 20.0, "a dark shop": 100.0, "um olho": 0.0, "uma vista": 1.0},
}


def test_where_gold_is_empty_it_is_the_systems_own_similarity(data: Path) -> None:
    pairs = read_pairs(data / "idioms", "EN")
    assert pairs[1] == Pair("a night owl", "a dark bird", None, ("a late person", "a dark bird"), True)
    found = pair_counts(Chosen(DEGREES), pairs)
    cos = {d: math.cos(math.radians(d)) for d in (10, 30, 40, 50, 80, 90)}
    wanted = [
        *((cos[10], 1.0, 1), (cos[50], cos[40], 1)),
        *((cos[30], 0.9, 0), (cos[90], 0.3, 0), (cos[80], 0.1, 0)),
    ]
    assert found == pytest.approx(np.array(wanted), abs=1e-9)


def test_the_scores_are_rank_correlations_counted_by_hand(data: Path) -> None:
    found = evaluate("idiom", Chosen(DEGREES), "v1", data)
    # Ranks, found: 5 3 4 1 2; gold (1, 0.766, 0.9, 0.3, 0.1): 5 3 4 2 1; 1 - 6 * 2 / 120.
    assert found.scores == pytest.approx({PRIMARY: 1.0, STS: 0.5, "spearman_all": 0.9})
    assert found.records == 5
    assert {name: found.part(name).records for name in found.scores} == {
        PRIMARY: 2,
        STS: 3,
        "spearman_all": 5,
    }
    assert found.baselines[STS] == pytest.approx(
        scores(
            found.counts * 0 + pair_counts(Chosen(DEGREES).untrained(), read_pairs(data / "idioms", "EN"))
        )[STS]
    )
    for name, (low, high) in found.intervals.items():
        assert -1 <= low <= found.scores[name] <= high <= 1
    equal = compare(found, found)
    assert (equal.score, equal.difference, equal.low, equal.high) == (PRIMARY, 0, 0, 0)


def test_held_out_is_without_the_sts_pairs_that_training_sees(data: Path) -> None:
    whole = evaluate("idiom", Chosen(DEGREES), "v1", data)
    held = evaluate("idiom", Chosen(DEGREES), "v1", data, "dev_en_heldout")
    assert (whole.records, held.records, held.part(STS).records) == (5, 3, 1)
    assert held.scores[PRIMARY] == whole.scores[PRIMARY]
    assert evaluate("idiom", Chosen(DEGREES), "v1", data, "dev_pt").records == 1


def test_equal_values_share_their_ranks_and_a_constant_has_no_correlation() -> None:
    measure = spearman("s", "", (0, 1))
    # Ranks less their mean -1 -1 0.5 1.5 and -1.5 0 0 1.5: 3.75 / sqrt(4.5 * 4.5).
    counts = np.array([[1.0, 1], [1, 2], [2, 2], [3, 9]])
    assert measure.of(counts) == pytest.approx(3.75 / 4.5)
    assert measure.of(np.ones((3, 2))) == 0
    assert measure.of(counts[:0]) == 0


def test_a_draw_takes_a_record_as_often_as_it_says() -> None:
    measure = spearman("s", "", (0, 1))
    counts = np.random.default_rng(0).normal(size=(5, 2))
    weights = np.array([[1.0, 1, 1, 1, 1], [3, 0, 1, 1, 0]])
    drawn = measure.of_draws(counts, weights)
    assert drawn[0] == pytest.approx(measure.of(counts))
    assert drawn[1] == pytest.approx(measure.of(counts[[0, 0, 0, 2, 3]]))


def test_validation_asks_what_the_task_asks() -> None:
    (right, wrong) = validation_pairs([Group("a", "s", False, ["c"], ["i"])])
    assert right == Pair("s", "c", 1.0, None, True)
    assert wrong == Pair("s", "i", None, ("c", "i"), True)


@pytest.mark.parametrize("rank", [2, 0])
def test_a_run_that_is_killed_after_an_epoch_ends_with_the_same_weights(
    data: Path, tiny_bert: str, tmp_path: Path, rank: int
) -> None:
    changes: dict[str, Any] = {"base": tiny_bert, "rank": rank}
    whole = trainer(data, **changes)
    kept = train(whole, Checkpoint(None, {}))

    first = trainer(data, **changes)
    ended = first.epoch

    def killed() -> float:
        if first.schedule.last_epoch:
            raise KeyboardInterrupt
        return ended()

    first.epoch = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        train(first, Checkpoint(tmp_path, {"run": 1}))
    torch.manual_seed(999)
    second = trainer(data, **changes)
    resumed = train(second, Checkpoint(tmp_path, {"run": 1}))
    assert kept is not None
    assert resumed is not None
    assert second.state()["weights"].keys() == whole.state()["weights"].keys()
    for name, tensor in whole.state()["weights"].items():
        assert torch.equal(second.state()["weights"][name], tensor), name
    assert all(torch.equal(resumed[name], tensor) for name, tensor in kept.items())
    with pytest.raises(CheckpointError):
        train(second, Checkpoint(tmp_path, {"run": 2}))


def test_the_best_epoch_is_kept_among_those_that_lose_little(
    data: Path, tiny_bert: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = trainer(data, base=tiny_bert, epochs=3, lose=0.05)
    rows = iter([(0.1, 0.8), (0.6, 0.74), (0.3, 0.76), (0.2, 0.9)])
    seen = []

    def validate() -> dict[str, float]:
        seen.append(made.state()["weights"])
        one, two = next(rows)
        return {PRIMARY: one, STS: two}

    made.validate = validate  # type: ignore[method-assign]
    kept = train(made, Checkpoint(None, {}))
    assert kept is not None
    assert all(torch.equal(tensor, seen[2][name]) for name, tensor in kept.items())
    printed = capsys.readouterr().out
    assert printed.count("kept") == 1
    assert printed.count("loses too much STS") == 1


@pytest.mark.parametrize("how", [("bert", 2, True), ("bert", 0, True), ("roberta", 2, False)])
def test_a_run_publishes_what_it_trained(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, int, bool]
) -> None:
    make, rank, mark = how
    validations = iter(range(3))
    monkeypatch.setattr(Trainer, "validate", lambda self: {PRIMARY: 0.1 * next(validations), STS: 0.5})
    base = getattr(tiny, make)(tmp_path / "base")
    idiom.main(
        data,
        tmp_path,
        base=base,
        run=tmp_path / "run",
        pooling=LAST_TWO,
        mark=mark,
        epochs=2,
        rank=rank,
        lr=1e-2,
        held_out=0.3,
        lose=2.0,
        batch=4,
    )
    (path,) = (tmp_path / "idiom").iterdir()
    release = open_release(path)
    weights = "adapter.safetensors" if rank else "encoder.safetensors"
    assert sorted(release.manifest.files) == sorted([weights, *([TOKENS] if mark else [])])
    assert release.manifest.configuration["pooling"] == LAST_TWO
    assert release.manifest.configuration["expressions"] == (sorted(EXPRESSIONS) if mark else [])
    assert [s.name for s in release.manifest.scores] == 2 * [PRIMARY, STS, "spearman_all"]
    assert len(release.manifest.canary.outputs) == len(idiom.CANARY) - 1
    model = load(release, dtype="float32").model
    assert isinstance(model, IdiomModel)
    assert isinstance(model.encoder.model.model.get_input_embeddings(), ExtendedEmbedding) is mark


def test_nothing_is_published_where_every_epoch_loses_too_much_or_wins_nothing(
    data: Path, tmp_path: Path
) -> None:
    with pytest.raises(typer.Exit):
        idiom.main(data, tmp_path, base=tiny.bert(tmp_path / "base"), epochs=1, rank=2, mark=False, lose=-3.0)
    assert not (tmp_path / "idiom").exists()


def test_cosines_of_texts_of_different_groups_are_to_stay(data: Path, tiny_bert: str) -> None:
    wanted = torch.tensor([unit(0), unit(20), unit(90)])
    found = 2 * torch.tensor([unit(0), unit(50), unit(90)])
    groups = torch.tensor([0, 0, 1])
    # Of the pairs of different groups one has moved, from 70 to 40 degrees.
    wanted_loss = (math.cos(math.radians(40)) - math.cos(math.radians(70))) ** 2 / 2
    assert moved(found, wanted, groups).item() == pytest.approx(wanted_loss, abs=1e-6)
    assert moved(found, wanted, torch.zeros(3)).item() == 0
    made = trainer(data, base=tiny_bert, triplet=0.0, keep=1.0)
    assert made.loss(made.data).item() == pytest.approx(0, abs=1e-6)
