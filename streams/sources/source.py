"""The interface of a source: steps of a stream, interruptions, and the backoff after one."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from streams.intake.items import Item

Position = Mapping[str, Any]
"""Where a source resumes, as JSON; each protocol has its own keys."""
Reason = Literal["closed", "silent", "network", "http", "limited", "hostile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a source has read at once. A step without anything says that the connection is there."""

    items: tuple[Item, ...] = ()
    position: Position | None = None
    """Where to resume once the items of this step and of all before it are confirmed."""
    at: float | None = None
    """When the source published the newest item, in seconds since 1970."""
    malformed: int = 0
    """Messages that are not of the protocol, or too large."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Entries of a feed that are not sent, by outcome as in the metric."""
    excluded: int = 0
    """Posts that their author or the protocol asks to leave out."""
    gap: float = 0.0
    """Seconds of the stream that the source did not deliver, and will not."""


class Interrupted(Exception):
    """The connection ended, or could not be made; another try may succeed. Quotes nothing of it."""

    def __init__(self, reason: Reason, detail: str = "", wait: float | None = None) -> None:
        """`wait`: seconds that the source asks to wait."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason: Reason = reason
        self.wait = wait


class SourceFailed(Exception):
    """The source refuses, and trying again is useless; the message is one line for an operator."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """Waiting times in seconds that grow from `first` to `limit`."""

    first: float
    limit: float
    linear: bool = False

    def seconds(self, attempt: int) -> float:
        """The wait before attempt 1, 2 and so on."""
        return min(self.limit, self.first * (attempt if self.linear else 2.0 ** min(attempt - 1, 30)))


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after an interruption. Jitter keeps many clients from returning at once."""

    network: Ramp = Ramp(1.0, 60.0)
    http: Ramp = Ramp(5.0, 320.0)
    limited: Ramp = Ramp(60.0, 900.0)
    longest: float = 3600.0
    """The longest wait that a source can ask for, in seconds."""
    shortest: float = 1.0
    """The shortest. A source that asks for less is given the time of its ramp: `Retry-After: 0`, or a reset
    that is over by a clock that is ahead, would be asked again at once and for ever.
    """
    jitter: float = 0.2
    """The part of a wait that is random. What the source asks for is a lower bound."""

    def seconds(self, interruption: Interrupted, attempt: int, draw: float | None = None) -> float:
        """`draw`: a number from 0 to 1 in the place of a random one."""
        chance = random.random() if draw is None else draw
        if interruption.wait is not None and interruption.wait >= self.shortest:
            return min(interruption.wait, self.longest) * (1 + self.jitter * chance)
        ramps = {"http": self.http, "limited": self.limited}
        wait = ramps.get(interruption.reason, self.network).seconds(attempt)
        return wait * (1 - self.jitter * chance)


class Source(Protocol):
    """A source of live posts."""

    @property
    def name(self) -> str:
        """In metrics, logs and readiness; one for each source of a process."""

    @property
    def key(self) -> str:
        """Key of the position on the topic `cursors`."""

    @property
    def backoff(self) -> Backoff: ...

    @property
    def reuses_ids(self) -> bool:
        """An id may come again after its deletion, so only the order of arrival counts."""

    def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        """Connects and yields until the connection ends, which raises Interrupted; a source that has an end
        returns. Nothing is read ahead of what the caller takes, but the buffer of the connection.
        """
