"""Two-node graphs, graphs of a sentence, and wrong words."""

from __future__ import annotations

import pytest
import torch

from training.relation.network import (
    PairGraph,
    RelationGraph,
    degree_normalised,
    wrong_words,
)

NUMBERS = torch.Generator().manual_seed(5)


def test_a_pairs_graph_is_the_printed_layer() -> None:
    graph = PairGraph(4, 0.8)
    nodes = torch.randn(3, 2, 4, generator=NUMBERS)
    for row, found in zip(nodes, graph(nodes), strict=True):
        drug, effect = row[0] @ graph.weight, row[1] @ graph.weight
        expected = torch.cat([0.8 * drug + 0.2 * effect, 0.2 * drug + 0.8 * effect]).relu()
        assert torch.allclose(found, expected, atol=1e-6)


def test_half_a_self_loop_makes_both_nodes_alike() -> None:
    drug, effect = PairGraph(4, 0.5)(torch.randn(2, 4, generator=NUMBERS)).split(4)
    assert torch.allclose(drug, effect)


def test_an_adjacency_is_normalised_by_the_degrees_of_its_nodes() -> None:
    found = degree_normalised(torch.tensor([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    # Degrees with the loops: 2, 2, 3.
    assert float(found[0, 0]) == pytest.approx(1 / 2)
    assert float(found[2, 2]) == pytest.approx(1 / 3)
    assert float(found[0, 2]) == pytest.approx(6**-0.5)
    assert float(found[0, 1]) == 0


def test_a_sentences_graph_is_the_mean_of_its_nodes() -> None:
    graph, nodes = RelationGraph(4), torch.randn(2, 3, 4, generator=NUMBERS)
    edges = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    expected = torch.tanh(degree_normalised(edges) @ nodes[1] @ graph.weight).mean(0)
    assert torch.allclose(graph(nodes, edges)[1], expected, atol=1e-6)


def test_wrong_words_are_allowed_and_repeat_only_where_they_must() -> None:
    allowed = torch.tensor([[True, False, True, True, True], [False, False, True, True, False]])
    for seed in range(20):
        drawn = wrong_words(allowed, 3, torch.Generator().manual_seed(seed))
        assert len(set(drawn[0].tolist())) == 3
        assert set(drawn[0].tolist()) <= {0, 2, 3, 4}
        assert set(drawn[1].tolist()) == {2, 3}
