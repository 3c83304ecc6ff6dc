"""The scoring head: which texts it reads, and its energies."""

from __future__ import annotations

import pytest
import torch

from models.acronym.acronym_encoder import Vectors
from models.acronym.m_network import Head, HeadConfig, MNetwork, texts_of, vector_rows
from models.acronym.questions import MarkedText, Question
from models.acronym.surface_features import NAMES
from models.encoder.model import Encoder
from tests.models import tiny

QUESTION = Question("the drug ", "ms", " hurt", ("pain", "the pain drug"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder.load(tiny.bert(tmp_path_factory.mktemp("tiny")), max_pieces=64)


def count_encoded_texts(network: MNetwork, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which every call of the encoder adds the size of its batch."""
    sizes: list[int] = []
    original = network.encoder.forward

    def counting(sequences: list[list[int]]) -> torch.Tensor:
        sizes.append(len(sequences))
        return original(sequences)

    monkeypatch.setattr(network.encoder, "forward", counting)
    return sizes


def test_a_question_gives_the_texts_that_the_head_reads() -> None:
    question = Question("ms and ", "ms", " ms", ("pain",))
    candidate, alone = texts_of(question, HeadConfig(alone=True))
    assert question.anchor() == MarkedText("ms and ms ms", 7, 9)
    assert candidate == MarkedText("ms and pain ms", 7, 11)
    assert alone == MarkedText("pain", 0, 4)
    assert texts_of(question, HeadConfig(distance=False, alone=True)) == [alone]
    assert texts_of(question, HeadConfig()) == [candidate]


def test_a_manifest_names_the_surface_features_surface() -> None:
    config = HeadConfig(distance=False, alone=True, surface_features=True)
    network = config.to_manifest()
    assert network == {"distance": False, "alone": True, "surface": True}
    older = {"pooling": "both", "size": 64, "fit": False}
    assert HeadConfig.from_manifest(network) == HeadConfig.from_manifest(network | older) == config


def test_equal_texts_are_encoded_once(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    sizes = count_encoded_texts(network, monkeypatch)
    one, other = network.scores([QUESTION, QUESTION])[0]
    assert one == other
    assert sum(sizes) == 3


def test_the_vectors_of_long_forms_alone_are_cached(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig(distance=False, alone=True)))
    (first,), _ = network.scores([QUESTION])
    sizes = count_encoded_texts(network, monkeypatch)
    (second,), _ = network.scores([QUESTION])
    assert sizes == [1]
    assert second == first
    monkeypatch.setattr("models.acronym.acronym_encoder.CACHE_SIZE", 0)
    assert network.scores([QUESTION])[0] == [first]
    assert sum(sizes) == 4


def vectors_of(states: torch.Tensor) -> Vectors:
    return Vectors(states, states)


def test_distances_are_squared_and_infinite_where_there_is_no_candidate() -> None:
    config = HeadConfig()
    head = Head(4, config).eval()
    assert head.dense is not None
    states = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    rows = vector_rows([2, 1], config)
    assert rows.anchors.tolist() == [0, 3]
    assert rows.candidates.tolist() == [[1, 2], [4, 0]]
    assert rows.present.tolist() == [[True, True], [True, False]]
    energies = head(vectors_of(states), rows, torch.zeros(0))
    small = head.dense(states)
    assert energies[0, 1].item() == pytest.approx((small[2] - small[0]).square().sum().item(), rel=1e-5)
    assert energies[1, 1].item() == float("inf")


def test_surface_features_lower_the_energy() -> None:
    config = HeadConfig(distance=False, surface_features=True)
    head = Head(4, config).eval()
    assert head.surface is not None
    vectors = vectors_of(torch.ones(1, 4))
    rows = vector_rows([2], config)
    features = torch.zeros(1, 2, len(NAMES))
    features[0, 1, 0] = 2
    assert head(vectors, rows, features).tolist() == [[0.0, 0.0]]
    with torch.no_grad():
        head.surface.weight[0, 0] = 3
        head.spread[0] = 2
    assert head(vectors, rows, features).tolist() == [[0.0, -3.0]]


def test_a_long_form_alone_is_compared_with_the_sentence_and_the_near_pieces() -> None:
    config = HeadConfig(distance=False, alone=True)
    head = Head(2, config).eval()
    assert head.alone is not None
    rows = vector_rows([2], config)
    assert (rows.anchors.tolist(), rows.alone.tolist()) == ([0], [[1, 2]])
    mean = torch.tensor([[3.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    near = torch.tensor([[0.0, 5.0], [9.0, 9.0], [9.0, 9.0]])
    with torch.no_grad():
        head.alone.copy_(torch.tensor([4.0, 1.5]))
    energies = head(Vectors(mean, near), rows, torch.zeros(0))
    assert energies.tolist() == [[-4.0, -1.5]]


def test_without_questions_there_are_no_scores(encoder: Encoder) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    scores, near = network.scores([])
    assert (scores, near.shape, network.near_vectors([]).shape) == ([], (0, 32), (0, 32))


def test_the_near_vector_does_not_depend_on_the_candidates(encoder: Encoder) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig(surface_features=True)))
    scores, near = network.scores([QUESTION])
    assert len(scores[0]) == 2
    assert torch.allclose(near, network.near_vectors([QUESTION]), atol=1e-6)
