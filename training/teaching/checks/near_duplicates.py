"""Near-duplicates: MinHash proposes pairs of texts, and the Jaccard index of their shingles decides."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from datasketch import MinHash, MinHashLSH

PERMUTATIONS = 64
#: Texts whose signatures are made at a time.
CHUNK = 1000
_WORD = re.compile(r"\w+")


def normalised(text: str) -> str:
    """The words in lower case, separated by one space; apostrophes are left out."""
    return " ".join(_WORD.findall(re.sub(r"['\u2019]", "", text.lower())))


@dataclass(frozen=True, slots=True)
class Shingles:
    """How a text is cut, and from which Jaccard index on two texts are near-duplicates."""

    n: int
    threshold: float
    of_words: bool = False
    at_least: int = 0
    """words of a text"""
    at_most: int = 10**6

    def of(self, key: str) -> set[bytes]:
        """The shingles of a normalised text; none where its length is out of bounds."""
        words = key.split()
        if not self.at_least <= len(words) <= self.at_most:
            return set()
        if self.of_words:
            return {" ".join(words[i : i + self.n]).encode() for i in range(len(words) - self.n + 1)}
        padded = f" {key} "
        return {padded[i : i + self.n].encode() for i in range(max(1, len(padded) - self.n + 1))}


#: Of short texts characters, since few words make few shingles; a text between the bounds is in both.
SHORT = Shingles(5, 0.6, at_least=3, at_most=24)
LONG = Shingles(3, 0.5, of_words=True, at_least=12)
PHRASE = Shingles(3, 0.8)


class Index:
    """Texts in which near-duplicates are looked up."""

    def __init__(self, texts: Sequence[str], shingles: Shingles) -> None:
        self._shingles = shingles
        # A lower threshold than that of the decision: MinHash misses pairs at its own.
        self._lsh = MinHashLSH(threshold=max(0.2, shingles.threshold - 0.15), num_perm=PERMUTATIONS)
        self._keys = [normalised(t) for t in texts]
        self._numbers: dict[str, list[int]] = {}
        for i, key in enumerate(self._keys):
            self._numbers.setdefault(key, []).append(i)
        for key, _, signature in self._signatures(self._numbers):
            self._lsh.insert(key, signature)

    def near(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, float]]:
        """For texts with names: name, number of the indexed near-duplicate, and Jaccard index."""
        names: dict[str, list[str]] = {}
        for name, text in texts:
            names.setdefault(normalised(text), []).append(name)
        for key, own, signature in self._signatures(names):
            for other in self._lsh.query(signature):
                theirs = self._shingles.of(other)
                jaccard = len(own & theirs) / len(own | theirs)
                if jaccard >= self._shingles.threshold:
                    yield from ((name, n, jaccard) for name in names[key] for n in self._numbers[other])

    def inside(self) -> Iterator[tuple[int, int, float]]:
        """Pairs of indexed texts: later number, earlier number, Jaccard index."""
        for name, earlier, jaccard in self.near((str(i), key) for i, key in enumerate(self._keys)):
            if earlier < int(name):
                yield int(name), earlier, jaccard

    def _signatures(self, keys: Iterable[str]) -> Iterator[tuple[str, set[bytes], MinHash]]:
        cut = ((key, found) for key in keys if (found := self._shingles.of(key)))
        while chunk := list(islice(cut, CHUNK)):
            made = MinHash.generator(
                [list(found) for _, found in chunk], num_perm=PERMUTATIONS, hashfunc=zlib.crc32
            )
            yield from ((key, found, signature) for (key, found), signature in zip(chunk, made, strict=True))
