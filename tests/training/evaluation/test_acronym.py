"""What is measured of acronyms and of idioms, with scores by hand."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from models.types import Span
from tests.training.fakes import Chooser
from tests.training.idiom.corpus import unit
from training.common.long_forms import SENSES, casi_senses
from training.evaluation.acronym import (
    AT_COVERAGE,
    Row,
    casi_parts,
    choices,
    counts,
    locate,
    majority,
    read_casi,
    read_sdu,
    scores,
    split_casi,
)
from training.evaluation.evaluate import compare, evaluate
from training.evaluation.idiom import PRIMARY, STS, Pair, pair_counts, read_pairs
from training.evaluation.idiom import scores as idiom_scores
from training.evaluation.measures import spearman


@pytest.mark.parametrize(
    ("text", "short_form", "wanted"),
    [
        ("an MSG of MS", "MS", (10, 12)),
        ("an MSG", "MS", (3, 5)),
        ("P.C.P. pneumonia", "PCP", (0, 5)),
        ("M. S. was seen", "MS", (0, 4)),
        ("thermal reCI too", "CI", (10, 12)),
        ("nothing", "MS", None),
        ("the C&S grew", "C&S", (4, 7)),
    ],
)
def test_an_acronym_is_first_as_a_word(text: str, short_form: str, wanted: tuple[int, int] | None) -> None:
    assert locate(text, short_form) == (Span(*wanted) if wanted else None)


def casi(rows: Sequence[tuple[str, str]], path: Path) -> list[Row]:
    lines = [f"{short},{sense},see {short} number {i}" for i, (short, sense) in enumerate(rows)]
    path.write_text("\n".join(["acronym_,expansion,text", *lines]), encoding="utf-8")
    return read_casi(path)


def test_the_held_out_rows_of_casi_have_their_share_of_every_sense(tmp_path: Path) -> None:
    rows = casi([*[("MS", "a")] * 40, *[("MS", "b")] * 10, *[("RA", "c")] * 20], tmp_path / "c.csv")
    training, held = split_casi(rows)
    assert sorted([*training, *held]) == sorted(rows)
    counts = Counter(row.gold for row in held)
    assert counts["a"] in {11, 12, 13}
    assert counts["b"] in {2, 3, 4}
    assert counts["c"] in {5, 6, 7}


def test_the_senses_of_casi_are_called_as_in_the_dictionary(tmp_path: Path) -> None:
    (tmp_path / "acronyms").mkdir()
    senses = ["pulmonary embolus", "pleural effusion", "UNSURED SENSE"]
    rows = [("PE", senses[i % 3]) for i in range(30)] + [("IT", "GENERAL ENGLISH")] * 10
    read = casi(rows, tmp_path / "acronyms/casi_dev.csv")
    training, held = casi_parts(tmp_path / "acronyms")
    found = {(row.short_form, row.gold) for row in training + held}
    assert found == {
        ("PE", "pulmonary embolism"), ("PE", "pleural effusion"), ("PE", "UNSURED SENSE"), ("IT", "IT"),
    }  # fmt: skip
    assert all(row.gold in row.senses for row in training + held)
    # The rows are held out by their own senses, so that the parts stay as they were.
    assert [row.text for row in held] == [row.text for row in split_casi(read)[1]]


def test_the_table_of_casi_senses_names_other_long_forms_only() -> None:
    table = casi_senses()
    assert table["FISH", "GENERAL ENGLISH"] == "FISH"
    lines = SENSES.read_text(encoding="utf-8").splitlines()
    assert len(lines) - 1 == len(table) > 50
    # The gate of an installed package reads it too.
    settings = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "data/*.tsv" in settings["tool"]["setuptools"]["package-data"]["training"]


def test_the_split_of_casi_depends_on_the_seed_and_keeps_a_text_in_one_part(tmp_path: Path) -> None:
    rows = casi([("MS", "ab"[i % 2]) for i in range(50)], tmp_path / "c.csv")
    assert split_casi(rows) == split_casi(list(rows))
    assert set(split_casi(rows)[1]) != set(split_casi(rows, seed=1)[1])
    # In any order of the file the same rows are held out.
    assert set(split_casi(rows[::-1])[1]) == set(split_casi(rows)[1])
    places = [Row(f"{i // 2} MS", Span(2, 4), ("a", "b"), "ab"[i % 2]) for i in range(20)]
    training, held = split_casi([*places, *places])
    assert training and held
    assert not {(r.text, r.span) for r in training} & {(r.text, r.span) for r in held}


def test_every_row_of_the_shared_task_counts(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps({"DO": ["Direct Object", "Direct Objec"]}), "utf-8")
    rows = [
        {"sentence": f"the {form} here", "acronym": "DO", "label": "Direct Objec"} for form in ("DO", "DOt")
    ]
    (tmp_path / "r.json").write_text(json.dumps(rows), encoding="utf-8")
    assert [(r.short_form, r.span.start) for r in read_sdu(tmp_path / "r.json", tmp_path / "d.json")] == [
        ("DO", 4),
        ("DO", 4),
    ]


def rows_of(golds: str) -> list[Row]:
    return [Row(f"x {i} MS", Span(4, 6), tuple("abc"), gold) for i, gold in enumerate(golds)]


def test_the_scores_by_hand() -> None:
    # a: precision 1/2, recall 1/2; b: never chosen, so precision 1, recall 0; c is no gold sense.
    found = scores(rows_of("aab"), ["a", "c", "a"])
    precision, recall = (0.5 + 1) / 2, 0.5 / 2
    assert found["accuracy"] == pytest.approx(1 / 3)
    assert found["macro_f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert found["authors_f1"] == pytest.approx(0.5)
    assert scores(rows_of("ab"), ["a", "b"]) == {"accuracy": 1, "macro_f1": 1, "authors_f1": 1}
    assert scores(rows_of("ab"), ["b", "a"]) == {"accuracy": 0, "macro_f1": 0, "authors_f1": 0}


class Counting(Chooser):
    """Counts the questions that it is asked."""

    asked = 0

    def choose_many(self, rows: Sequence[tuple[str, Span, Sequence[str]]]) -> list[list[float]]:
        self.asked += len(rows)
        return super().choose_many(rows)


def test_casi_is_measured_on_held_out_rows_against_the_majority_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "acronyms").mkdir()
    rows = casi([*[("MS", "a")] * 16, *[("MS", "b")] * 4], tmp_path / "acronyms/casi_dev.csv")
    held = split_casi(rows)[1]
    share = sum(row.gold == "b" for row in held) / len(held)
    found = evaluate("acronym", Chooser("b"), "v1", tmp_path, "casi")
    assert found.records == len(held) < 20
    assert found.scores["accuracy"] == pytest.approx(share)
    assert found.baselines["accuracy"] == pytest.approx(1 - share)
    assert set(found.baselines) == {"accuracy", "macro_f1", "authors_f1"}
    assert set(found.scores) - set(found.baselines) == {"accuracy_at_90", "accuracy_at_80", "accuracy_at_60"}
    assert found.intervals["macro_f1"].low <= found.scores["macro_f1"] <= found.intervals["macro_f1"].high
    assert "training rows" in found.baseline_definitions["accuracy"]


def test_equal_rows_are_asked_once_and_coverage_and_majority_are_counted_by_hand() -> None:
    rows = [Row(f"MS {i}", Span(0, 2), ("a", "b"), "a") for i in range(10)]
    found = counts(rows, ["a"] * 5 + ["b"] * 5, [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.4, 0.3, 0.2, 0.1])
    values = {measure.name: measure.of(found) for measure in AT_COVERAGE}
    assert values == pytest.approx(
        {"accuracy_at_90": 5 / 9, "accuracy_at_80": 5 / 8, "accuracy_at_60": 5 / 6}
    )
    model = Counting("b")
    equal = rows_of("abc")
    assert choices(model, [*equal, *equal]) == ["b"] * 6
    assert model.asked == 3
    equal = [Row("M.S", Span(0, 3), ("a", "b"), "b"), *[Row("MS", Span(0, 2), ("a", "b"), g) for g in "ab"]]
    assert majority(equal) == {"MS": "b"}


def test_only_so_many_rows_as_wanted_are_measured(tmp_path: Path) -> None:
    (tmp_path / "acronyms").mkdir()
    casi([("MS", "ab"[i % 2]) for i in range(30)], tmp_path / "acronyms/casi_dev.csv")
    assert evaluate("acronym", Chooser("b"), "v1", tmp_path, "casi", limit=2).records == 2


class FixedVectors:
    """A model whose vectors are given as angles."""

    def __init__(self, degrees: dict[str, float]) -> None:
        self.degrees = degrees

    def predict(self, texts: Sequence[str]) -> list[list[float]]:
        return [unit(self.degrees[t]) for t in texts]

    def untrained(self) -> FixedVectors:
        return FixedVectors({t: 10.0 * i for i, t in enumerate(self.degrees)})


DEGREES = {
    **{"a night owl": 0.0, "a late person": 10.0, "a dark bird": 50.0, "drug": 0.0, "the drug": 30.0},
    **{"a shop": 90.0, "pain": 20.0, "a dark shop": 100.0, "um olho": 0.0, "uma vista": 1.0},
}


def test_an_empty_gold_similarity_is_replaced_by_the_models_own(semeval: Path) -> None:
    pairs = read_pairs(semeval / "idioms", "EN")
    assert pairs[1] == Pair("a night owl", "a dark bird", None, ("a late person", "a dark bird"), True)
    cos = {d: math.cos(math.radians(d)) for d in (10, 30, 40, 50, 80, 90)}
    expected = [
        *((cos[10], 1.0, 1), (cos[50], cos[40], 1)),
        *((cos[30], 0.9, 0), (cos[90], 0.3, 0), (cos[80], 0.1, 0)),
    ]
    counts = pair_counts(FixedVectors(DEGREES), pairs)
    assert counts == pytest.approx(np.array(expected), abs=1e-9)


def test_the_scores_are_the_rank_correlations_computed_by_hand(semeval: Path) -> None:
    result = evaluate("idiom", FixedVectors(DEGREES), "v1", semeval)
    # Ranks, predicted: 5 3 4 1 2; gold (1, 0.766, 0.9, 0.3, 0.1): 5 3 4 2 1; 1 - 6 * 2 / 120.
    assert result.scores == pytest.approx({PRIMARY: 1.0, STS: 0.5, "spearman_all": 0.9})
    assert result.records == 5
    records = {name: result.part(name).records for name in result.scores}
    assert records == {PRIMARY: 2, STS: 3, "spearman_all": 5}
    untrained = pair_counts(FixedVectors(DEGREES).untrained(), read_pairs(semeval / "idioms", "EN"))
    assert result.baselines[STS] == pytest.approx(idiom_scores(untrained)[STS])
    for name, (low, high) in result.intervals.items():
        assert -1 <= low <= result.scores[name] <= high <= 1
    equal = compare(result, result)
    assert (equal.score, equal.difference, equal.low, equal.high) == (PRIMARY, 0, 0, 0)


def test_the_held_out_split_lacks_the_sts_pairs_of_training(semeval: Path) -> None:
    whole = evaluate("idiom", FixedVectors(DEGREES), "v1", semeval)
    held = evaluate("idiom", FixedVectors(DEGREES), "v1", semeval, "dev_en_heldout")
    assert (whole.records, held.records, held.part(STS).records) == (5, 3, 1)
    assert held.scores[PRIMARY] == whole.scores[PRIMARY]
    assert evaluate("idiom", FixedVectors(DEGREES), "v1", semeval, "dev_pt").records == 1


def test_equal_values_share_their_ranks_and_a_sample_counts_by_weight() -> None:
    measure = spearman("s", "", (0, 1))
    # Ranks less their mean -1 -1 0.5 1.5 and -1.5 0 0 1.5: 3.75 / sqrt(4.5 * 4.5).
    counts = np.array([[1.0, 1], [1, 2], [2, 2], [3, 9]])
    assert measure.of(counts) == pytest.approx(3.75 / 4.5)
    assert measure.of(np.ones((3, 2))) == 0
    assert measure.of(counts[:0]) == 0
    measure = spearman("s", "", (0, 1))
    random = np.random.default_rng(0).normal(size=(5, 2))
    weights = np.array([[1.0, 1, 1, 1, 1], [3, 0, 1, 1, 0]])
    drawn = measure.of_draws(random, weights)
    assert drawn[0] == pytest.approx(measure.of(random))
    assert drawn[1] == pytest.approx(measure.of(random[[0, 0, 0, 2, 3]]))
