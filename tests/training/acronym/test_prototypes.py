"""Prototypes of long forms, and the mixture with the network that is chosen on validation rows."""

from __future__ import annotations

import pytest
import torch

from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.m_network import Head, HeadConfig, MNetwork
from models.acronym.prototypes import WRITTEN, Mixture, PrototypeEntry, Prototypes
from models.encoder.model import Encoder
from models.types import Span
from training.acronym.mixture import (
    RowScores,
    best_mixture,
    cross_validated,
    folds,
    scored_as_unseen,
    scored_by,
    sense_parts,
    stacked,
)
from training.acronym.prototypes import (
    EncodedRows,
    Estimates,
    build_prototypes,
    encode_rows,
    with_dictionary_spellings,
)
from training.common.corpora import CorpusError
from training.evaluation.acronym import Row


def row(gold: str, text: str = "PD", senses: tuple[str, ...] = ("a", "b")) -> Row:
    at = text.index("PD")
    return Row(text, Span(at, at + 2), senses, gold)


def encoded(source: str, golds: str, near: list[list[float]]) -> EncodedRows:
    rows = [row(gold) for gold in golds]
    return EncodedRows(source, rows, [[0.0, 0.0]] * len(rows), torch.tensor(near))


def scores_of(right: int, **parts: tuple[float, float]) -> RowScores:
    """Zeros but for these parts."""
    values = {name: torch.tensor(parts.get(name, (0.0, 0.0))) for name in RowScores._fields}
    values["right"][right] = 1
    return RowScores(**values)


def test_prototypes_are_means_of_unit_vectors_and_priors_count_only_the_given_rows(tiny_bert: str) -> None:
    encoder = Encoder.load(tiny_bert, max_pieces=64)
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    part = encode_rows(network, "s", [row("a", "a PD"), row("a", "the PD hurt")])
    prototypes = build_prototypes([part], Mixture(), {"s": part.rows[:1]}, SenseFrequencies())
    assert prototypes.entries == (PrototypeEntry("PD", "a", "s", 1),)
    mean = torch.nn.functional.normalize(part.near, dim=-1).mean(0)
    assert torch.allclose(prototypes.vectors[0], torch.nn.functional.normalize(mean, dim=-1), atol=1e-6)
    anchors = encode_rows(network, "s", part.rows, with_logits=False)
    assert anchors.logits == [[0.0, 0.0]] * 2
    assert torch.allclose(anchors.near, part.near, atol=1e-5)


def test_folds_and_parts_hold_each_row_and_sense_once_with_its_spellings() -> None:
    prototypes = Prototypes([PrototypeEntry("IA", "intraarterial", "casi", 2)], torch.ones(1, 4), Mixture())
    extended = with_dictionary_spellings(prototypes, {"IA": ["intra-arterial", "intracranial aneurysm"]})
    assert [u.long_form for u in extended.entries] == ["intraarterial", "intra-arterial"]
    assert len(extended.vectors) == 2
    rows = [row("a" if i < 10 else "b", f"PD {i}") for i in range(15)]
    divided = folds(rows, 0)
    assert sorted(i for part in divided for i in part) == list(range(15))
    assert all(sum(rows[i].gold == "a" for i in part) == 2 for part in divided)
    senses = {("A", f"form{n:02}") for n in range(10)} | {("A", "FORM-03")}
    parts = sense_parts(senses, 0)
    assert sorted(s for part in parts for s in part) == sorted(senses)
    assert all((("A", "form03") in part) == (("A", "FORM-03") in part) for part in parts)


def test_the_mixture_with_the_best_accuracy_is_chosen() -> None:
    # The network is wrong, the prototypes are right; "a" has no prototype and would win at unseen=0.7.
    rows = [scores_of(1, network=(0.0, -9.0), similarity=(float("nan"), 0.6))]
    table = stacked(rows)
    assert [table.accuracy(m) for m in (Mixture(1, 0, 0), Mixture(0, 10, 0, unseen=0.7))] == [0, 0]
    assert table.accuracy(best_mixture({"casi": rows})) == 1
    cued = [scores_of(1, network=(0.0, -1.0), cues=(0.0, 1.0))]
    assert [stacked(cued).accuracy(m) for m in (Mixture(), Mixture(cues=2))] == [0, 1]
    assert best_mixture({"casi": cued}).network < best_mixture({"casi": cued}).cues
    with pytest.raises(CorpusError, match="no row to choose weights on"):
        best_mixture({})


def test_long_forms_that_a_row_lacks_never_win() -> None:
    wide = RowScores(
        *(torch.tensor(part) for part in ([0.0] * 3, [-0.9] * 3, [0.0] * 3, [0.0] * 3, [0.0, 0, 1]))
    )
    table = stacked([scores_of(0, similarity=(-0.8, -0.9)), wide])
    assert table.network.shape == (2, 3)
    assert table.accuracy(Mixture(1, 5, 0)) == 0.5


def test_rows_of_senses_that_no_corpus_shows_count_less_in_the_choice_of_weights() -> None:
    def rows(right: int, n: int) -> list[RowScores]:
        # The network shows a, cue words b.
        return [scores_of(right, network=(1.0, 0.0), cues=(0.0, 0.9))] * n

    known, unseen = rows(0, 2) + rows(1, 1), rows(1, 3)
    chosen = best_mixture({"casi": known, "unseen": unseen})
    assert stacked(known).accuracy(chosen) == pytest.approx(2 / 3)
    assert stacked(unseen).accuracy(best_mixture({"casi": known, "written": unseen})) == 1


def test_scores_have_the_cues_in_the_text_of_the_row() -> None:
    part = EncodedRows("s", [row("b", "chest PD today")], [[0.0, 0.0]], torch.ones(1, 4))
    estimates = Estimates(cue_words=CueWords({("PD", "b"): ["chest"]}))
    (scored,) = scored_by([part], part, {}, estimates)
    assert scored.cues.tolist() == [0.0, 1.0]
    assert scored.right.tolist() == [0.0, 1.0]


def test_a_row_is_scored_without_its_own_fold() -> None:
    """The rows of b are at (0, 1), but each of a has a direction that it alone shows."""
    part = encoded("casi", "aabb", [[1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0], [0, 1.0, 0]])
    found = cross_validated(part, [], 0, Estimates(), shown=True)
    assert all(s.similarity[0] == 0 for s in found if s.right[0])
    counted = cross_validated(part, [], 0, Estimates(), shown=False)
    assert all(s.similarity.isnan().all() for s in counted)


def test_a_sense_of_which_only_written_sentences_are_left_is_scored_by_these() -> None:
    """The corpus shows a near (1, 0) and b near (0, 1); a written sentence shows b at (0, 1)."""
    casi = encoded("casi", "aaabbb", [[1.0, 0.1]] * 3 + [[1.0, 0.9]] * 3)
    used, written = encoded("ade", "b", [[1.0, 0.9]]), encoded(WRITTEN, "b", [[0.0, 1.0]])
    scored = scored_as_unseen(casi, used, written, 0, Estimates())
    assert [s.right.tolist() for s in scored] == [[0.0, 1.0]] * 3
    # By the prototype of the corpus or of texts the cosine of b would be 1.
    (first,) = {tuple(s.similarity.tolist()) for s in scored}
    assert first[1] == pytest.approx(0.9 / 1.81**0.5, abs=1e-5)
