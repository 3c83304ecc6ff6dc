"""The first and last lines of posts that others had before: titles of threads, signatures, footers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from streams.intake.wording import Words, words_of


class Frames:
    """Whose first and last lines were which, of the latest posts: at most `size` lines."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._of: OrderedDict[int, str] = OrderedDict()

    def split(self, id_: str, lines: Sequence[str]) -> tuple[Words, Words, Words]:
        """The words of a first line that another post began with, those of the writer, and those of a last
        line that another post ended with.
        """
        words = [words for line in lines if (words := words_of(line))]
        head: Words = ()
        tail: Words = ()
        if len(words) > 1 and self._is_of_another(id_, ("first", words[0])):
            head = words.pop(0)
        if len(words) > 1 and self._is_of_another(id_, ("last", words[-1])):
            tail = words.pop()
        return head, tuple(word for line in words for word in line), tail

    def _is_of_another(self, id_: str, line: tuple[str, Words]) -> bool:
        key = hash(line)
        known = self._of.setdefault(key, id_)
        self._of.move_to_end(key)
        if len(self._of) > self._size:
            self._of.popitem(last=False)
        return known != id_
