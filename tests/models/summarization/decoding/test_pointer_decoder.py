"""The pointer decoder: probabilities, copying, decoding step by step, and initialisation."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from models.encoder.model import Encoder
from models.summarization.decoding import encoder_parts
from models.summarization.decoding.decoder_layers import DecoderConfig, Source
from models.summarization.decoding.extended_vocabulary import ExtendedVocabulary
from models.summarization.decoding.pointer_decoder import PointerDecoder
from models.summarization.decoding.word_marks import WordMarks

CLS, SEP, UNKNOWN = 2, 3, 1
#: Pieces 21 and 22 continue a word.
VOCABULARY = ExtendedVocabulary([SEP, 10, 11], CLS, SEP, UNKNOWN, WordMarks(frozenset({21, 22})))
#: Numbers before those of the positions.
G = len(VOCABULARY)


@pytest.fixture(scope="module")
def decoder(small: Encoder) -> PointerDecoder:
    """With four pieces that may be generated."""
    torch.manual_seed(3)
    config = DecoderConfig(32, layers=2, heads=2, inner=48, longest=16)
    return PointerDecoder(config, encoder_parts.embeddings_of(small.model), [SEP, 10, 11, 12]).eval()


@pytest.fixture(scope="module")
def copying(decoder: PointerDecoder) -> PointerDecoder:
    """The same decoder over VOCABULARY."""
    own = PointerDecoder(decoder.config, dict(decoder.named_buffers()), VOCABULARY.generated).eval()
    own.load_state_dict(decoder.state_dict() | {"bias": decoder.bias[:G]})
    return own


def source(copy_numbers: list[list[int]], seed: int = 0) -> Source:
    """Questions with these numbers, none of whose pieces follows a piece of a summary or continues a word."""
    numbers = torch.tensor(copy_numbers)
    memory = torch.randn(*numbers.shape, 32, generator=torch.Generator().manual_seed(seed))
    preceding = torch.full((len(numbers), 2, numbers.shape[1]), -1)
    mask = torch.ones_like(numbers, dtype=torch.bool)
    return Source(memory, mask, numbers, preceding, torch.zeros_like(mask))


def source_of_pieces(*pieces: int) -> Source:
    """A question of these pieces."""
    whole = [CLS, *pieces, SEP]
    memory = torch.randn(1, len(whole), 32, generator=torch.Generator().manual_seed(7))
    parts = (VOCABULARY.copy_numbers(whole), VOCABULARY.preceding(whole), VOCABULARY.continues_word(whole))
    mask = torch.ones(1, len(whole), dtype=torch.bool)
    return Source(memory, mask, *(torch.tensor([part]) for part in parts))


def test_probabilities_of_all_numbers_sum_to_one(decoder: PointerDecoder) -> None:
    questions = source([[-1, 4, 1, 6, 4, -1], [-1, -1, -1, -1, -1, -1]])
    probabilities = decoder(questions, torch.tensor([[CLS, 10]] * 2))
    assert probabilities.shape == (2, 2, 4 + 6)
    assert probabilities.sum(-1).flatten().tolist() == pytest.approx([1.0] * 4, abs=1e-5)
    # Numbers of no position have probability 0; without anything to copy, generated pieces have all of it.
    assert probabilities[0, :, [5, 7, 8, 9]].abs().max() == 0
    assert probabilities[0, :, [4, 6]].min() > 0
    assert probabilities[1, :, 4:].abs().max() == 0


def test_padding_changes_nothing(decoder: PointerDecoder) -> None:
    one = source([[-1, 4, 1, -1]])
    noise = torch.full((1, 4, 32), 7.0)
    mask = torch.tensor([[True] * 4 + [False] * 4])
    padded = source([[-1, 4, 1, -1] + [-1] * 4])._replace(memory=torch.cat([one.memory, noise], 1), mask=mask)
    prefix = torch.tensor([[CLS, 10, 11]])
    with torch.inference_mode():
        assert torch.allclose(decoder(one, prefix), decoder(padded, prefix)[..., :8], atol=1e-6)


def test_decoding_step_by_step_gives_the_same_probabilities(decoder: PointerDecoder) -> None:
    question, prefix = source([[-1, 4, 1, 6]], 5), torch.tensor([[CLS, 10, 12, 11]])
    with torch.inference_mode():
        whole = decoder(question, prefix)
        cache = decoder.start(question)
        steps = torch.stack([decoder.step(cache, prefix[:, i]) for i in range(4)], 1)
    assert torch.allclose(whole, steps, atol=1e-6)


def test_a_piece_inside_a_word_is_copied_only_after_the_piece_before_it(copying: PointerDecoder) -> None:
    question, prefix = source_of_pieces(20, 21, 22, 30, 21), torch.tensor([[CLS, 20, 21, 30, 11]])
    with torch.inference_mode():
        probabilities = copying(question, prefix)[0]
    # Pieces 21 and 22 are at positions 2 and 3; 21 follows 20 and 30, 22 follows 21.
    possible = probabilities[:, [G + 2, G + 3]] > 0
    assert possible.tolist() == [[False, False], [True, False], [False, True], [True, False], [False, False]]
    assert probabilities.sum(-1).tolist() == pytest.approx([1.0] * 5, abs=1e-5)


def test_a_piece_is_more_probable_after_the_two_pieces_before_it(copying: PointerDecoder) -> None:
    question, prefix = source_of_pieces(40, 41, 42, 50, 41, 43), torch.tensor([[CLS, 40, 41]])
    with torch.inference_mode():
        before = copying(question, prefix)[0, 2]
        copying.follow[1] += 2
        after = copying(question, prefix)[0, 2]
        copying.follow[1] -= 2
    # 42, at position 3, follows 40 41, and 43, at position 6, follows 50 41.
    assert after[G + 3] > before[G + 3]
    assert after[G + 6] < before[G + 6]


def test_copying_step_by_step_gives_the_same_probabilities(copying: PointerDecoder) -> None:
    question, prefix = source_of_pieces(20, 21, 22, 30, 21), torch.tensor([[CLS, 20, 21, 22, 30]])
    with torch.inference_mode():
        cache = copying.start(question)
        steps = []
        for i in range(5):
            if i:
                cache.select(torch.tensor([0]))
            steps.append(copying.step(cache, prefix[:, i]))
        assert torch.allclose(copying(question, prefix), torch.stack(steps, 1), atol=1e-6)


def test_several_hypotheses_of_several_questions_are_decoded_as_if_alone(copying: PointerDecoder) -> None:
    # Two questions with two hypotheses each; after two steps the hypotheses of each question are swapped.
    one, other = source_of_pieces(20, 21, 22, 30, 21), source_of_pieces(40, 41, 42, 50, 41)
    both = Source(*(torch.cat(parts) for parts in zip(one, other, strict=True)))
    prefix = torch.tensor([[CLS, 20, 21, 22], [CLS, 20, 10, 11], [CLS, 40, 41, 42], [CLS, 50, 41, 42]])
    swapped = torch.tensor([1, 0, 3, 2])
    with torch.inference_mode():
        cache = copying.start(both)
        copying.step(cache, prefix[swapped, 0])
        cache.select(torch.arange(4))
        copying.step(cache, prefix[swapped, 1])
        cache.select(swapped)
        third = copying.step(cache, prefix[:, 2])
        cache.select(torch.tensor([3, 2]))
        fourth = copying.step(cache, prefix[[3, 2], 3])
        whole = copying(both.select(torch.tensor([0, 0, 1, 1])), prefix)
    assert torch.allclose(third, whole[:, 2], atol=1e-6)
    assert not torch.allclose(whole[0, 2], whole[1, 2], atol=1e-3)
    # Only the second question is left.
    assert torch.allclose(fourth, whole[[3, 2], 3], atol=1e-6)


def test_a_later_piece_changes_nothing_before_it(decoder: PointerDecoder) -> None:
    question = source([[-1, 4, 1, 6]])
    with torch.inference_mode():
        one, other = (decoder(question, torch.tensor([[CLS, 10, last]])) for last in (11, 12))
    assert torch.equal(one[:, :2], other[:, :2])
    assert not torch.equal(one[:, 2], other[:, 2])


def test_the_decoder_is_initialised_from_layers_of_the_encoder(
    small: Encoder, decoder: PointerDecoder
) -> None:
    encoder_parts.initialise_from_encoder(decoder, small.model, [1, 0])
    theirs = small.model.encoder.layer[1]
    ours: Any = decoder.layers[0]
    assert torch.equal(ours.own.query.weight, theirs.attention.self.query.weight)
    assert torch.equal(ours.cross.value.weight, theirs.attention.self.value.weight)
    assert torch.equal(ours.norms[2].bias, theirs.output.LayerNorm.bias)
    narrow = DecoderConfig(32, layers=1, heads=2, inner=40)
    other = PointerDecoder(narrow, encoder_parts.embeddings_of(small.model), [SEP])
    with pytest.raises(ValueError, match="another shape"):
        encoder_parts.initialise_from_encoder(other, small.model, [0])


def test_the_state_of_a_decoder_contains_no_embeddings(decoder: PointerDecoder) -> None:
    assert not {"words", "positions", "norm", "generated"} & set(decoder.state_dict())
