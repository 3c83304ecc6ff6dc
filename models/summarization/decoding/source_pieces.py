"""Questions as the inputs of encoder and decoder: truncated pieces, and what may be copied of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.summarization.decoding.decoder_layers import Source
from models.summarization.decoding.extended_vocabulary import ExtendedVocabulary

#: The last 1/TAIL of the pieces that are read of a long text are taken from its end.
TAIL = 4


def source_pieces(encoder: Encoder, texts: Sequence[str]) -> list[list[int]]:
    """At most `max_pieces` - 2 pieces of each text: of a longer text its beginning and its end, where the
    question often is.
    """
    if not texts:
        return []
    encoded = encoder.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [both_ends(ids, encoder.max_pieces - 2) for ids in encoded["input_ids"]]


def both_ends(ids: Sequence[int], limit: int) -> list[int]:
    """All ids, or `limit` of them from both ends."""
    tail = limit // TAIL
    return list(ids) if len(ids) <= limit else [*ids[: limit - tail], *ids[len(ids) - tail :]]


def with_special_pieces(encoder: Encoder, pieces: Sequence[int]) -> list[int]:
    """A row as the encoder reads it, with the pieces that open and close it."""
    begin, end = encoder.ends
    return [begin, *pieces, end]


def source_of(
    encoder: Encoder, vocabulary: ExtendedVocabulary, sources: Sequence[Sequence[int]], hidden: Tensor
) -> Source:
    """The decoder's input: `hidden` (texts, padded pieces, dimension), the encoder's states of `sources`,
    with what may be copied of each.
    """
    texts, width = hidden.shape[:2]
    mask, continues_word = (torch.zeros(texts, width, dtype=torch.bool) for _ in range(2))
    copy_numbers, preceding = torch.full((texts, width), -1), torch.full((texts, 2, width), -1)
    for row, source in enumerate(sources):
        pieces = with_special_pieces(encoder, source)
        mask[row, : len(pieces)] = True
        copy_numbers[row, : len(pieces)] = torch.tensor(vocabulary.copy_numbers(pieces))
        preceding[row, :, : len(pieces)] = torch.tensor(vocabulary.preceding(pieces))
        continues_word[row, : len(pieces)] = torch.tensor(vocabulary.continues_word(pieces))
    device = hidden.device
    return Source(hidden, *(t.to(device) for t in (mask, copy_numbers, preceding, continues_word)))
