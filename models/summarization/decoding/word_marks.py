"""How the pieces of a tokenizer show the words that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

#: What the first piece of a word begins with, by pieces of bytes and by SentencePiece.
BEGINNINGS = ("\u0120", "\u2581")
#: What a piece of WordPiece that continues a word begins with, and what a piece of BERTweet ends with that
#: is continued.
INSIDE, CONTINUED = "##", "@@"


class WordMarks(NamedTuple):
    """The numbers of the pieces that continue a word, and of those whose next piece does."""

    inside: frozenset[int] = frozenset()
    continued: frozenset[int] = frozenset()

    def continues_word(self, pieces: Sequence[int]) -> list[bool]:
        """Whether each piece continues the word of the piece before it."""
        before = [-1, *pieces[:-1]]
        return [p in self.inside or b in self.continued for p, b in zip(pieces, before, strict=True)]


def word_marks(tokenizer: Any) -> WordMarks:
    """The marks of a tokenizer; punctuation never continues a word."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    if is_wordpiece(tokenizer):
        return WordMarks(frozenset(n for token, n in vocabulary.items() if token.startswith(INSIDE)))
    if not tokenizer.is_fast:
        return WordMarks(
            continued=frozenset(n for token, n in vocabulary.items() if token.endswith(CONTINUED))
        )
    begins = next((b for b in BEGINNINGS if any(token.startswith(b) for token in vocabulary)), None)
    if begins is None:
        return WordMarks()
    return WordMarks(
        frozenset(n for t, n in vocabulary.items() if t[:1].isalnum() and not t.startswith(begins))
    )


def is_wordpiece(tokenizer: Any) -> bool:
    """Whether a piece that continues a word begins with ##."""
    return bool(tokenizer.is_fast and type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece")
