"""A writer over a tiny encoder: a decoder with random weights."""

from __future__ import annotations

import torch

from models.encoder.model import Encoder
from models.summarization.decoding import encoder_parts
from models.summarization.decoding.beam_search import Search
from models.summarization.decoding.decoder_layers import DecoderConfig
from models.summarization.decoding.extended_vocabulary import ExtendedVocabulary
from models.summarization.decoding.generation import PointerWriter
from models.summarization.decoding.pointer_decoder import PointerDecoder
from models.summarization.decoding.source_pieces import source_pieces


def pointer_writer(small: Encoder, beams: int = 3) -> PointerWriter:
    """A decoder that can generate a few words."""
    torch.manual_seed(9)
    words = ["what", "is", "the", "drug", "?"]
    pieces = sorted({p for own in source_pieces(small, words) for p in own})
    generated = [small.tokenizer.sep_token_id, *pieces]
    decoder = PointerDecoder(
        DecoderConfig(32, layers=2, heads=2, inner=48, longest=16),
        encoder_parts.embeddings_of(small.model),
        generated,
    )
    encoder_parts.initialise_from_encoder(decoder, small.model, [0, 1])
    vocabulary = ExtendedVocabulary.of_encoder(small, generated)
    return PointerWriter(small, decoder.eval(), vocabulary, Search(beams=beams, longest=10))
