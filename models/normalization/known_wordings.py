"""The latest wordings of mentions with their codings, so that a wording is coded once: patients repeat each
other, and a coding without the sentence depends on the wording alone.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torch import Tensor

from models.types import Coding

#: Wordings that are kept, the longest unused is dropped first: some 4 MB. PsyTAR's 891 posts have 3,554; with
#: 512 of them kept 23 % of its mentions are known, with 2,048 32 %, with all 33 %.
MOST = 4096


class Known(NamedTuple):
    """The coding of a wording alone; `vector` (dimension,): by S_isolated, where the sentence is read."""

    coding: Coding
    vector: Tensor | None


class KnownWordings:
    """Wordings with what is known of them; several threads may use it at once."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, Known] = OrderedDict()
        self._counts = Counter(kept=0, searched=0)
        self._lock = threading.Lock()

    def of(self, wordings: Iterable[str]) -> dict[str, Known]:
        """What is known of the wordings."""
        with self._lock:
            found = {wording: self._kept[wording] for wording in wordings if wording in self._kept}
            for wording in found:
                self._kept.move_to_end(wording)
        return found

    def add(self, found: Mapping[str, Known], mentions: int) -> None:
        """Keeps what was found, for so many mentions, of the wordings that were not known."""
        with self._lock:
            self._kept |= found
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            self._counts.update(kept=mentions - len(found), searched=len(found))

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def taken(self) -> Counter[str]:
        """How many mentions had a known wording (`kept`), and how many were coded by the encoder and the
        search (`searched`), since the last call.
        """
        with self._lock:
            counts, self._counts = self._counts, Counter(kept=0, searched=0)
        return counts
