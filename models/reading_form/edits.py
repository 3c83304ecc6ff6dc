"""What the steps towards a reading form give."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """What is read in the place of a part of a text, which is never empty and never equal to it."""

    start: int
    end: int
    new: str
