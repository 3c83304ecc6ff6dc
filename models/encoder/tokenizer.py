"""A WordPiece tokenizer read from its file, with the part of transformers' interface that inference uses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Encoding, Tokenizer

from models.once import once

#: Words whose pieces are kept: a stream repeats nearly all of them.
KEPT_WORDS = 16_384
#: The special tokens of a BERT; other models with its pieces name theirs in their settings.
_SPECIAL = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"}


class Pieces:
    """What a tokenizer made of texts."""

    def __init__(self, encoded: Sequence[Encoding]) -> None:
        self._encoded = encoded

    def __getitem__(self, key: str) -> list[Any]:
        """Of each text its token numbers (`input_ids`) or their spans in the text (`offset_mapping`)."""
        match key:
            case "input_ids":
                return [e.ids for e in self._encoded]
            case "offset_mapping":
                return [e.offsets for e in self._encoded]
        raise KeyError(key)


class WordPieceTokenizer:
    """Splits texts as transformers' BertTokenizer does, without truncation; threads may share it."""

    #: Set as in transformers' tokenizers that map pieces to words.
    is_fast = True

    def __init__(self, tokenizer: Tokenizer, special: Mapping[str, str] = _SPECIAL) -> None:
        """The tokenizer must have the special tokens; it is changed."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}
        numbers = {name: tokenizer.token_to_id(token) for name, token in special.items()}
        self.cls_token_id, self.sep_token_id = numbers["cls"], numbers["sep"]
        self.pad_token_id, self.unk_token_id = numbers["pad"], numbers["unk"]
        self.bos_token_id = self.eos_token_id = None

    def __len__(self) -> int:
        """Number of tokens, added ones included."""
        return int(self._tokenizer.get_vocab_size())

    def __call__(self, texts: Sequence[str], **_: Any) -> Pieces:
        """The pieces of each text without special tokens. Options of transformers' tokenizers have no
        effect.
        """
        return Pieces(self._tokenizer.encode_batch(list(texts), add_special_tokens=False))

    def of_words(self, words: Set[str]) -> Mapping[str, list[int]]:
        """The token numbers of each word, which do not depend on the words beside it."""
        known = self._known
        if len(known) > KEPT_WORDS:  # another thread goes on with the old ones
            known = self._known = {}
        if missing := [[word] for word in words if word not in known]:
            encoded = self._tokenizer.encode_batch(missing, is_pretokenized=True, add_special_tokens=False)
            known.update((word, e.ids) for (word,), e in zip(missing, encoded, strict=True))
        return known

    def add_tokens(self, tokens: Sequence[AddedToken]) -> int:
        """Adds tokens, and returns the number of those that were new."""
        self._known = {}
        return int(self._tokenizer.add_tokens(list(tokens)))


@once
def load_wordpiece(folder: Path) -> WordPieceTokenizer | None:
    """The tokenizer in the folder of a base, which all encoders of the process share: to be copied before
    tokens are added. None where transformers would make another one of its files.
    """
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_bytes())
        stored = json.loads((folder / "tokenizer.json").read_bytes())
    except FileNotFoundError:
        return None
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
        "strip_accents": settings.get("strip_accents"),
        "lowercase": settings.get("do_lower_case", True),
    }
    kinds = [stored["model"].get("type"), (stored["pre_tokenizer"] or {}).get("type")]
    special = {name: settings.get(f"{name}_token", token) for name, token in _SPECIAL.items()}
    if (
        stored["normalizer"] != normalizer
        or kinds != ["WordPiece", "BertPreTokenizer"]
        or not all(isinstance(token, str) for token in special.values())
        or not set(special.values()) <= stored["model"]["vocab"].keys()
    ):
        return None
    return WordPieceTokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")), special)
