"""The training data of idioms: groups, the split by expression, rows and meanings."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.idiom import Marker
from training.evaluation.idiom import Pair
from training.idiom.data import (
    Group,
    limit_sentences,
    meanings,
    read_groups,
    split_by_expression,
    training_rows,
    validation_pairs,
    written_groups,
)
from training.teaching.batches import Idiom, Use


def test_rows_of_one_sentence_are_one_group(semeval: Path) -> None:
    groups = read_groups(semeval / "idioms/semeval22_train.csv")
    assert len(groups) == 10
    assert groups[0] == Group(
        *("home run", "the home run of the pub", False),
        ["the nur emoh of the pub"],
        ["the home run pain of the pub"],
    )
    assert [g.expression for g in groups if g.one_shot] == ["night owl"]
    (portuguese,) = read_groups(semeval / "idioms/semeval22_train.csv", "PT")
    assert (portuguese.right, portuguese.wrong) == (["uma vista"], [])


def test_what_an_idiom_means_is_right_where_it_is_meant_and_wrong_where_its_words_are() -> None:
    figurative = ((Use("I got ", "cold feet", "."), "afraid"), (Use("", "Cold feet", "!"), "Fear"))
    idiom = Idiom("cold feet", "chilly toes", figurative, (Use("A rug for ", "cold feet", "."),))
    assert written_groups([idiom]) == [
        Group("cold feet", "I got cold feet.", False, ["I got afraid."], ["I got chilly toes."]),
        Group("cold feet", "Cold feet!", False, ["Fear!"], ["chilly toes!"]),
        Group("cold feet", "A rug for cold feet.", False, ["A rug for chilly toes."], ["A rug for afraid."]),
    ]


def test_one_sentence_of_a_held_out_expression_stays_in_training(semeval: Path) -> None:
    groups = read_groups(semeval / "idioms/semeval22_train.csv")
    training, held_out = split_by_expression(groups, 0.34, seed=1)
    (expression,) = {g.expression for g in held_out}
    assert expression != "night owl"
    assert (len(training), len(held_out)) == (8, 2)
    assert sum(g.expression == expression for g in training) == 1
    assert split_by_expression(groups, 0.34, seed=1) == (training, held_out)
    assert split_by_expression(groups, 0.0, seed=1) == (groups, [])


def test_rows_of_the_shortest_sentences_have_the_labels_and_pairs_of_the_task() -> None:
    groups = [
        Group("a", s, False, ["c"], ["i"] if s[0] == "i" else []) for s in ("iii", "x", "i", "ii", "xx")
    ]
    assert [g.sentence for g in limit_sentences(groups, 2)] == ["i", "ii"]
    assert [g.sentence for g in limit_sentences(groups, 4)] == ["iii", "x", "i", "ii"]
    assert limit_sentences(groups, 0) == groups
    labelled = [Group("big fish", "a big fish", False, ["c"], ["i", "j"]), Group("b", "b", False, ["d"], [])]
    rows = training_rows(labelled, Marker(["big fish"]))
    assert [r.text for r in rows] == ["a IDbigfishID", "c", "i", "j", "b", "d"]
    assert [r.label for r in rows] == [0, 0, 1, 2, 3, 3]
    assert [r.group for r in rows] == [0, 0, 0, 0, 1, 1]
    assert [r.text for r in rows if r.idiom] == ["a IDbigfishID", "b"]
    (right, wrong) = validation_pairs([Group("a", "s", False, ["c"], ["i"])])
    assert right == Pair("s", "c", 1.0, None, True)
    assert wrong == Pair("s", "i", None, ("c", "i"), True)


@pytest.mark.parametrize(
    ("sentence", "right", "expected"),
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
def test_the_meaning_of_an_idiom_is_what_replaces_it(sentence: str, right: str, expected: list[str]) -> None:
    groups = [Group("big fish", sentence, False, [right], []), Group("unmarked", "x", False, ["y"], [])]
    assert meanings(groups, Marker(["big fish"])) == {"big fish": expected}
