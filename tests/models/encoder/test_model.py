"""The encoder: batch-invariant vectors of texts and words, and windows that contain every piece."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.encoder.base_files import resolve_base
from models.encoder.model import Encoder
from models.encoder.word_pieces import WordPieces
from models.text import word_texts
from tests.models import tiny

TEXTS = [
    "Zoloft gave me awful insomnia and night sweats, no nausea though.",
    "Intravenous azithromycin - induced ototoxicity .",
    "",
    "pain",
    "\U0001f922\U0001f922 caf\u00e9 \u75db\u307f \0",
    "brain zaps since I stopped effexor, was on it for depression and it never really helped that much",
    "The weather was fine. " * 20,
    "x" * 500,
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 12,
]


def vectors_from_batches(encoder: Encoder) -> list[Tensor]:
    """The vectors of TEXTS from two batches, each with other texts and in another random order."""
    batches = []
    for seed in range(2):
        texts = [*TEXTS, *(f"{t} and so on" * (seed + 1) for t in TEXTS)]
        order = random.Random(seed).sample(range(len(texts)), len(texts))
        vectors = encoder.embed([texts[i] for i in order])
        batches.append(vectors[[order.index(i) for i in range(len(TEXTS))]])
    return batches


def test_a_text_has_the_same_vector_alone_and_in_a_batch_in_float32(mini: Encoder) -> None:
    alone = torch.cat([mini.embed([text]) for text in TEXTS])
    assert torch.allclose(alone.norm(dim=1), torch.ones(len(TEXTS)), atol=1e-5)
    assert mini.embed([]).shape == (0, mini.dimension)
    for vectors in vectors_from_batches(mini):
        assert (vectors - alone).abs().max() < 1e-5


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_embed_agrees_with_sentence_transformers() -> None:
    library = pytest.importorskip("sentence_transformers")
    reference = library.SentenceTransformer(resolve_base("mini"), device="cpu")
    assert reference.max_seq_length == 256
    texts = [*TEXTS, "nausea and vomiting for three days " * 80]
    theirs = reference.encode(texts, convert_to_tensor=True, normalize_embeddings=True)
    ours = Encoder.load("mini", max_pieces=256).embed(texts)
    assert (ours - theirs).abs().max() < 1e-4


def test_vectors_are_in_the_order_of_the_texts_also_when_a_text_occurs_twice(mini: Encoder) -> None:
    texts = ["headache", "a much longer text about nausea and vomiting", "headache", "rash", "headache"]
    vectors = mini.embed(texts)
    assert torch.equal(vectors[0], vectors[2])
    assert torch.equal(vectors[0], vectors[4])
    near = vectors @ mini.embed(["rash on the skin", "being sick, longer"]).T
    assert near.argmax(0).tolist() == [3, 1]


def sentence_of(counts: list[int]) -> WordPieces:
    """A sentence whose words have these numbers of pieces; the pieces are numbered from 0."""
    first = [0, *accumulate(counts)]
    return WordPieces(first[:-1], counts, list(range(first[-1])))


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=50), st.integers(3, 40))
def test_windows_contain_every_piece_and_cut_no_word_that_fits(counts: list[int], max_pieces: int) -> None:
    sentence = sentence_of(counts)
    limit = max_pieces - 2
    encoder = Encoder.__new__(Encoder)
    encoder.max_pieces = max_pieces
    windows = encoder.windows(sentence)
    assert [piece for window in windows for piece in window] == sentence.pieces
    assert all(0 < len(window) <= limit for window in windows)
    ends = set(accumulate(len(w) for w in windows))
    for first, count in zip(sentence.first, counts, strict=True):
        if count <= limit:
            assert not ends & set(range(first + 1, first + count))


def test_only_a_sentence_longer_than_a_window_is_cut(small: Encoder) -> None:
    assert small.windows(sentence_of([10, 10, 10])) == [list(range(30))]
    assert small.windows(sentence_of([10, 10, 11])) == [list(range(20)), list(range(20, 31))]


def means_without_padding(encoder: Encoder, sentence: list[str]) -> Tensor:
    """Mean hidden state of each word, with the library's own special tokens and without any padding."""
    encoded = encoder.tokenizer([sentence], is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        hidden = encoder.model(**encoded).last_hidden_state[0]
    ids = encoded.word_ids(0)
    rows = [[i for i, w in enumerate(ids) if w == n] for n in range(len(sentence))]
    return torch.stack([hidden[r].mean(0) if r else torch.zeros(encoder.dimension) for r in rows])


SENTENCES = [
    ["Intravenous", "azithromycin", "-", "induced", "ototoxicity", "."],
    ["drug"],
    ["no", "\0", "pain", "\u200b", "\U0001f922"],
    word_texts("I took Lexapro for 3 weeks (10mg) and couldn't sleep."),
]


def test_a_words_vector_is_the_mean_of_its_pieces(mini: Encoder) -> None:
    with torch.inference_mode():
        sentence_vectors = mini.word_vectors(SENTENCES)
    for vectors, sentence in zip(sentence_vectors, SENTENCES, strict=True):
        assert (vectors - means_without_padding(mini, sentence)).abs().max() < 1e-4


def test_every_word_of_many_windows_has_a_vector_and_no_word_has_no_pieces(small: Encoder) -> None:
    with torch.inference_mode():
        (vectors,) = small.word_vectors([["nausea"] * 50])
        (alone,) = small.word_vectors([["nausea"] * 5])
    assert vectors.shape == (50, small.dimension)
    # A window holds five words of six letters, and each window is encoded separately.
    assert torch.allclose(vectors, alone.repeat(10, 1), atol=1e-5)
    assert small.split([]) == []
    assert small.split([[], ["drug"]])[0] == WordPieces([], [], [])
    assert small.split([["\0"], ["drug"]])[0] == WordPieces([0], [0], [])
    assert [v.shape for v in small.word_vectors([[], ["\0"]])] == [(0, 32), (1, 32)]
    assert small.word_vectors([]) == []


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_an_encoder_of_either_family_is_loaded_from_a_path(name: str, request: pytest.FixtureRequest) -> None:
    encoder = Encoder.load(request.getfixturevalue(name), max_pieces=64)
    assert encoder.dimension == 32
    split = encoder.split([["pain", "drug", "the"], []])
    assert all(c > 0 for c in split[0].count)
    assert sum(split[0].count) == len(split[0].pieces)
    with torch.inference_mode():
        sentence_vectors = encoder.word_vectors([["pain", "drug"], ["the", "pain", "of", "it"]])
    for vectors, sentence in zip(
        sentence_vectors, [["pain", "drug"], ["the", "pain", "of", "it"]], strict=True
    ):
        assert (vectors - means_without_padding(encoder, sentence)).abs().max() < 1e-4
    alone = encoder.embed(["the pain"])[0]
    together = encoder.embed(["drug", "the pain", "a longer text with pain in it"])[1]
    assert (alone - together).abs().max() < 1e-5
    assert torch.isclose(alone.norm(), torch.tensor(1.0), atol=1e-5)


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_the_longest_window_fits_the_models_positions(name: str, request: pytest.FixtureRequest) -> None:
    encoder = Encoder.load(request.getfixturevalue(name), max_pieces=tiny.POSITIONS)
    assert torch.isfinite(encoder.embed(["drug " * 200])).all()


def test_a_byte_level_tokenizer_splits_a_word_as_in_running_text(tiny_roberta: str) -> None:
    encoder = Encoder.load(tiny_roberta)
    (split,) = encoder.split([["the", "drug"]])
    assert split.pieces[-4:] == encoder.tokenizer("the drug", add_special_tokens=False)["input_ids"][-4:]
