"""A BERT, a RoBERTa and an MPNet with random weights and a vocabulary of letters, as files."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    MPNetConfig,
    MPNetModel,
    MPNetTokenizer,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
)

POSITIONS = 300
# The library does not type the making of a model.
_Bert: Any = BertModel
_Roberta: Any = RobertaModel
_MPNet: Any = MPNetModel
_MPNetTokenizer: Any = MPNetTokenizer
_RobertaTokenizer: Any = RobertaTokenizer


def bert(folder: Path) -> str:
    """Every word becomes one piece a letter; what is no ASCII letter, digit or mark is unknown."""
    characters = string.ascii_lowercase + string.digits
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pain", "drug", "the"]
    vocabulary += [*characters, *(f"##{c}" for c in characters), *string.punctuation]
    torch.manual_seed(7)
    model = _Bert(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=48,
            max_position_embeddings=POSITIONS,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=0.2,
        )
    )
    model.save_pretrained(folder)
    BertTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}).save_pretrained(folder)
    return str(folder)


def roberta(folder: Path) -> str:
    """Every byte is a piece, and a few pairs of bytes."""
    merges = [("p", "a"), ("i", "n"), ("pa", "in"), ("\u0120", "d")]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    vocabulary += [a + b for a, b in merges]
    torch.manual_seed(7)
    model = _Roberta(
        RobertaConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=48,
            # RoBERTa's positions begin after the number of its padding token.
            max_position_embeddings=POSITIONS + 2,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            initializer_range=0.2,
        )
    )
    model.save_pretrained(folder)
    numbers = {piece: i for i, piece in enumerate(vocabulary)}
    _RobertaTokenizer(vocab=numbers, merges=merges).save_pretrained(folder)
    return str(folder)


def mpnet(folder: Path) -> str:
    """As the tiny BERT, with relative positions too."""
    letters = [*string.ascii_lowercase, *string.digits]
    vocabulary = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", "pain", "drug", "the"]
    vocabulary += [*letters, *(f"##{c}" for c in letters), *string.punctuation]
    torch.manual_seed(7)
    model = _MPNet(
        MPNetConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=48,
            max_position_embeddings=POSITIONS + 2,
            initializer_range=0.2,
        )
    )
    model.save_pretrained(folder)
    _MPNetTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}).save_pretrained(folder)
    return str(folder)
