"""M-networks: where the acronym's pieces are, what is pooled, how energies follow from distances."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.acronym.m_network import (
    LONGEST,
    NEAR,
    Head,
    MNetwork,
    Place,
    Question,
    Reader,
    Reading,
    Shape,
    Vectors,
    means,
    padded,
    pointers,
)
from models.acronym.surface_features import NAMES
from models.encoder.model import Encoder
from tests.models import tiny

QUESTION = Question("the drug ", "ms", " hurt", ("pain", "the pain drug"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder.load(tiny.bert(tmp_path_factory.mktemp("tiny")), max_pieces=64)


@pytest.fixture(params=["bert", "roberta", "mpnet"])
def any_encoder(request: pytest.FixtureRequest, tmp_path: Path) -> Encoder:
    return Encoder.load(getattr(tiny, request.param)(tmp_path), max_pieces=64)


def test_a_question_replaces_the_acronym_at_its_place_only() -> None:
    asked = Question("ms and ", "ms", " ms", ("pain",))
    anchor, inside, alone = asked.places(Shape(alone=True))
    assert (anchor.text, anchor.start, anchor.end) == ("ms and ms ms", 7, 9)
    assert (inside.text, inside.text[inside.start : inside.end]) == ("ms and pain ms", "pain")
    assert alone == Place("pain", 0, 4)
    # What is not looked at is not read.
    assert asked.places(Shape(distance=False, alone=True)) == [anchor, alone]
    assert asked.places(Shape(distance=False, fit=True)) == [anchor, inside]


def test_the_pieces_of_the_acronym_are_found_with_any_tokenizer(any_encoder: Encoder) -> None:
    reader = Reader(any_encoder)
    for text, form in (("the drug ms hurt", "ms"), ("xms", "ms"), ("ms", "ms"), ("a pain ", "pain")):
        start = text.index(form)
        (found,) = reader.read([Place(text, start, start + len(form))])
        whole = reader.tokenizer.decode(found.pieces[found.first : found.last]).strip().replace("##", "")
        assert whole.replace(" ", "") == form
        assert len(found.pieces) == len(reader.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_an_anchor_and_its_candidates_keep_the_same_neighbours(encoder: Encoder) -> None:
    reader = Reader(encoder)
    left, right = "a b c d e f g h " * 20, " i j k l" * 20
    anchor, short, long = reader.read(
        Question(left, "ms", right, ("pain", "z" * (3 * LONGEST))).places(Shape())
    )
    side = (64 - 2 - LONGEST) // 2
    assert anchor.pieces[: anchor.first] == short.pieces[: short.first] == long.pieces[: long.first]
    assert anchor.first == side
    assert anchor.pieces[anchor.last :] == short.pieces[short.last :] == long.pieces[long.last :]
    assert long.last - long.first == LONGEST
    assert max(len(r.pieces) for r in (anchor, short, long)) <= 62


def test_a_form_that_the_tokenizer_drops_and_a_text_without_pieces_are_read(encoder: Encoder) -> None:
    reader = Reader(encoder)
    dropped, empty = reader.read([Place("the \u200b pain", 4, 5), Place(" ", 0, 1)])
    assert dropped.first == dropped.last
    assert empty == Reading((), 0, 0)
    vectors = reader.vectors([dropped, empty])
    assert all(bool(torch.isfinite(part).all()) for part in vectors)
    # What follows stands for what is not there.
    assert torch.equal(vectors.span[0], reader.vectors([Reading(dropped.pieces, 1, 2)]).span[0])


def test_means_leave_out_special_tokens_and_padding() -> None:
    hidden = torch.arange(40 * 2, dtype=torch.float32).reshape(1, 40, 2)
    found = means(hidden, [Reading(tuple(range(30)), 12, 14)])
    # Piece i stands at place i + 1.
    assert found.mean[0].tolist() == hidden[0, 1:31].mean(0).tolist()
    assert found.span[0].tolist() == hidden[0, 13:15].mean(0).tolist()
    assert found.near[0].tolist() == hidden[0, 13 - NEAR : 15 + NEAR].mean(0).tolist()


def test_a_reading_gets_the_same_vectors_in_any_company(encoder: Encoder) -> None:
    reader = Reader(encoder)
    readings = reader.read(QUESTION.places(Shape()))
    together = reader.vectors([*readings, *readings])
    for i, reading in enumerate(readings):
        alone = reader.vectors([reading])
        for part, one in zip(together, alone, strict=True):
            assert torch.allclose(part[i], one[0], atol=1e-6)
            assert torch.equal(part[i], part[i + len(readings)])


def test_equal_texts_are_encoded_once(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, Shape()))
    seen: list[int] = []
    plain = network.reader.forward

    def counting(sequences: list[list[int]]) -> torch.Tensor:
        seen.append(len(sequences))
        return plain(sequences)

    monkeypatch.setattr(network.reader, "forward", counting)
    one, other = network.answers([QUESTION, QUESTION])[0]
    assert one == other
    assert sum(seen) == 3


def test_a_long_form_alone_is_encoded_once_for_all(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, Shape(distance=False, alone=True)))
    (first,), _ = network.answers([QUESTION])
    seen: list[int] = []
    plain = network.reader.forward

    def counting(sequences: list[list[int]]) -> torch.Tensor:
        seen.append(len(sequences))
        return plain(sequences)

    monkeypatch.setattr(network.reader, "forward", counting)
    (second,), _ = network.answers([QUESTION])
    assert seen == [1]
    assert second == first
    monkeypatch.setattr("models.acronym.m_network.REMEMBERED", 0)
    assert network.answers([QUESTION])[0] == [first]
    assert sum(seen) == 4


def vectors_of(rows: torch.Tensor) -> Vectors:
    return Vectors(rows, rows, rows)


def test_energies_are_squared_distances_and_infinite_where_nothing_is() -> None:
    shape = Shape(pooling="mean", size=3)
    head = Head(4, shape).eval()
    assert head.dense is not None
    rows = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    at = pointers([2, 1], shape)
    assert at.anchors.tolist() == [0, 3]
    assert at.inside.tolist() == [[1, 2], [4, 0]]
    assert at.there.tolist() == [[True, True], [True, False]]
    energies = head(vectors_of(rows), at, torch.zeros(0))
    small = head.dense(rows)
    assert energies[0, 1].item() == pytest.approx((small[2] - small[0]).square().sum().item(), rel=1e-5)
    assert energies[1, 1].item() == float("inf")


def test_fit_and_surface_take_from_the_energy() -> None:
    shape = Shape(pooling="both", fit=True, surface=True)
    head = Head(4, shape).eval()
    assert head.fit is not None
    assert head.surface is not None
    vectors = vectors_of(torch.ones(3, 4))
    at = pointers([2], shape)
    seen = torch.zeros(1, 2, len(NAMES))
    seen[0, 1, 0] = 2
    assert head(vectors, at, seen).tolist() == [[0.0, 0.0]]
    with torch.no_grad():
        head.fit.weight.fill_(0.5)
        head.surface.weight[0, 0] = 3
        head.spread[0] = 2
    assert head(vectors, at, seen).tolist() == [[-4.0, -7.0]]


def test_a_long_form_alone_is_compared_with_the_sentence_and_with_what_is_near() -> None:
    shape = Shape(distance=False, alone=True)
    head = Head(2, shape).eval()
    assert head.alone is not None
    at = pointers([2], shape)
    assert (at.anchors.tolist(), at.alone.tolist()) == ([0], [[1, 2]])
    mean = torch.tensor([[3.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    near = torch.tensor([[0.0, 5.0], [9.0, 9.0], [9.0, 9.0]])
    with torch.no_grad():
        head.alone.copy_(torch.tensor([4.0, 1.5]))
    energies = head(Vectors(mean, mean, near), at, torch.zeros(0))
    assert energies.tolist() == [[-4.0, -1.5]]


def test_features_of_rows_are_padded_with_zeros() -> None:
    row = [1.0] * len(NAMES)
    assert padded([[row], [row, row]]).sum(-1).tolist() == [[len(NAMES), 0], [len(NAMES)] * 2]


def test_no_question_is_answered_by_nothing(encoder: Encoder) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, Shape()))
    scores, near = network.answers([])
    assert (scores, near.shape, network.near([]).shape) == ([], (0, 32), (0, 32))


def test_the_anchor_is_the_same_alone_and_with_candidates(encoder: Encoder) -> None:
    network = MNetwork(encoder, Head(encoder.dimension, Shape(surface=True)))
    scores, near = network.answers([QUESTION])
    assert len(scores[0]) == 2
    assert torch.allclose(near, network.near([QUESTION]), atol=1e-6)
