"""Near-duplicates: pairs of texts by the Jaccard index of their shingles."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

#: Of a product of two numbers that are not exact in binary.
ROUNDING = 1e-9
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

    def of(self, key: str) -> set[str]:
        """The shingles of a normalised text; none where its length is out of bounds."""
        words = key.split()
        if not self.at_least <= len(words) <= self.at_most:
            return set()
        if self.of_words:
            return {" ".join(words[i : i + self.n]) for i in range(len(words) - self.n + 1)}
        padded = f" {key} "
        return {padded[i : i + self.n] for i in range(max(1, len(padded) - self.n + 1))}


#: Of short texts characters, since few words make few shingles; a text between the bounds is in both.
SHORT = Shingles(5, 0.6, at_least=3, at_most=24)
LONG = Shingles(3, 0.5, of_words=True, at_least=12)
PHRASE = Shingles(3, 0.8)


class Index:
    """Texts in which near-duplicates are looked up, all of them by prefix and positional filtering (Xiao et
    al. 2008, "Efficient similarity joins for near duplicate detection").

    Two texts of m and n shingles with a Jaccard index of at least t have c = t / (1 + t) (m + n) in common.
    With the shingles of each text in one order, at their first common one both have c left, and it is among
    the first n - ceil(t n) + 1. With the rarest first, few texts are compared.
    """

    def __init__(self, texts: Sequence[str], shingles: Shingles) -> None:
        self._shingles = shingles
        self._numbers: dict[str, list[int]] = {}
        for i, text in enumerate(texts):
            self._numbers.setdefault(normalised(text), []).append(i)
        self._cut = {key: found for key in self._numbers if (found := shingles.of(key))}
        self._frequency = dict(Counter(shingle for found in self._cut.values() for shingle in found))
        # Key, number of shingles, and of those from this one on.
        self._by_shingle: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        self._pairs: list[tuple[str, str, float]] = []
        for key, found in self._cut.items():
            prefix = self._prefix(found)
            self._pairs += [(key, other, jaccard) for other, jaccard in self._like(found, prefix)]
            for left, shingle in prefix:
                self._by_shingle[shingle].append((key, len(found), left))

    def near(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, float]]:
        """For texts with names: name, number of the indexed near-duplicate, and Jaccard index."""
        names: dict[str, list[str]] = {}
        for name, text in texts:
            names.setdefault(normalised(text), []).append(name)
        for key, own in names.items():
            found = self._cut.get(key) or self._shingles.of(key)
            for other, jaccard in self._like(found, self._prefix(found)):
                yield from ((name, n, jaccard) for name in own for n in self._numbers[other])

    def inside(self) -> Iterator[tuple[int, int, float]]:
        """Pairs of indexed texts: later number, earlier number, Jaccard index."""
        for key in self._cut:
            yield from ((j, i, 1.0) for i, j in combinations(self._numbers[key], 2))
        for one, other, jaccard in self._pairs:
            for i, j in product(self._numbers[one], self._numbers[other]):
                yield max(i, j), min(i, j), jaccard

    def _like(self, own: set[str], prefix: Sequence[tuple[int, str]]) -> Iterator[tuple[str, float]]:
        """The keys of the near-duplicates of a text of these shingles, with the Jaccard index."""
        total, share = len(own), self._shingles.threshold / (1 + self._shingles.threshold)
        compared = {
            key
            for left, shingle in prefix
            for key, theirs, theirs_left in self._by_shingle.get(shingle, ())
            if (left if left < theirs_left else theirs_left) >= share * (total + theirs) - ROUNDING
        }
        for key in sorted(compared):
            common = len(own & self._cut[key])
            jaccard = common / (total + len(self._cut[key]) - common)
            if jaccard >= self._shingles.threshold:
                yield key, jaccard

    def _prefix(self, found: set[str]) -> list[tuple[int, str]]:
        """The rarest shingles of a text, each with the number of those from it on; unknown ones first."""
        frequency, total = self._frequency, len(found)
        ordered = sorted((frequency.get(shingle, 0), shingle) for shingle in found)
        kept = total - math.ceil(self._shingles.threshold * total - ROUNDING) + 1
        return [(total - i, shingle) for i, (_, shingle) in enumerate(ordered[:kept])]
