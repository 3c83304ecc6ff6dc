"""From word pieces to a sentence in the spelling of its source text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from models.summarization.decoding.word_marks import is_wordpiece


def written(tokenizer: Any, ids: Sequence[int], source: str) -> str:
    """The text of pieces, given as their numbers, in the spelling of its source text."""
    if is_wordpiece(tokenizer):
        return detokenize(tokenizer.convert_ids_to_tokens(list(ids)), source)
    decoded = tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return _respelled(" ".join(decoded.split()), source)


def detokenize(pieces: Sequence[str], source: str) -> str:
    """The text of lower-case word pieces, with the first letter in upper case and each word spelled as in the
    source (upper case, accents).
    """
    words: list[str] = []
    for piece in pieces:
        if piece.startswith("##") and words:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    text = " ".join(words)
    text = re.sub(r" ([?.,;:!%)\]])", r"\1", re.sub(r"([(\[]) ", r"\1", text))
    text = re.sub(r"(?<=[\w%]) ?(['\u2019/-]) ?(?=\w)", r"\1", text)
    text = re.sub(r" (\(e?s\))|(?<=\d)(\.) (?=\d)", r"\1\2", text)
    return _respelled(text, source)


def _respelled(text: str, source: str) -> str:
    """The text with the first letter in upper case and each lower-case word spelled as in the source."""
    spellings = {"i": "I"} | _spellings(source)
    text = re.sub(r"\w+", lambda m: spellings.get(m.group(), m.group()), text)
    return text[:1].upper() + text[1:]


def _spellings(source: str) -> dict[str, str]:
    """From each word as the tokenizer reads it (lower case, without accents) to its spelling in the source.

    Left out are words that occur as the tokenizer reads them, words whose only capital may be due to the
    beginning of a sentence, and all words of a text in capitals.
    """
    spellings: dict[str, str] = {}
    unchanged: set[str] = set()
    matches = list(re.finditer(r"\w+", source))
    in_capitals = sum(m.group().isupper() for m in matches) > len(matches) / 2
    for match in matches:
        word = match.group()
        key = _without_accents(word.lower())
        if word == key:
            unchanged.add(word)
            continue
        inside_sentence = source[: match.start()].rstrip()[-1:].isalnum()
        if not in_capitals and (word != word.capitalize() or inside_sentence):
            spellings.setdefault(key, word)
    return {key: word for key, word in spellings.items() if key not in unchanged}


def _without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
