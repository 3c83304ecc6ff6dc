"""The m-network: which pieces are the acronym's, what is pooled, and the distances."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import save_file

from models.acronym.m_network import LONGEST, SIZE, MNetwork, means
from models.acronym.questions import MarkedText, Question
from models.encoder.model import Encoder
from models.releases.manifest import ReleaseError
from tests.models import tiny

QUESTION = Question("the drug ", "ms", " hurt", ("pain", "the pain drug"))


def network_of(encoder: Encoder) -> MNetwork:
    torch.manual_seed(3)
    return MNetwork(encoder, torch.nn.Linear(encoder.dimension, SIZE))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> MNetwork:
    return network_of(Encoder.load(tiny.bert(tmp_path_factory.mktemp("tiny")), max_pieces=64))


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_a_text_has_all_its_pieces_with_any_tokenizer(family: str, tmp_path: Path) -> None:
    network = network_of(Encoder.load(getattr(tiny, family)(tmp_path), max_pieces=64))
    tokenizer = network.encoder.tokenizer
    for text, form in (("the drug ms hurt", "ms"), ("xms", "ms"), ("ms", "ms"), ("a pain ", "pain")):
        start = text.index(form)
        (pieces,) = network.tokenize([MarkedText(text, start, start + len(form))])
        assert list(pieces) == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_an_anchor_and_its_candidates_have_the_same_context(network: MNetwork) -> None:
    assert Question("ms and ", "ms", " ms", ()).replaced("pain") == MarkedText("ms and pain ms", 7, 11)
    left, right = "a b c d e f g h " * 20, " i j k l" * 20
    question = Question(left, "ms", right, ("pain", "z" * (3 * LONGEST)))
    texts = [question.anchor(), *map(question.replaced, question.long_forms)]
    anchor, short, long = network.tokenize(texts)
    side = (64 - 2 - LONGEST) // 2
    assert anchor[:side] == short[:side] == long[:side]
    assert anchor[-side:] == short[-side:] == long[-side:]
    assert len(long) == 2 * side + LONGEST <= 62
    assert len(anchor) < len(long) and len(short) < len(long)


def test_a_form_without_pieces_and_a_text_without_pieces_have_finite_vectors(network: MNetwork) -> None:
    dropped, empty = network.tokenize([MarkedText("the \u200b pain", 4, 5), MarkedText(" ", 0, 1)])
    assert dropped and empty == ()
    assert bool(torch.isfinite(network.pooled([dropped, empty])).all())


def test_means_leave_out_special_tokens_and_padding() -> None:
    hidden = torch.arange(40 * 2, dtype=torch.float32).reshape(1, 40, 2)
    # Piece i is at position i + 1.
    assert means(hidden, [30])[0].tolist() == hidden[0, 1:31].mean(0).tolist()


def test_energies_are_squared_distances_and_shares_their_softmax(network: MNetwork) -> None:
    single = QUESTION._replace(long_forms=("pain",))
    asked = [QUESTION, single]
    with torch.inference_mode():
        energies = network.energies(asked, [q.anchor() for q in asked])
        texts = [QUESTION.anchor(), *map(QUESTION.replaced, QUESTION.long_forms)]
        small = network.dense(network.pooled(network.tokenize(texts)))
    assert energies[0, 1].item() == pytest.approx((small[2] - small[0]).square().sum().item(), rel=1e-4)
    assert energies[1].tolist() == [pytest.approx(energies[0, 0].item(), rel=1e-4), float("inf")]
    shares, one = network.scores(asked)
    assert shares == pytest.approx((-energies[0]).softmax(0).tolist(), abs=1e-5)
    assert (one, network.scores([])) == ([1.0], [])


def test_equal_texts_are_encoded_once(network: MNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = network.encoder.forward

    def counting(sequences: list[list[int]]) -> torch.Tensor:
        sizes.append(len(sequences))
        return original(sequences)

    monkeypatch.setattr(network.encoder, "forward", counting)
    one, other = network.scores([QUESTION, QUESTION])
    assert one == other
    assert sum(sizes) == 3


@pytest.mark.parametrize(
    ("tensors", "training"),
    [
        ({"alone": torch.ones(2), "surface.weight": torch.ones(1, 5)}, {}),
        ({"weight": torch.ones(SIZE, 2), "bias": torch.ones(SIZE)}, {"pooling": "span"}),
    ],
)
def test_a_release_with_the_parts_that_went_is_refused(
    tmp_path: Path, tensors: dict[str, torch.Tensor], training: dict[str, str]
) -> None:
    save_file(tensors, tmp_path / "head.safetensors")
    release = Mock(version="0" * 12, file=tmp_path.joinpath)
    release.manifest.configuration = {"training": training}
    with pytest.raises(ReleaseError, match="000000000000: made with a head that is no m-network"):
        MNetwork.load(release)
