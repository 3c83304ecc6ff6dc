"""One tiny model with random weights for each further family of encoders, as files: like those of `tiny`."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from tests.models import tiny
from tests.models.tiny import POSITIONS, SIZE, library

LETTERS = [*string.ascii_lowercase, *string.digits]
#: The pieces of a SentencePiece model: each letter inside a word, at its beginning, and a few words.
PIECES = [*LETTERS, *string.ascii_uppercase, *string.punctuation, "pain", "drug", "the"]


def electra(folder: Path) -> str:
    """An ELECTRA whose embeddings are narrower than its layers."""
    vocabulary = _wordpiece(folder)
    config = library().ElectraConfig(
        vocab_size=vocabulary, embedding_size=16, max_position_embeddings=POSITIONS, **_without_dropout()
    )
    return _saved("ElectraModel", config, folder)


def distilbert(folder: Path) -> str:
    vocabulary = _wordpiece(folder)
    config = library().DistilBertConfig(
        vocab_size=vocabulary, max_position_embeddings=POSITIONS, dim=32, n_layers=2, n_heads=2,
        hidden_dim=48, dropout=0.0, attention_dropout=0.0, initializer_range=0.2,
    )  # fmt: skip
    return _saved("DistilBertModel", config, folder)


def deberta(folder: Path) -> str:
    """A DeBERTa-v3: no absolute positions, disentangled attention with shared keys, SentencePiece."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    vocabulary = [(p, 0.0) for p in special] + _sentence_pieces()
    library().DebertaV2Tokenizer(vocab=vocabulary, unk_id=3).save_pretrained(folder)
    config = library().DebertaV2Config(
        vocab_size=len(vocabulary) + 2, max_position_embeddings=POSITIONS, relative_attention=True,
        position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        position_biased_input=False, type_vocab_size=0, **_without_dropout(),
    )  # fmt: skip
    return _saved("DebertaV2Model", config, folder)


def modernbert(folder: Path) -> str:
    """A ModernBERT: rotary positions, a norm before each layer and one after the last, pieces of bytes."""
    merges = [("p", "a"), ("i", "n"), ("pa", "in"), ("\u0120", "d")]
    vocabulary = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *sorted(ByteLevel.alphabet())]
    vocabulary += [a + b for a, b in merges]
    tokenizer = Tokenizer(BPE({p: i for i, p in enumerate(vocabulary)}, merges))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    names = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "unk": "[UNK]", "mask": "[MASK]"}
    library().PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{n}_token": t for n, t in names.items()}
    ).save_pretrained(folder)
    config = library().ModernBertConfig(
        vocab_size=len(vocabulary), max_position_embeddings=POSITIONS, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=48, initializer_range=0.2, local_attention=16,
        global_attn_every_n_layers=2, pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2,
        sep_token_id=2,
    )  # fmt: skip
    return _saved("ModernBertModel", config, folder)


def albert(folder: Path) -> str:
    """An ALBERT: two layers that share their weights, embeddings narrower than the layers."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [(p, 0.0) for p in special] + _sentence_pieces()
    library().AlbertTokenizer(vocab=vocabulary).save_pretrained(folder)
    config = library().AlbertConfig(
        vocab_size=len(vocabulary), embedding_size=16, max_position_embeddings=POSITIONS, pad_token_id=0,
        **_without_dropout(),
    )  # fmt: skip
    return _saved("AlbertModel", config, folder)


def bertweet(folder: Path) -> str:
    """A BERTweet: a RoBERTa whose tokenizer is written in Python and gives no offsets."""
    folder.mkdir(parents=True, exist_ok=True)
    inside = [f"{c}@@" for c in (*LETTERS, *string.ascii_uppercase)]
    vocabulary = [*LETTERS, *string.ascii_uppercase, *string.punctuation, *inside, "pain"]
    (folder / "vocab.txt").write_text("".join(f"{p} 1\n" for p in vocabulary), encoding="utf-8")
    merges = [("p", "a"), ("pa", "i"), ("pai", "n</w>")]
    (folder / "bpe.codes").write_text("".join(f"{a} {b} 1\n" for a, b in merges), encoding="utf-8")
    tokenizer = library().BertweetTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"))
    tokenizer.save_pretrained(folder)
    config = library().RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=POSITIONS + 2, pad_token_id=1, bos_token_id=0,
        eos_token_id=2, tokenizer_class="BertweetTokenizer", **SIZE,
    )  # fmt: skip
    return _saved("RobertaModel", config, folder)


def _without_dropout() -> dict[str, Any]:
    return SIZE | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _wordpiece(folder: Path) -> int:
    """Saves the tokenizer of the tiny BERT; returns the number of pieces."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pain", "drug", "the"]
    vocabulary += [*LETTERS, *(f"##{c}" for c in LETTERS), *string.punctuation]
    library().BertTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}).save_pretrained(folder)
    return len(vocabulary)


def _sentence_pieces() -> list[tuple[str, float]]:
    return [(p, -float(3 * len(p) ** -1)) for p in ("\u2581", *PIECES, *(f"\u2581{p}" for p in PIECES))]


def _saved(name: str, config: Any, folder: Path) -> str:
    torch.manual_seed(7)
    getattr(library(), name)(config).save_pretrained(folder)
    return str(folder)


#: Name of a family to what saves a model of it in a folder and returns the folder's name.
FAMILIES: dict[str, Callable[[Path], str]] = {
    "bert": tiny.bert,
    "roberta": tiny.roberta,
    "electra": electra,
    "mpnet": tiny.mpnet,
    "distilbert": distilbert,
    "deberta-v3": deberta,
    "modernbert": modernbert,
    "albert": albert,
    "bertweet": bertweet,
}
