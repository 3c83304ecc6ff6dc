"""The decoder with copying: its numbers, its probabilities, its loss and its beginning."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.summarization import pointer_decoder
from models.summarization.pointer_decoder import Pieces, Pointer, Shape, Source

CLS, SEP, UNKNOWN = 2, 3, 1
PIECES = Pieces([SEP, 10, 11], CLS, SEP, UNKNOWN, {21, 22})


@pytest.fixture(scope="module")
def decoder(small: Encoder) -> Pointer:
    torch.manual_seed(3)
    shape = Shape(32, layers=2, heads=2, inner=48, longest=16)
    return Pointer(shape, pointer_decoder.embeddings_of(small.model), [SEP, 10, 11, 12]).eval()


def source(copied: list[list[int]], seed: int = 0) -> Source:
    """Nothing of it stands behind anything that is said."""
    rows = torch.tensor(copied)
    memory = torch.randn(*rows.shape, 32, generator=torch.Generator().manual_seed(seed))
    before = torch.full((len(rows), 2, rows.shape[1]), -1)
    return Source(memory, torch.ones_like(rows, dtype=torch.bool), rows, before, rows == -2)


def test_a_piece_has_one_number_wherever_it_stands() -> None:
    whole = [CLS, 20, 10, 21, 20, UNKNOWN, SEP]
    # 10 may be generated; 20 is under its first place; what nobody reads is not copied.
    assert PIECES.copied(whole) == [-1, 4, 1, 6, 4, -1, -1]
    assert PIECES.targets([10, 11, 20, 30], whole) == [1, 2, 4, -1, 0]
    assert [PIECES.piece(n, whole) for n in (0, 1, 4, 6)] == [SEP, 10, 20, 21]


def test_the_end_comes_first() -> None:
    with pytest.raises(ValueError, match="ends a summary"):
        Pieces([10, SEP], CLS, SEP)


def test_probabilities_of_all_numbers_sum_to_one(decoder: Pointer) -> None:
    found = decoder(source([[-1, 4, 1, 6, 4, -1], [-1, -1, -1, -1, -1, -1]]), torch.tensor([[CLS, 10]] * 2))
    assert found.shape == (2, 2, 4 + 6)
    assert found.sum(-1).flatten().tolist() == pytest.approx([1.0] * 4, abs=1e-5)
    # What cannot be copied has no share, and nothing to copy leaves all to what is generated.
    assert found[0, :, [5, 7, 8, 9]].abs().max() == 0
    assert found[0, :, [4, 6]].min() > 0
    assert found[1, :, 4:].abs().max() == 0


def test_padding_changes_nothing(decoder: Pointer) -> None:
    one = source([[-1, 4, 1, -1]])
    noise = torch.full((1, 4, 32), 7.0)
    mask = torch.tensor([[True] * 4 + [False] * 4])
    copied, inside = torch.tensor([[-1, 4, 1, -1] + [-1] * 4]), torch.zeros(1, 8, dtype=torch.bool)
    padded = Source(torch.cat([one.memory, noise], 1), mask, copied, torch.full((1, 2, 8), -1), inside)
    said = torch.tensor([[CLS, 10, 11]])
    with torch.inference_mode():
        assert torch.allclose(decoder(one, said), decoder(padded, said)[..., :8], atol=1e-6)


def test_step_by_step_is_the_same_as_all_at_once(decoder: Pointer) -> None:
    seen, said = source([[-1, 4, 1, 6]], 5), torch.tensor([[CLS, 10, 12, 11]])
    with torch.inference_mode():
        whole = decoder(seen, said)
        cache = decoder.start(seen)
        steps = torch.stack([decoder.step(cache, said[:, i]) for i in range(4)], 1)
    assert torch.allclose(whole, steps, atol=1e-6)


def seen(*pieces: int) -> Source:
    """A question of these pieces."""
    whole = [CLS, *pieces, SEP]
    memory = torch.randn(1, len(whole), 32, generator=torch.Generator().manual_seed(7))
    numbers = (PIECES.copied(whole), PIECES.before(whole), PIECES.inside(whole))
    mask = torch.ones(1, len(whole), dtype=torch.bool)
    return Source(memory, mask, *(torch.tensor([n]) for n in numbers))


def test_a_word_goes_on_as_the_question_does(decoder: Pointer) -> None:
    # 21 and 22 go on with a word; 3 numbers come before those of the seven places.
    own, said = seen(20, 21, 22, 30, 21), torch.tensor([[CLS, 20, 21, 30, 11]])
    with torch.inference_mode():
        found = Pointer.forward(three(decoder), own, said)[0]
    inside = found[:, [3 + 2, 3 + 3]] > 0
    assert inside.tolist() == [[False, False], [True, False], [False, True], [True, False], [False, False]]
    assert found.sum(-1).tolist() == pytest.approx([1.0] * 5, abs=1e-5)


def test_what_follows_the_last_two_copied_pieces_is_likelier(decoder: Pointer) -> None:
    own, said = seen(40, 41, 42, 50, 41, 43), torch.tensor([[CLS, 40, 41]])
    network = three(decoder)
    with torch.inference_mode():
        before = network(own, said)[0, 2]
        network.follow[1] += 2
        after = network(own, said)[0, 2]
        network.follow[1] -= 2
    # 42 stands behind 40 41, 43 behind 50 41.
    assert after[3 + 3] > before[3 + 3]
    assert after[3 + 6] < before[3 + 6]


def three(decoder: Pointer) -> Pointer:
    """The same over the numbers of PIECES."""
    own = Pointer(decoder.shape, dict(decoder.named_buffers()), PIECES.generated).eval()
    own.load_state_dict(decoder.state_dict() | {"bias": decoder.bias[:3]})
    return own


def test_steps_with_copies_are_the_same_as_all_at_once(decoder: Pointer) -> None:
    own, said = seen(20, 21, 22, 30, 21), torch.tensor([[CLS, 20, 21, 22, 30]])
    network = three(decoder)
    with torch.inference_mode():
        cache = network.start(own)
        steps = []
        for i in range(5):
            if i:
                cache.rows(torch.tensor([0]))
            steps.append(network.step(cache, said[:, i]))
        assert torch.allclose(network(own, said), torch.stack(steps, 1), atol=1e-6)


def test_hypotheses_side_by_side_are_those_of_questions_by_themselves(decoder: Pointer) -> None:
    # Two questions with two hypotheses each; after two steps the hypotheses of each change places.
    one, other = seen(20, 21, 22, 30, 21), seen(40, 41, 42, 50, 41)
    both = Source(*(torch.cat(parts) for parts in zip(one, other, strict=True)))
    said = torch.tensor([[CLS, 20, 21, 22], [CLS, 20, 10, 11], [CLS, 40, 41, 42], [CLS, 50, 41, 42]])
    turned = torch.tensor([1, 0, 3, 2])
    network = three(decoder)
    with torch.inference_mode():
        cache = network.start(both)
        network.step(cache, said[turned, 0])
        cache.rows(torch.arange(4))
        network.step(cache, said[turned, 1])
        cache.rows(turned)
        found = network.step(cache, said[:, 2])
        cache.rows(torch.tensor([3, 2]))
        later = network.step(cache, said[[3, 2], 3])
        whole = network(both.rows(torch.tensor([0, 0, 1, 1])), said)
    assert torch.allclose(found, whole[:, 2], atol=1e-6)
    assert not torch.allclose(whole[0, 2], whole[1, 2], atol=1e-3)
    # The first question is done: the other one goes on alone.
    assert torch.allclose(later, whole[[3, 2], 3], atol=1e-6)


def test_what_stands_before_a_place_opens_with_nothing() -> None:
    assert PIECES.before([CLS, 20, 21, SEP]) == [[-1, -1, 20, 21], [-1, -1, -1, 20]]
    assert PIECES.inside([CLS, 20, 21, SEP]) == [False, False, True, False]


def test_a_later_piece_changes_nothing_before_it(decoder: Pointer) -> None:
    seen = source([[-1, 4, 1, 6]])
    with torch.inference_mode():
        one, other = (decoder(seen, torch.tensor([[CLS, 10, last]])) for last in (11, 12))
    assert torch.equal(one[:, :2], other[:, :2])
    assert not torch.equal(one[:, 2], other[:, 2])


def probabilities() -> Tensor:
    return torch.tensor([[[0.5, 0.2, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4], [0.25] * 4]])


def test_the_loss_without_smoothing_is_the_mean_of_the_right_ones() -> None:
    targets = torch.tensor([[0, 3, -1]])
    wanted = -(math.log(0.5) + math.log(0.4)) / 2
    assert float(pointer_decoder.loss(probabilities(), targets, 3, 0.0)) == pytest.approx(wanted)


def test_smoothing_gives_the_mass_to_the_other_pieces_of_the_dictionary() -> None:
    # Eq. 3 with three pieces in the dictionary: half of lambda for each of the two others.
    one = -0.9 * math.log(0.5) - 0.05 * (math.log(0.2) + math.log(0.1))
    # A copied piece is none of the three: all of them are others.
    other = -0.9 * math.log(0.4) - 0.05 * (math.log(0.1) + math.log(0.2) + math.log(0.3))
    targets = torch.tensor([[0, 3, -1]])
    assert float(pointer_decoder.loss(probabilities(), targets, 3, 0.1)) == pytest.approx((one + other) / 2)


def test_nothing_to_learn_costs_nothing() -> None:
    assert float(pointer_decoder.loss(probabilities(), torch.full((1, 3), -1), 3, 0.1)) == 0


def test_the_decoder_begins_as_layers_of_the_encoder(small: Encoder, decoder: Pointer) -> None:
    pointer_decoder.begin_as(decoder, small.model, [1, 0])
    theirs = small.model.encoder.layer[1]
    ours: Any = decoder.layers[0]
    assert torch.equal(ours.own.query.weight, theirs.attention.self.query.weight)
    assert torch.equal(ours.cross.value.weight, theirs.attention.self.value.weight)
    assert torch.equal(ours.norms[2].bias, theirs.output.LayerNorm.bias)
    other = Pointer(Shape(32, layers=1, heads=2, inner=40), pointer_decoder.embeddings_of(small.model), [SEP])
    with pytest.raises(ValueError, match="another shape"):
        pointer_decoder.begin_as(other, small.model, [0])


def test_a_release_of_a_decoder_holds_no_embeddings(decoder: Pointer) -> None:
    assert not {"words", "positions", "norm", "rows"} & set(decoder.state_dict())
