"""Finds reposts, and earlier reports of which a text may tell the same, within a window of time.

A repost is found by reference, by its words, which are those of an earlier text but for slips of the pen, or
as its beginning. Any other text that is like an earlier one is only a candidate: whether both tell of one
case is decided where they are coded (`streams.store.same_case`).

The window has a fixed number of places, so its memory is bounded: a report overwrites the oldest one. Each
band of a MinHash signature has a table in which a hash of its values leads to a few places; a full bucket
drops its oldest entry. The texts that most bands lead to are compared word by word.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.reading_form.form import reading_form
from streams.intake.frames import Frames
from streams.intake.minhash import PLACES, READ, signatures
from streams.intake.wording import CUT, CUT_BY_DOTS, Words, agreement, is_repeated, own_lines, words_of

#: Values of a signature that must all be equal, and how many such bands are tried: all of the text's, and
#: some of its head's, for reposts that were cut off.
BAND = 4
WHOLE_BANDS, HEAD_BANDS = PLACES // BAND, 12
BANDS = WHOLE_BANDS + HEAD_BANDS
#: Places that one bucket leads to, and how many of those that all lead to are compared.
WAYS, COMPARED = 4, 8
#: Letters, digits and spaces. Several people write the same shorter text, so it is no copy.
SHORTEST = 20
_DAY = 24 * 3600.0
_DOTS = re.compile(r"(?:\u2026|\.{3})\W*\Z")
_MIX = np.random.default_rng(7).integers(1, 2**63, BAND, dtype=np.uint64) | np.uint64(1)
_BAND_SALT = np.arange(BANDS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


class Sighting(NamedTuple):
    """What the window has of a report."""

    first: str | None = None
    """The report that this one repeats."""
    how: str = ""
    """How that was found: by `reference` or by its `text`."""
    similar: str | None = None
    """Where it repeats none: the first of the reports that are like it, one like the other."""
    reworded: bool = False
    """Whether some words of one of these are others."""


class _Read(NamedTuple):
    """A text as it is compared."""

    digest: int
    text: str
    """All words, of a long text the first."""
    whole: Words
    """None of a long text: what follows the first of them may be another text."""
    head: Words
    own: Words
    """Without quotes, signature, and what stands before and behind it as in other posts."""
    tail: Words
    lines: Sequence[str]
    """Of the writer: those of `head`, `own` and `tail`."""
    buckets: NDArray[np.int64]
    """Of the writer's own words, one for each band, in all tables together; shape (44,)."""
    looked: NDArray[np.int64]
    """Also those of all words: the first text of a thread is kept with its title."""
    cut: int
    """Letters of an earlier text with which this one may end."""


class Window:
    """The different texts of the last days, at most `size` of them, and what repeated them."""

    def __init__(self, size: int, days: float) -> None:
        self._size = size
        self._seconds = days * _DAY
        self._times = np.full(size, -np.inf)
        self._order = np.zeros(size, dtype=np.int64)
        self._digests = np.zeros(size, dtype=np.uint64)
        self._ids: list[str | None] = [None] * size
        self._similar: list[str | None] = [None] * size
        self._reworded = np.zeros(size, dtype=np.bool_)
        self._texts: list[tuple[str, str]] = [("", "")] * size
        self._places: dict[str, int] = {}
        self._exact: dict[int, int] = {}
        self._frames = Frames(size)
        self._buckets = 1 << max(10, (size - 1).bit_length() - 1)
        self._tables = np.full((BANDS * self._buckets, WAYS), -1, dtype=np.int32)
        self._next_way = np.zeros(BANDS * self._buckets, dtype=np.uint8)
        self._tables_start = np.arange(BANDS) * self._buckets
        self._firsts: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._added = 0

    def __len__(self) -> int:
        """The number of texts that are kept."""
        return len(self._places)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._firsts

    def sight(
        self, id_: str, text: str, now: float, repost_of: str | None = None, *, keeps_text: bool = True
    ) -> Sighting:
        """What the report repeats, and what it is like. `text`: without what was masked. `now`: seconds. A
        text that may not be kept is found again only as a whole.

        A repeated report is found to be what it was found to be before.
        """
        earlier = self._known(repost_of, now) if repost_of is not None else None
        if earlier is not None and earlier != id_:
            self._remember(id_, earlier, now)
            return Sighting(earlier, "reference")
        read = self._read(id_, text)
        seen = self._alike(id_, read, now) if read is not None else Sighting()
        earlier = seen.first
        if repost_of is not None:
            # The original was never seen here, so its first repost stands for it.
            self._remember(repost_of, earlier or id_, now)
        self._remember(id_, earlier or id_, now)
        if earlier is None:
            self._keep(id_, read, seen, now, keeps_text=keeps_text)
        return seen

    def learn(self, id_: str, text: str, seen: Sighting, at: float, *, keeps_text: bool = True) -> None:
        """Takes over what an earlier process found of a report, which it received at this time."""
        self._remember(id_, seen.first or id_, at)
        if seen.first is None:
            self._keep(id_, self._read(id_, text), seen, at, keeps_text=keeps_text)

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

    def _alike(self, id_: str, read: _Read, now: float) -> Sighting:
        """The report that this one repeats, or else the first of those that are like it."""
        place = self._exact.get(read.digest)
        if place is not None and now - self._times[place] <= self._seconds:
            if self._ids[place] != id_:
                return Sighting(self._ids[place], "text")
            return Sighting(similar=self._similar[place], reworded=bool(self._reworded[place]))
        found = Sighting()
        for place in self._candidates(read.looked, now):
            earlier = self._ids[place]
            if earlier is None or earlier == id_:
                continue
            whole, own = (tuple(part.split()) for part in self._texts[place])
            verdict = agreement(whole, read.whole, read.cut)
            if verdict == "same":
                return Sighting(earlier, "text")
            own = _without(own, read.head, read.tail)
            if whole != own or read.whole != read.own:
                verdict = agreement(own, read.own, read.cut)
            if verdict is None and is_repeated(own, read.own, read.lines, len(read.head)):
                verdict = "near"
            if verdict is None or (found.similar is not None and not found.reworded):
                continue
            first = self._known(self._similar[place] or earlier, now)
            # The end of a long text is not compared.
            reworded = verdict == "reworded" or not read.whole or bool(self._reworded[place])
            if first not in (None, id_) and not (found.similar and reworded):
                found = Sighting(similar=first, reworded=reworded)
        return found

    def _candidates(self, buckets: NDArray[np.int64], now: float) -> Iterator[int]:
        """Places of texts that may be like it, first those that most bands lead to."""
        led = self._tables.take(buckets, axis=0)
        places, bands = np.unique(led[led >= 0], return_counts=True)
        valid = now - self._times[places] <= self._seconds
        places, bands = places[valid], bands[valid]
        best = np.lexsort((self._order[places], -bands))[:COMPARED]
        return iter(places[best].tolist())

    def _clear(self, place: int | None) -> None:
        """Empties a place; what the tables lead to there is too old for ever."""
        if place is not None and (id_ := self._ids[place]) is not None:
            del self._places[id_]
            self._ids[place], self._times[place] = None, -np.inf
            self._texts[place] = "", ""
            if self._exact.get(digest := int(self._digests[place])) == place:
                del self._exact[digest]

    def _keep(self, id_: str, read: _Read | None, seen: Sighting, now: float, *, keeps_text: bool) -> None:
        self._clear(self._places.get(id_))
        if read is None:
            return
        place = self._added % self._size
        self._clear(place)
        self._places[id_] = self._exact[read.digest] = place
        self._digests[place], self._times[place], self._order[place] = read.digest, now, self._added
        self._ids[place], self._similar[place], self._reworded[place] = id_, seen.similar, seen.reworded
        self._added += 1
        if keeps_text:
            own = " ".join(read.own)
            self._texts[place] = read.text, read.text if own == read.text else own
            ways = self._next_way[read.buckets]
            self._tables[read.buckets, ways] = place
            self._next_way[read.buckets] = (ways + 1) % WAYS

    def _read(self, id_: str, text: str) -> _Read | None:
        """None for a text that is too short."""
        text = reading_form(text).text
        whole = words_of(text)
        joined = " ".join(whole)
        if len(joined) < SHORTEST:
            return None
        digest = int.from_bytes(blake2b(joined.encode(errors="replace"), digest_size=8).digest())
        lines = own_lines(text)
        head, own, tail = self._frames.split(id_, lines)
        own = tuple(" ".join(own)[:READ].split())
        cut = CUT_BY_DOTS if _DOTS.search(text[-READ:]) else CUT
        compared = whole if len(joined) <= READ else ()
        bands = looked = self._bands(" ".join(own))
        if head or tail:
            looked = np.concatenate([self._bands(joined), bands])
        return _Read(digest, joined[:READ], compared, head, own, tail, lines, bands, looked, cut)

    def _bands(self, text: str) -> NDArray[np.int64]:
        bands = np.concatenate(signatures(text)).reshape(-1, BAND)[:BANDS].astype(np.uint64)
        mixed = ((bands + np.uint64(1)) * _MIX).sum(axis=1, dtype=np.uint64) + _BAND_SALT
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        buckets: NDArray[np.int64] = (mixed >> np.uint64(32)).astype(np.int64) % self._buckets
        return buckets + self._tables_start


def _without(words: Words, head: Words, tail: Words) -> Words:
    """Words without those that stand before and behind the text they are compared with."""
    if head and words[: len(head)] == head:
        words = words[len(head) :]
    return words[: -len(tail)] if tail and words[-len(tail) :] == tail else words
