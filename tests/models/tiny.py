"""A BERT, a RoBERTa and an MPNet with random weights and a vocabulary of letters, as files."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel

POSITIONS = 300
#: Settings of all three models.
SIZE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "initializer_range": 0.2,
}


def library() -> Any:
    """transformers, whose constructors are not typed."""
    import transformers  # noqa: PLC0415  seconds to import

    return transformers


def bert(folder: Path) -> str:
    """A BERT whose words have one piece per letter; other characters than ASCII are unknown."""
    characters = string.ascii_lowercase + string.digits
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pain", "drug", "the"]
    vocabulary += [*characters, *(f"##{c}" for c in characters), *string.punctuation]
    torch.manual_seed(7)
    model = library().BertModel(
        library().BertConfig(
            vocab_size=len(vocabulary),
            max_position_embeddings=POSITIONS,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            **SIZE,
        )
    )
    model.save_pretrained(folder)
    library().BertTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}).save_pretrained(folder)
    return str(folder)


def roberta(folder: Path) -> str:
    """A RoBERTa whose pieces are bytes and a few pairs of bytes."""
    merges = [("p", "a"), ("i", "n"), ("pa", "in"), ("\u0120", "d")]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    vocabulary += [a + b for a, b in merges]
    torch.manual_seed(7)
    model = library().RobertaModel(
        library().RobertaConfig(
            vocab_size=len(vocabulary),
            # RoBERTa counts positions from the number of its padding token plus one.
            max_position_embeddings=POSITIONS + 2,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            **SIZE,
        )
    )
    model.save_pretrained(folder)
    numbers = {piece: i for i, piece in enumerate(vocabulary)}
    library().RobertaTokenizer(vocab=numbers, merges=merges).save_pretrained(folder)
    return str(folder)


def mpnet(folder: Path) -> str:
    """An MPNet, which has relative positions too, with the pieces of the tiny BERT under other numbers."""
    letters = [*string.digits, *string.ascii_lowercase]
    vocabulary = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", "pain", "drug", "the"]
    vocabulary += [*letters, *(f"##{c}" for c in letters), *string.punctuation]
    torch.manual_seed(7)
    model = library().MPNetModel(
        library().MPNetConfig(vocab_size=len(vocabulary), max_position_embeddings=POSITIONS + 2, **SIZE)
    )
    model.save_pretrained(folder)
    library().MPNetTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}).save_pretrained(folder)
    return str(folder)
