"""What a base model can be used for, found out before anything is trained over it: its kind is read from its
configuration, all else is observed on a few pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from models.encoder.base_files import base_digest, resolve_base
from models.encoder.layers import layers_of
from models.encoder.model import Encoder

WORDS = ["the", "drug", "caused", "pain"]


@dataclass(frozen=True, slots=True)
class Need:
    """What a task needs of its base."""

    pieces: int = 128
    """that are read at once, special tokens included"""
    is_split: bool = False
    """whether some layers are trained apart from those below them"""
    encoder_decoder: bool = False
    """whether an encoder-decoder will do as well"""


def refusal(base: str, need: Need) -> str:
    """Why a base cannot do what is needed, in one line; empty where it can.

    Its weights are fetched, and their digest is the one that a release will state.
    """
    try:
        family, why = _family_and_refusal(base, need)
    except Exception as error:
        family, why = "", f"it cannot be read: {type(error).__name__}: {error}"
    named = f"{base} (of the family {family})" if family else base
    return " ".join(f"{named} cannot be used: {why}".split()) if why else ""


def _family_and_refusal(base: str, need: Need) -> tuple[str, str]:
    from transformers import AutoConfig  # noqa: PLC0415  seconds to import

    config = AutoConfig.from_pretrained(resolve_base(base))
    family = str(config.model_type)
    base_digest(base)
    if config.is_encoder_decoder:
        return family, "" if need.encoder_decoder else "it is an encoder-decoder, an encoder is needed"
    encoder = Encoder.load(base, max_pieces=need.pieces)
    return family, _cannot_read(encoder) or _cannot_be_split(encoder, need)


def is_encoder_decoder(base: str) -> bool:
    """Whether a base is an encoder-decoder."""
    from transformers import AutoConfig  # noqa: PLC0415

    return bool(AutoConfig.from_pretrained(resolve_base(base)).is_encoder_decoder)


def _cannot_read(encoder: Encoder) -> str:
    """Why the encoder gives no vectors of words."""
    rows = encoder.model.get_input_embeddings().num_embeddings
    if max(encoder.tokenizer.get_vocab().values()) >= rows:
        return f"its tokenizer has pieces above {rows}, the number of its embeddings"
    (split,) = encoder.split([WORDS])
    if not all(split.count):
        return "its tokenizer leaves nothing of some words"
    longest = (split.pieces * encoder.max_pieces)[: encoder.max_pieces - 2]
    try:
        with torch.no_grad():
            encoder.forward([longest])
    except (IndexError, RuntimeError):
        most = getattr(encoder.model.config, "max_position_embeddings", "fewer")
        return f"it cannot read {encoder.max_pieces} pieces at once (its positions: {most})"
    with torch.no_grad():
        one, other = encoder.forward([split.pieces, [*split.pieces[:-1], split.pieces[0]]])
    if torch.equal(one[0], other[0]):
        return "it reads from left to right only, so that a word does not know those after it"
    return ""


def _cannot_be_split(encoder: Encoder, need: Need) -> str:
    """Why the layers cannot be frozen or split as needed."""
    if not need.is_split:
        return ""
    try:
        layers_of(encoder.model)
    except ValueError as error:
        return str(error)
    return ""
