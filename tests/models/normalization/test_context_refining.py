"""Dynamic Context Refining: the equations, the input of S_context, and batch-invariant vectors."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoder.added_tokens import extended_embedding
from models.encoder.model import Encoder
from models.normalization.context_refining import (
    DynamicContextRefining,
    Refiner,
    context_encoder,
    context_of,
    cut_around,
    marked_sentences,
    marker_tokens,
    pool_with_gradients,
    refining_of,
    stored_tensors,
)
from models.normalization.model import NormalizationModel
from models.rules.sentences import sentences
from models.terminology import Term
from models.types import Query
from tests.same import same_records, same_vectors

WINDOW = 24


def context_encoder_of(base: str, window: int = WINDOW) -> Encoder:
    """An S_context with its own weights and random embeddings of [S] and [E]."""
    loaded = Encoder.load(base)
    own = Encoder(copy.deepcopy(loaded.model), loaded.tokenizer, loaded.max_pieces)
    rows = torch.randn(2, own.dimension, generator=torch.Generator().manual_seed(1))
    return context_encoder(own, rows, window)


def refiner_of(base: str) -> Refiner:
    torch.manual_seed(3)
    isolated = Encoder.load(base, max_pieces=32)
    return Refiner(isolated, context_encoder_of(base), DynamicContextRefining(isolated.dimension))


@pytest.fixture(scope="module", params=["bert", "roberta"])
def refiner(request: pytest.FixtureRequest, tiny_bert: str, tiny_roberta: str) -> Refiner:
    return refiner_of({"bert": tiny_bert, "roberta": tiny_roberta}[request.param])


def embedded(refiner: Refiner, queries: Sequence[Query]) -> tuple[list[int], torch.Tensor, list[float]]:
    """What is refined of the vectors of the mentions alone."""
    return refiner.embed(queries, list(refiner.isolated.mean_pooled([q.surface for q in queries])))


def query(text: str, mention: str, surface: str = "") -> Query:
    start = text.index(mention)
    return Query(text, start, start + len(mention), surface or mention)


def test_the_refined_vector_agrees_with_the_equations_of_the_paper() -> None:
    rng = np.random.default_rng(5)
    d = 3
    m_k, m_q, e_context, e_isolated = (rng.normal(size=s) for s in ((d, d), (d, d), d, d))
    a = e_isolated @ m_k @ m_q @ e_isolated / np.sqrt(d)
    b = e_context @ m_k @ m_q @ e_isolated / np.sqrt(d)
    share = np.exp(b) / (np.exp(a) + np.exp(b))
    refining = DynamicContextRefining(d)
    refining.load_state_dict({"M_K": torch.tensor(m_k), "M_Q": torch.tensor(m_q)})
    refined, weight = refining(*(torch.tensor(e, dtype=torch.float32)[None] for e in (e_context, e_isolated)))
    assert refined[0].tolist() == pytest.approx((1 - share) * e_isolated + share * e_context, abs=1e-5)
    assert weight.tolist() == pytest.approx([share], abs=1e-5)
    e = torch.randn(4, 6)
    same, half = DynamicContextRefining(6)(e, e)
    assert torch.allclose(same, e, atol=1e-6)
    assert half.tolist() == pytest.approx([0.5] * 4)


def test_the_sentence_has_the_two_tokens_around_the_mention(tiny_bert: str) -> None:
    context = context_encoder_of(tiny_bert)
    (pieces,) = marked_sentences(context, [query("The drug. My pain is bad. The end.", "pain")])
    assert pieces is not None
    start, end = marker_tokens(context)
    assert (start, end) == (context.tokenizer.vocab_size, context.tokenizer.vocab_size + 1)
    place = pieces.index(start)
    words = context.tokenizer.convert_ids_to_tokens([p for p in pieces if p not in (start, end)])
    assert pieces[place : place + 3] == [start, context.tokenizer.convert_tokens_to_ids("pain"), end]
    assert words == ["m", "##y", "pain", "i", "##s", "b", "##a", "##d", "."]


def test_the_two_tokens_have_their_own_embeddings(refiner: Refiner) -> None:
    vocabulary, (start, end) = extended_embedding(refiner.context), marker_tokens(refiner.context)
    known, *added = vocabulary(torch.tensor([[3, start, end]]))[0]
    assert torch.equal(known, vocabulary.base.weight[3])
    assert torch.equal(torch.stack(added), vocabulary.rows)
    one = [start, 8, end]
    forth, back = refiner.context.pool([one, one[::-1]])
    assert not torch.allclose(forth, back, atol=1e-4)


def test_sentences_and_mentions_are_cut_to_the_window_and_keep_both_tokens(refiner: Refiner) -> None:
    words = [*"abcdefghij"] * 30
    start, end = marker_tokens(refiner.context)
    for place in (0, 1, 7, 150, 298, 299):
        text = " ".join([*words[:place], "pain", *words[place:]])
        (pieces,) = marked_sentences(refiner.context, [query(text, "pain")])
        assert pieces is not None
        assert len(pieces) == WINDOW - 2
        assert pieces.index(start) < pieces.index(end)
    mention = "p a i n " * 40
    (pieces,) = marked_sentences(refiner.context, [query(f"so {mention} so", mention.strip())])
    assert pieces is not None
    assert len(pieces) == WINDOW - 2
    assert (pieces[0], pieces[-1]) == marker_tokens(refiner.context)


@given(st.integers(0, 40), st.integers(2, 20), st.integers(0, 40), st.integers(20, 40))
def test_a_cut_keeps_the_inside_and_fills_the_limit(before: int, inside: int, after: int, limit: int) -> None:
    left, middle, right = [1] * before, [2] * inside, [3] * after
    pieces = cut_around(left, middle, right, limit)
    assert len(pieces) == min(limit, before + inside + after)
    assert pieces.count(2) == inside
    assert pieces == sorted(pieces)


@pytest.mark.parametrize(
    ("text", "mention", "expected"),
    [
        ("My pain is bad", "pain", ("My", "is bad")),
        ("Fine. My pain is bad. Bye.", "pain", ("My", "is bad.")),
        ("pain", "pain", None),
        ("  pain . ", "pain", None),
        ("Much pain\nno sleep", "no sleep", None),
        ("Pain. Always pain. Bye", "Pain. Always", ("", "pain.")),
    ],
)
def test_context_is_sentence_of_mention(text: str, mention: str, expected: tuple[str, str] | None) -> None:
    assert context_of(query(text, mention), WINDOW, sentences(text)) == expected


@given(st.text(max_size=80), st.data())
def test_the_context_of_any_span_is_next_to_it_in_the_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    context = context_of(Query(text, start, end, text[start:end]), WINDOW, sentences(text))
    if context is not None:
        assert text[:start].rstrip().endswith(context[0])
        assert text[end:].lstrip().startswith(context[1])


def test_a_mention_alone_is_not_read_and_both_encoders_read_long_forms(refiner: Refiner) -> None:
    asked = [query("the pain", "the pain"), query("so the pain .", "the pain"), query("pain .", "pain")]
    places, vectors, weights = embedded(refiner, asked)
    assert (places, len(vectors), len(weights)) == ([1], 1, 1)
    assert embedded(refiner, asked[:1])[0] == refiner.embed([], [])[0] == []
    short, long = query("my ha is bad", "ha", "headache"), query("my headache is bad", "headache")
    assert marked_sentences(refiner.context, [short]) == marked_sentences(refiner.context, [long])
    assert same_vectors(embedded(refiner, [short])[1], embedded(refiner, [long])[1])


def test_only_mentions_of_few_words_are_read_in_their_sentence(refiner: Refiner) -> None:
    few = Refiner(refiner.isolated, refiner.context, refiner.refining, words=1)
    assert [few.reads(mention) for mention in ("pain", "bad pain")] == [True, False]
    assert [refiner.reads(mention) for mention in ("pain", "bad pain")] == [True, True]


def test_the_sentence_has_the_returned_weight_in_the_vector(refiner: Refiner) -> None:
    one_query = query("a drug that gives pain", "pain")
    _, (vector,), (weight,) = embedded(refiner, [one_query])
    sequence = marked_sentences(refiner.context, [one_query])[0]
    assert sequence is not None
    e_context = refiner.context.pool([sequence])[0]
    e_isolated = refiner.isolated.mean_pooled(["pain"])[0]
    assert torch.allclose(vector, weight * e_context + (1 - weight) * e_isolated, atol=1e-5)
    assert 0 < weight < 1


def test_pooling_with_gradients_agrees_with_pooling_for_inference(refiner: Refiner) -> None:
    sequences = [[8, 9, 10], [9] * 14, [11]]
    with torch.no_grad():
        trained = pool_with_gradients(refiner.context, sequences)
    assert torch.allclose(trained, refiner.context.pool(sequences), atol=1e-5)


def test_codings_are_batch_invariant(refiner: Refiner) -> None:
    rng = random.Random(1)
    words = ["pain", "drug", "the", "so", "bad", "very", "no"]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 30))) for _ in range(24)]
    queries = [query(t, rng.choice(t.split())) for t in texts]
    terms = [Term(w, w, "-") for w in ("pain", "drug", "no pain", "bad")]
    vectors = refiner.isolated.embed([t.llt for t in terms])
    model = NormalizationModel(refiner.isolated, terms, vectors, k=3, nil_below=0.0, refiner=refiner)
    expected = model.predict(queries)
    assert any(coding.context_weight for coding in expected)
    places, raw, _ = embedded(refiner, queries)
    for size in (1, 5):
        for start in range(0, len(queries), size):
            part = queries[start : start + size]
            assert same_records(model.predict(part), expected[start : start + size])
            own = [i for i, place in enumerate(places) if start <= place < start + size]
            assert same_vectors(embedded(refiner, part)[1], raw[own])


def test_refining_is_batch_invariant() -> None:
    torch.manual_seed(1)
    refining = DynamicContextRefining(384)
    e_context, e_isolated = torch.randn(100, 384), torch.randn(100, 384)
    with torch.inference_mode():
        expected, weights = refining(e_context, e_isolated)
        for start, size in ((0, 2), (5, 3), (17, 8), (40, 31), (99 - 63, 64)):
            part = slice(start, start + size)
            refined, shares = refining(e_context[part], e_isolated[part])
            assert same_vectors(refined, expected[part])
            assert same_vectors(shares, weights[part])


@settings(max_examples=20, deadline=None)
@given(text=st.text(max_size=60), data=st.data())
def test_any_query_has_a_finite_vector(refiner: Refiner, text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    _, vectors, _ = embedded(refiner, [Query(text, start, end, text[start:end])])
    assert torch.isfinite(vectors).all()


def test_stored_tensors_are_restored_from_16_bits_and_refused_in_another_size(refiner: Refiner) -> None:
    stored = stored_tensors(refiner.refining, refiner.context)
    assert {t.dtype for t in stored.values()} == {torch.float16}
    back = refining_of(stored, refiner.isolated.dimension)
    assert torch.allclose(back.M_K, refiner.refining.M_K, atol=1e-3)
    assert stored["tokens"].shape == (2, refiner.isolated.dimension)
    stored = stored_tensors(refiner.refining, refiner.context)
    with pytest.raises(ValueError, match="M_K"):
        refining_of(stored, 7)
    with pytest.raises(ValueError, match=r"\[S\] and \[E\]"):
        context_encoder(refiner.isolated, torch.zeros(2, 7), WINDOW)
