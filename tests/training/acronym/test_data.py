"""Acronyms to learn from: rows, rivals, long forms in texts; prototypes and their mixture with a network."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from models.acronym.m_network import Head, HeadConfig, MNetwork
from models.acronym.prototypes import Mixture, PrototypeEntry, Prototypes
from models.encoder.model import Encoder
from models.types import Span
from tests.training.acronym import corpus
from tests.training.acronym.corpus import DICTIONARY
from training.acronym.data import at_most, read_training, read_written, split_acronyms, with_rivals, written
from training.acronym.prototypes import Validated, best_mixture, chosen, folds, look, prototypes
from training.acronym.usage_examples import Looks, with_aliases
from training.common.checkpoint import CheckpointError
from training.evaluation.acronym import Row


def test_validation_has_other_acronyms_than_training(folder: Path) -> None:
    rows = read_training(folder, "sdu22_scientific")
    training, held_out = split_acronyms(rows, 0.4, 1)
    assert len(training) + len(held_out) == len(rows)
    assert not {r.short_form for r in training} & {r.short_form for r in held_out}
    assert len({r.short_form for r in held_out}) == 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.written(tmp_path_factory.mktemp("acronyms"))


@pytest.fixture(scope="module")
def base(tiny_bert: str) -> str:
    return tiny_bert


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


def test_prototypes_are_means_of_unit_vectors_and_count_only_what_is_counted(base: str) -> None:
    encoder = Encoder.load(base, max_pieces=64)
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    rows = [Row("a PD", Span(2, 4), ("x", "y"), "x"), Row("the PD hurt", Span(4, 6), ("x", "y"), "x")]
    known = look(network, "s", rows)
    made = prototypes([known], Mixture(), {"s": rows[:1]})
    (use,) = made.entries
    assert use == PrototypeEntry("PD", "x", "s", 1)
    mean = torch.nn.functional.normalize(known.near, dim=-1).mean(0)
    assert torch.allclose(made.vectors[0], torch.nn.functional.normalize(mean, dim=-1), atol=1e-6)


def test_what_a_network_said_is_kept_in_the_folder_of_the_run(base: str, tmp_path: Path) -> None:
    encoder = Encoder.load(base, max_pieces=64)
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    rows = [Row("a PD", Span(2, 4), ("x", "y"), "x")]
    first = Looks(network, tmp_path, {"seed": 0})("casi", "casi", rows)
    network.encoder.model = None
    again = Looks(network, tmp_path, {"seed": 0})("casi", "casi", rows)
    assert again.network == first.network
    assert torch.equal(again.near, first.near)
    with pytest.raises(CheckpointError, match="other settings"):
        Looks(network, tmp_path, {"seed": 1})("casi", "casi", rows)


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
    made = Prototypes([PrototypeEntry("IA", "intraarterial", "casi", 2)], torch.ones(1, 4), Mixture())
    found = with_aliases(made, {"IA": ["intra-arterial", "intracranial aneurysm"]})
    assert [u.long_form for u in found.entries] == ["intraarterial", "intra-arterial"]
    assert len(found.vectors) == 2
