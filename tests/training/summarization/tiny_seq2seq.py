"""A BART and a T5 with random weights and a vocabulary of letters, as files."""

from __future__ import annotations

import string
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing

from tests.models.tiny import library

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def bart(folder: Path) -> str:
    vocabulary = _tokenizer(folder, "<s>")
    torch.manual_seed(7)
    model = library().BartForConditionalGeneration(
        library().BartConfig(
            vocab_size=vocabulary,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=24,
            decoder_ffn_dim=24,
            max_position_embeddings=300,
            init_std=0.2,
            bos_token_id=0,
            pad_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=2,
            forced_eos_token_id=2,
        )
    )
    model.save_pretrained(folder)
    return str(folder)


def t5(folder: Path) -> str:
    vocabulary = _tokenizer(folder, None)
    torch.manual_seed(7)
    model = library().T5ForConditionalGeneration(
        library().T5Config(
            vocab_size=vocabulary,
            d_model=16,
            d_kv=8,
            d_ff=24,
            num_layers=1,
            num_heads=2,
            pad_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    )
    model.save_pretrained(folder)
    return str(folder)


def _tokenizer(folder: Path, begin: str | None) -> int:
    """Saves a tokenizer whose pieces are single characters; returns the number of pieces."""
    pieces = [*SPECIAL, *string.ascii_letters, *string.digits, *string.punctuation, " "]
    tokenizer = Tokenizer(WordLevel({p: i for i, p in enumerate(pieces)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Split("", "isolated")
    single = "$A </s>" if begin is None else f"{begin} $A </s>"
    tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=[("<s>", 0), ("</s>", 2)])
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    library().PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return len(pieces)
