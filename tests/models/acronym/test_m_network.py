"""The scoring head, and the prototypes of long forms beside it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from models.acronym.acronym_encoder import Vectors
from models.acronym.frequencies import SenseFrequencies
from models.acronym.m_network import Head, HeadConfig, MNetwork, texts_of, vector_rows
from models.acronym.prototypes import COLUMNS, WRITTEN, Mixture, PrototypeEntry, Prototypes
from models.acronym.questions import MarkedText, Question
from models.acronym.surface_features import NAMES
from models.encoder.model import Encoder
from models.releases.manifest import ReleaseError
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


def test_a_head_reads_what_its_configuration_and_the_manifest_say() -> None:
    question = Question("ms and ", "ms", " ms", ("pain",))
    candidate, alone = texts_of(question, HeadConfig(alone=True))
    assert question.anchor() == MarkedText("ms and ms ms", 7, 9)
    assert candidate == MarkedText("ms and pain ms", 7, 11)
    assert alone == MarkedText("pain", 0, 4)
    assert texts_of(question, HeadConfig(distance=False, alone=True)) == [alone]
    assert texts_of(question, HeadConfig()) == [candidate]
    config = HeadConfig(distance=False, alone=True, surface_features=True)
    stored = config.to_manifest()
    assert stored == {"distance": False, "alone": True, "surface": True}
    older = {"pooling": "both", "size": 64, "fit": False}
    assert HeadConfig.from_manifest(stored) == HeadConfig.from_manifest(stored | older) == config


def test_equal_texts_are_encoded_once(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    sizes = count_encoded_texts(network, monkeypatch)
    one, other = network.scores([QUESTION, QUESTION])[0]
    assert one == other
    assert sum(sizes) == 3


def test_vectors_of_long_forms_alone_are_cached(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_energies_are_squared_distances_less_the_surface_features() -> None:
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


def test_the_near_vector_does_not_depend_on_candidates_and_no_question_has_one(encoder: Encoder) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig()))
    scores, near = network.scores([])
    assert (scores, near.shape, network.near_vectors([]).shape) == ([], (0, 32), (0, 32))
    network = MNetwork(encoder, Head(encoder.dimension, HeadConfig(surface_features=True)))
    scores, near = network.scores([QUESTION])
    assert len(scores[0]) == 2
    assert torch.allclose(near, network.near_vectors([QUESTION]), atol=1e-6)


ENTRIES = [
    PrototypeEntry("MS", "multiple sclerosis", "a", 3),
    PrototypeEntry("MS", "multiple sclerosis", "b", 0),
    PrototypeEntry("MS", "morphine", "a", 1),
    PrototypeEntry("RA", "right atrium", "b", 5),
]
VECTORS = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0]])
FORMS = ("multiple sclerosis", "morphine", "mitral stenosis")


@pytest.fixture
def prototypes() -> Prototypes:
    return Prototypes(ENTRIES, VECTORS, Mixture(0.5, 10, 1, unseen=0.25, smoothing=1))


def test_the_nearest_prototype_counts_and_a_prior_is_the_mean_of_sources(prototypes: Prototypes) -> None:
    assert prototypes.similarities("MS", FORMS, torch.tensor([0.0, 5.0])) == pytest.approx([1, 0, 0.25])
    assert prototypes.similarities("M.S", FORMS, torch.tensor([4.0, 0.0])) == pytest.approx([1, -1, 0.25])
    # Source a: 4, 2 and 1 of 7 rows with one added to each; source b has none of the three: 1/3 each.
    expected = [(4 / 7 + 1 / 3) / 2, (2 / 7 + 1 / 3) / 2, (1 / 7 + 1 / 3) / 2]
    assert [math.exp(p) for p in prototypes.priors("MS", FORMS)] == pytest.approx(expected)
    assert prototypes.priors("HA", FORMS) == [0, 0, 0]


def test_what_only_written_sentences_show_is_raised_and_they_count_in_no_prior() -> None:
    entries = [
        PrototypeEntry("MS", "multiple sclerosis", "a", 3),
        PrototypeEntry("MS", "morphine", WRITTEN, 2),
        PrototypeEntry("MS", "multiple sclerosis", WRITTEN, 2),
    ]
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    prototypes = Prototypes(entries, vectors, Mixture(unseen=0.25, smoothing=1, written=0.1))
    assert prototypes.similarities("MS", FORMS, torch.tensor([0.0, 2.0])) == pytest.approx([0, 1.1, 0.25])
    assert prototypes.only_written("MS", FORMS) == [False, True, False]
    rare = SenseFrequencies({("MS", "morphine"): "rare"})
    assert not any(Prototypes(entries, vectors, prototypes.mixture, rare).only_written("MS", FORMS))
    assert [math.exp(p) for p in prototypes.priors("MS", FORMS)] == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_what_is_added_to_counts_follows_the_estimated_frequencies() -> None:
    words = {("MS", "mitral stenosis"): "usual", ("MS", "morphine"): "rare", ("HA", "headache"): "usual"}
    frequencies = SenseFrequencies(words)
    mixture = Mixture(unseen=0.25, smoothing=1)
    prototypes = Prototypes(ENTRIES, VECTORS, mixture, frequencies)
    shares = frequencies.shares("MS", FORMS)
    # Source a has 3 and 1 rows, source b none of the three.
    expected = [((n + 3 * s) / 7 + s) / 2 for n, s in zip([3, 1, 0], shares, strict=True)]
    assert [math.exp(p) for p in prototypes.priors("MS", FORMS)] == pytest.approx(expected)
    # No source counts this one, and no prototype shows it.
    forms = ("hyperactive", "headache")
    assert [math.exp(p) for p in prototypes.priors("HA", forms)] == pytest.approx([0.3 / 1.3, 1 / 1.3])
    near, far = prototypes.combined("HA", forms, [0.0, 0.0], torch.tensor([1.0, 0.0]))
    assert near < far


def test_the_score_is_the_weighted_sum_of_its_parts(prototypes: Prototypes) -> None:
    vector = torch.tensor([0.0, 5.0])
    combined = prototypes.combined("MS", FORMS, [2.0, 4.0, 6.0], vector)
    expected = [
        0.5 * n + 10 * s + p
        for n, s, p in zip([2, 4, 6], [1, 0, 0.25], prototypes.priors("MS", FORMS), strict=True)
    ]
    assert combined == pytest.approx(expected)
    assert prototypes.combined("HA", FORMS, [2.0, 4.0, 6.0], vector) == [2, 4, 6]
    # A release without cue words has weight 0 for them.
    assert prototypes.combined("MS", FORMS, [2.0, 4.0, 6.0], vector, [1.0, 0.0, 0.0]) == combined
    weighted = Prototypes(ENTRIES, VECTORS, prototypes.mixture._replace(cues=3))
    raised = weighted.combined("MS", FORMS, [2.0, 4.0, 6.0], vector, [1.0, 0.0, 0.5])
    assert raised == pytest.approx([combined[0] + 3, combined[1], combined[2] + 1.5])
    assert (prototypes.n_known("MS", FORMS), prototypes.n_known("HA", FORMS)) == (2, 0)


def test_prototypes_are_loaded_as_they_were_written(prototypes: Prototypes, tmp_path: Path) -> None:
    table, vectors = tmp_path / "t.tsv", tmp_path / "v.safetensors"
    table.write_text("\n".join(["\t".join(COLUMNS), *("\t".join(map(str, u)) for u in ENTRIES)]), "utf-8")
    save_file({"vectors": VECTORS.half()}, vectors)
    loaded = Prototypes.load(table, vectors, prototypes.mixture)
    assert loaded.entries == prototypes.entries
    assert torch.allclose(loaded.vectors, prototypes.vectors, atol=1e-3)
    save_file({"vectors": VECTORS[:2].contiguous()}, vectors)
    with pytest.raises(ReleaseError, match="one vector for each row"):
        Prototypes.load(table, vectors, prototypes.mixture)
    with pytest.raises(ValueError, match="do not fit"):
        Prototypes(ENTRIES, VECTORS[:2], prototypes.mixture)
