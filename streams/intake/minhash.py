"""MinHash signatures of texts (Broder 1997) over character 5-shingles.

The share of equal places of two signatures estimates the Jaccard similarity of the two sets of shingles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Signature = NDArray[np.uint16]
SHINGLE = 5
#: Places of a signature; the standard error of an estimate is at most 0.5 / sqrt(PLACES) = 0.044.
PLACES = 128
#: Characters that are read; the time grows with their number.
READ = 2000
#: Characters from the start that have a signature of their own, for reposts that are cut off.
HEAD = 80
_random = np.random.default_rng(1997)
_FACTORS = _random.integers(1, 2**32, PLACES, dtype=np.uint32) | np.uint32(1)
_SUMMANDS = _random.integers(0, 2**32, PLACES, dtype=np.uint32)
_POWERS = np.array([1_000_003**i % 2**32 for i in range(SHINGLE)], dtype=np.uint32)
_MIX = np.uint32(0x9E3779B1)


def signatures(text: str) -> tuple[Signature, Signature]:
    """The minima of the whole text and of its head, (128,) each; a short text is padded."""
    codes = np.frombuffer(text[:READ].ljust(SHINGLE).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    n = len(codes) - SHINGLE + 1
    hashes = np.zeros(n, dtype=np.uint32)
    for i in range(SHINGLE):
        hashes += codes[i : i + n] * _POWERS[i]
    hashes = (hashes ^ (hashes >> np.uint32(15))) * _MIX
    hashes ^= hashes >> np.uint32(13)
    permuted = hashes[:, None] * _FACTORS + _SUMMANDS
    head = permuted[: HEAD - SHINGLE + 1].min(axis=0)
    whole = np.minimum(head, permuted[HEAD - SHINGLE + 1 :].min(axis=0)) if n > HEAD else permuted.min(axis=0)
    return _short(whole), _short(head)


def _short(minima: NDArray[np.uint32]) -> Signature:
    """The lowest 16 bits, which halve the memory. Two different minima agree in them once in 65,536 times."""
    places: Signature = (minima >> np.uint32(16)).astype(np.uint16)
    return places
