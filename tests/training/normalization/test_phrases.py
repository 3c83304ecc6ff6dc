"""Phrases that are searched beside the names: which are kept, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import normalize

from models.encoder.model import Encoder
from models.normalization import patient_phrases as files
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from tests.training.normalization.small_terms import gold
from training.normalization.data import taught_phrases
from training.normalization.phrases import LEAST_COSINE, distinct, mention_phrases, written_phrases

TERMS = [
    Term("Insomnia", "Insomnia", "-"),
    Term("Sleeplessness", "Insomnia", "-"),
    Term("Headache", "Headache", "-"),
    Term("Rash", "Rash", "-"),
    Term("Nausea", "Nausea", "-"),
]


def test_a_mention_that_is_searched_has_one_preferred_term_and_is_no_name(tiny_bert: str) -> None:
    golds = [
        gold("Eyes  wide open", "Insomnia", "a"),
        gold("eyes wide open", "Sleeplessness", "b"),
        gold("awful", "Rash", "a"),
        gold("awful", "Nausea", "b"),
        gold("sleeplessness", "Insomnia", "a"),
        gold("unknown", "No such term", "a"),
    ]
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    found = mention_phrases(encoder, TERMS, golds)
    assert (found.texts, found.pts, found.min_cosine) == (("eyes wide open",), ("Insomnia",), LEAST_COSINE)
    assert isinstance(found.vectors, torch.Tensor)
    assert torch.equal(found.vectors, encoder.embed(["eyes wide open"]))


def test_a_phrase_that_is_hardly_another_text_is_not_searched() -> None:
    vectors = normalize(torch.tensor([[1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [1.0, 1.0]]))
    assert distinct(vectors, torch.tensor([[1.0, 0.0]])) == [1, 3]


def test_written_phrases_keep_their_term_and_vector(tiny_bert: str) -> None:
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    found = written_phrases(encoder, TERMS, encoder.embed([t.llt for t in TERMS]))
    taught = {(p.words, p.pt) for p in taught_phrases(TERMS)}
    assert set(zip(found.texts, found.pts, strict=True)) <= taught
    assert found.texts and found.penalty == 0.05
    assert isinstance(found.vectors, torch.Tensor)
    assert torch.allclose(found.vectors, encoder.embed(found.texts), atol=1e-5)


def test_phrases_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    texts, pts = ("wide awake", "head in a vice"), ("Insomnia", "Headache")
    files.write(tmp_path / "phrases.tsv", texts, pts)
    assert files.read(tmp_path / "phrases.tsv") == (texts, pts)


@pytest.mark.parametrize("content", ["", "a\tb\n", "phrase\tpt\nalone\n", "phrase\tpt\n\tRash\n"])
def test_a_broken_file_of_phrases_is_refused_and_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "phrases.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"phrases\.tsv"):
        files.read(path)


def test_phrases_of_unknown_terms_are_left_out() -> None:
    phrases = Phrases(("a", "b", "c"), ("Rash", "Unknown", "HEADACHE"), torch.eye(3), 0.5)
    kept = phrases.within(TERMS)
    assert (kept.texts, kept.pts) == (("a", "c"), ("Rash", "Headache"))
    assert isinstance(kept.vectors, torch.Tensor)
    assert torch.equal(kept.vectors, torch.eye(3)[[0, 2]])
