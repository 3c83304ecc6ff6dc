"""The contrastive losses against sums written out, two-node graphs, and wrong words."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.relation.network import (
    PairGraph,
    RelationGraph,
    balanced_samples,
    degree_normalised,
    even_share,
    graph_contrast,
    word_contrast,
    wrong_words,
)

NUMBERS = torch.Generator().manual_seed(3)


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(one @ other / one.norm() / other.norm())


def test_the_contrast_with_graphs_is_equation_five() -> None:
    text, graphs = torch.randn(4, 6, generator=NUMBERS), torch.randn(4, 3, 6, generator=NUMBERS)
    expected = 0.0
    for r in range(4):
        terms = [math.exp(cosine(text[r], graphs[r, z]) / 0.1) for z in range(3)]
        expected -= math.log(terms[0] / sum(terms)) / 4
    assert float(graph_contrast(text, graphs)) == pytest.approx(expected, rel=1e-4)


def test_the_contrast_of_words_is_equation_six_over_its_samples() -> None:
    vectors, tags = torch.randn(12, 5, generator=NUMBERS), torch.tensor([0] * 7 + [2, 2, 3, 3, 4])
    positive, sampled = balanced_samples(tags, 8, torch.Generator().manual_seed(1))
    terms = []
    for n in range(12):
        if not positive[n].any():
            continue
        weights = [math.exp(cosine(vectors[n], vectors[k]) / 0.1) for k in range(12)]
        over = sum(w for w, p in zip(weights, positive[n].tolist(), strict=True) if p)
        under = sum(w for w, s in zip(weights, sampled[n].tolist(), strict=True) if s)
        terms.append(-math.log(over / under))
    assert len(terms) == 11
    found = word_contrast(vectors, tags, torch.Generator().manual_seed(1), samples=8)
    assert float(found) == pytest.approx(sum(terms) / len(terms), rel=1e-4)


def test_samples_are_a_quarter_of_the_own_tag_and_evenly_of_the_others() -> None:
    tags = torch.tensor([0] * 200 + [2] * 50 + [3] * 4 + [4] * 60)
    positive, sampled = balanced_samples(tags, 80, torch.Generator().manual_seed(1))
    assert not positive.diagonal().any()
    assert not sampled.diagonal().any()
    for word, counts in ((0, [20, 28, 4, 28]), (200, [28, 20, 4, 28]), (250, [26, 25, 3, 26])):
        of_tag = torch.tensor([int(sampled[word, tags == t].sum()) for t in (0, 2, 3, 4)])
        assert int(of_tag.sum()) == 80
        assert (of_tag - torch.tensor(counts)).abs().max() <= 1
    assert int(positive[0].sum()) == 20
    # Others are drawn for each word.
    assert not torch.equal(sampled[0], sampled[1])


def test_tags_that_are_told_apart_have_a_small_loss_and_lone_words_none() -> None:
    vectors = torch.randn(3, 4, generator=NUMBERS, requires_grad=True)
    generator = torch.Generator().manual_seed(1)
    alone = word_contrast(vectors, torch.tensor([0, 2, 3]), generator)
    same = word_contrast(vectors, torch.tensor([0, 0, 0]), generator)
    assert float(alone.detach()) == float(same.detach()) == 0.0
    alone.backward()  # type: ignore[no-untyped-call]
    tags = torch.tensor([0, 0, 0, 2, 2, 2])
    apart = torch.eye(2)[[0, 0, 0, 1, 1, 1]]
    mixed = torch.eye(2)[[0, 1, 0, 1, 0, 1]]
    one, other = (word_contrast(v, tags, torch.Generator().manual_seed(1)) for v in (apart, mixed))
    assert float(one) < 0.01
    assert float(other) > 1


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 100))
def test_even_shares_use_all_and_differ_only_where_one_ran_out(available: list[int], total: int) -> None:
    shares = even_share(available, total)
    assert sum(shares) == min(total, sum(available))
    assert all(0 <= s <= a for s, a in zip(shares, available, strict=True))
    rest = [s for s, a in zip(shares, available, strict=True) if s < a]
    assert not rest or max(shares) - min(rest) <= 1


DRAWN = torch.Generator().manual_seed(5)


def test_a_pairs_graph_is_the_printed_layer_and_half_a_loop_makes_nodes_alike() -> None:
    graph = PairGraph(4, 0.8)
    nodes = torch.randn(3, 2, 4, generator=DRAWN)
    for row, found in zip(nodes, graph(nodes), strict=True):
        drug, effect = row[0] @ graph.weight, row[1] @ graph.weight
        expected = torch.cat([0.8 * drug + 0.2 * effect, 0.2 * drug + 0.8 * effect]).relu()
        assert torch.allclose(found, expected, atol=1e-6)
    first, second = PairGraph(4, 0.5)(torch.randn(2, 4, generator=DRAWN)).split(4)
    assert torch.allclose(first, second)


def test_a_sentences_graph_is_the_mean_of_its_nodes_normalised_by_degree() -> None:
    found = degree_normalised(torch.tensor([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    # Degrees with the loops: 2, 2, 3.
    assert float(found[0, 0]) == pytest.approx(1 / 2)
    assert float(found[2, 2]) == pytest.approx(1 / 3)
    assert float(found[0, 2]) == pytest.approx(6**-0.5)
    assert float(found[0, 1]) == 0
    graph, nodes = RelationGraph(4), torch.randn(2, 3, 4, generator=DRAWN)
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
