"""Finds reposts: by reference, and near copies by banded MinHash signatures, within a window of time.

The window has a fixed number of places, so its memory is fixed too: a report overwrites the oldest one. Each
band has a table in which a hash of its values leads to a few places; a full bucket drops its oldest entry.
The candidates found so are compared by their whole signatures.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.intake.minhash import PLACES, Signature, plain, signatures

#: Values of a signature that must all be equal, and how many such bands are tried: all of the text's, and
#: some of its head's, which must be more alike.
BAND = 4
WHOLE_BANDS, HEAD_BANDS = PLACES // BAND, 12
BANDS = WHOLE_BANDS + HEAD_BANDS
#: Places that one bucket leads to.
WAYS = 4
#: Similarity from which two texts are near copies, and from which their heads are the same.
SIMILAR, SAME_HEAD = 0.5, 0.8
#: Letters, digits and spaces. Several people write the same shorter text, so it is no copy.
SHORTEST = 20
_DAY = 24 * 3600.0
_MIX = np.random.default_rng(7).integers(1, 2**63, BAND, dtype=np.uint64) | np.uint64(1)
_BAND_SALT = np.arange(BANDS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


class _Signatures(NamedTuple):
    """MinHash signature of a text, and its bucket in each band's table."""

    values: Signature
    """Of the whole text and of its head; shape (256,)."""
    buckets: NDArray[np.int64]
    """One for each band, in all tables together; shape (44,)."""


class Window:
    """The first sightings of the last days, at most `size` of them, and what repeated them."""

    def __init__(self, size: int, days: float, similar: float = SIMILAR) -> None:
        self._size = size
        self._similar = similar
        self._seconds = days * _DAY
        self._signatures = np.zeros((size, 2 * PLACES), dtype=np.uint16)
        self._times = np.full(size, -np.inf)
        self._order = np.zeros(size, dtype=np.int64)
        self._ids: list[str | None] = [None] * size
        self._places: dict[str, int] = {}
        self._buckets = 1 << max(10, (size - 1).bit_length() - 1)
        self._tables = np.full((BANDS * self._buckets, WAYS), -1, dtype=np.int32)
        self._next_way = np.zeros(BANDS * self._buckets, dtype=np.uint8)
        self._tables_start = np.arange(BANDS) * self._buckets
        self._firsts: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._added = 0

    def __len__(self) -> int:
        """The number of first sightings that are kept."""
        return len(self._places)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._firsts

    def first(self, id_: str, text: str, now: float, repost_of: str | None = None) -> tuple[str | None, str]:
        """The id of the first report that this one repeats, and how it was found: by `reference` or by its
        `text`; None for a first sighting, which is kept. `text`: without what was masked. `now`: seconds.

        A repeated report is found to be what it was found to be before.
        """
        earlier = self._known(repost_of, now) if repost_of is not None else None
        if earlier is not None and earlier != id_:
            self._remember(id_, earlier, now)
            return earlier, "reference"
        marks = self._marks(text)
        earlier = self._nearest(marks, now)
        if repost_of is not None:
            # The original was never seen here, so its first repost stands for it.
            self._remember(repost_of, earlier or id_, now)
        self._remember(id_, earlier or id_, now)
        if earlier is None:
            self._keep(id_, marks, now)
        return (earlier, "text") if earlier is not None and earlier != id_ else (None, "")

    def learn(self, id_: str, text: str, duplicate_of: str | None, at: float) -> None:
        """Takes over what an earlier process decided about a report, which it received at this time."""
        self._remember(id_, duplicate_of or id_, at)
        if duplicate_of is None:
            self._keep(id_, self._marks(text), at)

    def forget(self, id_: str) -> None:
        """A deleted report is no first sighting any more; an unknown one is no error."""
        self._firsts.pop(id_, None)
        self._clear(self._places.get(id_))

    def _known(self, id_: str, now: float) -> str | None:
        """The first sighting of what has this id, unless that is too old or was deleted."""
        first, at = self._firsts.get(id_, (None, 0.0))
        return first if first in self._firsts and now - at <= self._seconds else None

    def _remember(self, id_: str, first: str, now: float) -> None:
        self._firsts[id_] = first, now
        self._firsts.move_to_end(id_)
        if len(self._firsts) > self._size:
            self._firsts.popitem(last=False)

    def _nearest(self, marks: _Signatures | None, now: float) -> str | None:
        """The earliest report in the window that is a near copy."""
        if marks is None:
            return None
        led = self._tables.take(marks.buckets, axis=0)
        led = led[led >= 0]
        if not len(led):
            return None
        places = np.unique(led)
        places = places[now - self._times[places] <= self._seconds]
        if not len(places):
            return None
        equal = self._signatures[places] == marks.values
        whole, head = equal[:, :PLACES].mean(axis=1), equal[:, PLACES:].mean(axis=1)
        copies = places[(whole >= self._similar) | (head >= SAME_HEAD)]
        return self._ids[copies[self._order[copies].argmin()]] if len(copies) else None

    def _clear(self, place: int | None) -> None:
        """Empties a place; what the tables lead to there is too old for ever."""
        if place is not None and (id_ := self._ids[place]) is not None:
            del self._places[id_]
            self._ids[place], self._times[place] = None, -np.inf

    def _keep(self, id_: str, marks: _Signatures | None, now: float) -> None:
        self._clear(self._places.get(id_))
        if marks is None:
            return
        place = self._added % self._size
        self._clear(place)
        self._places[id_] = place
        self._signatures[place], self._times[place] = marks.values, now
        self._ids[place], self._order[place] = id_, self._added
        ways = self._next_way[marks.buckets]
        self._tables[marks.buckets, ways] = place
        self._next_way[marks.buckets] = (ways + 1) % WAYS
        self._added += 1

    def _marks(self, text: str) -> _Signatures | None:
        """None for a text that is too short."""
        whole = plain(text)
        if len(whole) < SHORTEST:
            return None
        values = np.concatenate(signatures(whole))
        bands = values.reshape(-1, BAND)[:BANDS].astype(np.uint64)
        mixed = ((bands + np.uint64(1)) * _MIX).sum(axis=1, dtype=np.uint64) + _BAND_SALT
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        buckets = (mixed >> np.uint64(32)).astype(np.int64) % self._buckets + self._tables_start
        return _Signatures(values, buckets)
