"""Prototypes of long forms, and the mixture with the network that is chosen on validation rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.acronym.cues import CueWords
from models.acronym.m_network import Head, HeadConfig, MNetwork
from models.acronym.prototypes import Mixture, PrototypeEntry, Prototypes
from models.encoder.model import Encoder
from models.types import Span
from training.acronym.prototypes import (
    EncodedRows,
    Estimates,
    RowScores,
    Usage,
    best_long_forms,
    best_mixture,
    build_prototypes,
    encode_rows,
    folds,
    scored_by,
)
from training.acronym.usage_examples import CachedOutputs, with_dictionary_spellings
from training.common.checkpoint import CheckpointError
from training.evaluation.acronym import Row


@pytest.fixture
def network(tiny_bert: str) -> MNetwork:
    encoder = Encoder.load(tiny_bert, max_pieces=64)
    return MNetwork(encoder, Head(encoder.dimension, HeadConfig()))


def test_prototypes_are_means_of_unit_vectors_and_priors_count_only_the_given_rows(network: MNetwork) -> None:
    rows = [Row("a PD", Span(2, 4), ("x", "y"), "x"), Row("the PD hurt", Span(4, 6), ("x", "y"), "x")]
    encoded = encode_rows(network, "s", rows)
    prototypes = build_prototypes([encoded], Mixture(), Usage({"s": rows[:1]}))
    (use,) = prototypes.entries
    assert use == PrototypeEntry("PD", "x", "s", 1)
    mean = torch.nn.functional.normalize(encoded.near, dim=-1).mean(0)
    assert torch.allclose(prototypes.vectors[0], torch.nn.functional.normalize(mean, dim=-1), atol=1e-6)


def test_outputs_of_a_network_are_kept_in_the_run_folder(network: MNetwork, tmp_path: Path) -> None:
    rows = [Row("a PD", Span(2, 4), ("x", "y"), "x")]
    first = CachedOutputs(network, tmp_path, {"seed": 0})("casi", "casi", rows)
    network.encoder.model = None
    again = CachedOutputs(network, tmp_path, {"seed": 0})("casi", "casi", rows)
    assert again.logits == first.logits
    assert torch.equal(again.near, first.near)
    with pytest.raises(CheckpointError, match="other settings"):
        CachedOutputs(network, tmp_path, {"seed": 1})("casi", "casi", rows)
    # The same sentence, as another dictionary reads it.
    with pytest.raises(CheckpointError, match="other settings"):
        CachedOutputs(network, tmp_path, {"seed": 0})("casi", "casi", [rows[0]._replace(senses=("x", "z"))])


def test_folds_hold_every_row_once_with_its_share_of_each_sense() -> None:
    rows = [Row(f"PD {i}", Span(0, 2), ("a", "b"), "a" if i < 10 else "b") for i in range(15)]
    parts = folds(rows, 0)
    assert sorted(i for part in parts for i in part) == list(range(15))
    assert all(sum(rows[i].gold == "a" for i in part) == 2 for part in parts)


def test_the_mixture_with_the_best_accuracy_is_chosen() -> None:
    row = Row("PD", Span(0, 2), ("a", "b"), "b")
    # The network is wrong, the prototypes are right; "a" has no prototype and would win at unseen=0.7.
    similarity, no = torch.tensor([float("nan"), 0.6]), torch.zeros(2, dtype=torch.bool)
    rows = [RowScores(row, torch.tensor([0.0, -9.0]), similarity, torch.zeros(2), torch.zeros(2), no)]
    assert best_long_forms(rows, Mixture(1, 0, 0)) == ["a"]
    assert best_long_forms(rows, Mixture(0, 10, 0, unseen=0.7)) == ["a"]
    assert best_long_forms(rows, best_mixture({"casi": rows})) == ["b"]


def test_cue_words_decide_where_they_are_right_on_validation() -> None:
    row = Row("PD", Span(0, 2), ("a", "b"), "b")
    zero, no = torch.zeros(2), torch.zeros(2, dtype=torch.bool)
    rows = [RowScores(row, torch.tensor([0.0, -1.0]), zero, zero, torch.tensor([0.0, 1.0]), no)]
    assert best_long_forms(rows, Mixture()) == ["a"]
    assert best_long_forms(rows, Mixture(cues=2)) == ["b"]
    assert best_mixture({"casi": rows}).network < best_mixture({"casi": rows}).cues


def test_scores_have_the_cues_in_the_text_of_the_row() -> None:
    row = Row("chest PD today", Span(6, 8), ("a", "b"), "b")
    asked = EncodedRows("s", [row], [[0.0, 0.0]], torch.ones(1, 4))
    usage = Usage({}, Estimates(cue_words=CueWords({("PD", "b"): ["chest"]})))
    (scored,) = scored_by([asked], asked, usage)
    assert scored.cues.tolist() == [0.0, 1.0]


def test_rows_of_senses_that_no_corpus_shows_count_less_in_the_choice_of_weights() -> None:
    def rows(gold: str, n: int) -> list[RowScores]:
        # Only written sentences show b; a raised cosine decides.
        row, written = Row("PD", Span(0, 2), ("a", "b"), gold), torch.tensor([False, True])
        return [
            RowScores(row, torch.zeros(2), torch.tensor([0.5, 0.4]), torch.zeros(2), torch.zeros(2), written)
        ] * n

    known, unseen = rows("a", 2) + rows("b", 1), rows("b", 3)
    chosen = best_mixture({"casi": known, "unseen": unseen})
    assert best_long_forms(known, chosen) == ["a"] * 3
    assert best_long_forms(known, best_mixture({"casi": known, "written": unseen})) == ["b"] * 3


def test_a_prototype_is_also_stored_under_the_dictionarys_spelling() -> None:
    prototypes = Prototypes([PrototypeEntry("IA", "intraarterial", "casi", 2)], torch.ones(1, 4), Mixture())
    extended = with_dictionary_spellings(prototypes, {"IA": ["intra-arterial", "intracranial aneurysm"]})
    assert [u.long_form for u in extended.entries] == ["intraarterial", "intra-arterial"]
    assert len(extended.vectors) == 2
