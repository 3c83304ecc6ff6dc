"""The acronym encoder: which pieces are the acronym's, what is pooled, what is encoded again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.acronym.acronym_encoder import LONGEST, NEAR, AcronymEncoder, MarkedPieces, means
from models.acronym.m_network import HeadConfig, texts_of
from models.acronym.questions import MarkedText, Question
from models.encoder.model import Encoder
from tests.models import tiny


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> AcronymEncoder:
    return AcronymEncoder(Encoder.load(tiny.bert(tmp_path_factory.mktemp("tiny")), max_pieces=64))


@pytest.fixture(params=["bert", "roberta", "mpnet"])
def any_encoder(request: pytest.FixtureRequest, tmp_path: Path) -> AcronymEncoder:
    return AcronymEncoder(Encoder.load(getattr(tiny, request.param)(tmp_path), max_pieces=64))


def test_the_pieces_of_the_acronym_are_found_with_any_tokenizer(any_encoder: AcronymEncoder) -> None:
    for text, form in (("the drug ms hurt", "ms"), ("xms", "ms"), ("ms", "ms"), ("a pain ", "pain")):
        start = text.index(form)
        (marked,) = any_encoder.tokenize([MarkedText(text, start, start + len(form))])
        pieces = marked.pieces[marked.first : marked.last]
        decoded = any_encoder.tokenizer.decode(pieces).strip().replace("##", "")
        assert decoded.replace(" ", "") == form
        whole = any_encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert len(marked.pieces) == len(whole)


def test_an_anchor_and_its_candidates_have_the_same_context(encoder: AcronymEncoder) -> None:
    left, right = "a b c d e f g h " * 20, " i j k l" * 20
    question = Question(left, "ms", right, ("pain", "z" * (3 * LONGEST)))
    anchor, short, long = encoder.tokenize([question.anchor(), *texts_of(question, HeadConfig())])
    side = (64 - 2 - LONGEST) // 2
    assert anchor.pieces[: anchor.first] == short.pieces[: short.first] == long.pieces[: long.first]
    assert anchor.first == side
    assert anchor.pieces[anchor.last :] == short.pieces[short.last :] == long.pieces[long.last :]
    assert long.last - long.first == LONGEST
    assert max(len(t.pieces) for t in (anchor, short, long)) <= 62


def test_a_form_without_pieces_and_a_text_without_pieces_have_finite_vectors(encoder: AcronymEncoder) -> None:
    dropped, empty = encoder.tokenize([MarkedText("the \u200b pain", 4, 5), MarkedText(" ", 0, 1)])
    assert dropped.first == dropped.last
    assert empty == MarkedPieces((), 0, 0)
    vectors = encoder.vectors([dropped, empty])
    assert all(bool(torch.isfinite(part).all()) for part in vectors)


def test_means_leave_out_special_tokens_and_padding() -> None:
    hidden = torch.arange(40 * 2, dtype=torch.float32).reshape(1, 40, 2)
    vectors = means(hidden, [MarkedPieces(tuple(range(30)), 12, 14)])
    # Piece i is at position i + 1.
    assert vectors.mean[0].tolist() == hidden[0, 1:31].mean(0).tolist()
    assert vectors.near[0].tolist() == hidden[0, 13 - NEAR : 15 + NEAR].mean(0).tolist()


def test_vectors_are_batch_invariant(encoder: AcronymEncoder) -> None:
    question = Question("the drug ", "ms", " hurt", ("pain", "the pain drug"))
    texts = encoder.tokenize([question.anchor(), *texts_of(question, HeadConfig())])
    together = encoder.vectors([*texts, *texts])
    for i, text in enumerate(texts):
        alone = encoder.vectors([text])
        for part, one in zip(together, alone, strict=True):
            assert torch.allclose(part[i], one[0], atol=1e-6)
            assert torch.equal(part[i], part[i + len(texts)])
