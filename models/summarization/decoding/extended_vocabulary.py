"""The output numbers of a pointer-generator decoder: pieces that it generates and positions that
it copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.encoder.model import Encoder
from models.summarization.decoding.word_marks import WordMarks, word_marks


class ExtendedVocabulary:
    """Numbers 0 to G - 1 are the pieces that may be generated, number G + i is the piece at position i of the
    question (the extended vocabulary of See et al. 2017, section 2.2).

    A piece has one number: that of the generated piece, else that of its first position in the question.
    """

    def __init__(
        self,
        generated: Sequence[int],
        begin: int,
        end: int,
        unknown: int | None = None,
        marks: WordMarks = WordMarks(),  # noqa: B008  immutable
    ) -> None:
        """All arguments are ids of pieces. `generated`: G pieces, the first of which is `end`; `begin` and
        `end` open and close a sequence; `marks`: which pieces continue a word.
        """
        if generated[0] != end:
            raise ValueError("the first piece that may be generated must be the one that ends a summary")
        self.generated, self.begin, self.end, self.unknown = list(generated), begin, end, unknown
        self._marks = marks
        self._number = {piece: i for i, piece in enumerate(generated)}

    @classmethod
    def of_encoder(cls, encoder: Encoder, generated: Sequence[int]) -> ExtendedVocabulary:
        """Over the pieces of an encoder."""
        tokenizer = encoder.tokenizer
        return cls(generated, *encoder.ends, tokenizer.unk_token_id, word_marks(tokenizer))

    def __len__(self) -> int:
        """G."""
        return len(self.generated)

    def copy_numbers(self, source: Sequence[int]) -> list[int]:
        """The number of each piece of a question; -1 for special and unknown pieces, which are not copied."""
        first: dict[int, int] = {}
        never = (self.unknown, self.begin, self.end)
        for position, piece in enumerate(source):
            first.setdefault(piece, position)
        return [
            -1 if piece in never else self._number.get(piece, len(self) + first[piece]) for piece in source
        ]

    def preceding(self, source: Sequence[int]) -> list[list[int]]:
        """The pieces one and two positions before each piece of a question, in two rows; -1 where there is
        none. The opening piece counts as none.
        """
        whole = [-1, -1, -1, *source[1:]]
        return [whole[1 : 1 + len(source)], whole[: len(source)]]

    def continues_word(self, source: Sequence[int]) -> list[bool]:
        """Whether each piece of a question continues a word."""
        return self._marks.continues_word(source)

    def targets(self, summary: Sequence[int], source: Sequence[int]) -> list[int]:
        """The number of each piece of a summary and of the end; -1 for a piece that can neither be generated
        nor copied.
        """
        numbers = dict(zip(source, self.copy_numbers(source), strict=True))
        return [self._number.get(piece, numbers.get(piece, -1)) for piece in [*summary, self.end]]

    def piece(self, number: int, source: Sequence[int]) -> int:
        """The piece that a number stands for with this question."""
        return self.generated[number] if number < len(self) else source[number - len(self)]
