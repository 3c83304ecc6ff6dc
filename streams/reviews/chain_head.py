"""Length and last hash of the chain, kept in PV_STATE beside the topic: the chain alone cannot show that its
last decisions were cut off.
"""

from __future__ import annotations

import fcntl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from models.releases.store import sync
from streams.codec import adapter, encode
from streams.records import Decision
from streams.reviews.chain import BrokenChain
from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Head:
    """Of a chain with `length` decisions, the hash of the last one."""

    length: int
    hash: str


class KeptHead:
    """The file. It is written after the broker has a decision, so a crash leaves it one decision behind, and
    never ahead.
    """

    def __init__(self, settings: Settings) -> None:
        self.path: Path = settings.state_folder / "reviews.json"

    def read(self) -> Head | None:
        """None where nothing was kept on this machine. Raises BrokenChain for a file that is damaged."""
        try:
            head: Head = adapter(Head).validate_json(self.path.read_bytes(), strict=True)
            return head
        except FileNotFoundError:
            return None
        except (OSError, ValidationError):
            raise BrokenChain(f"{self.path} cannot be read") from None

    def check(self, reviews: Sequence[Decision], head: Head | None) -> None:
        """Whether the decisions begin with those of a head that was read before them: another process of this
        machine may keep a later one meanwhile. Raises BrokenChain.
        """
        if head is None or head.length == 0:
            return
        advice = f"If the topic was created anew on purpose, remove {self.path}"
        if len(reviews) < head.length:
            raise BrokenChain(
                f"the topic has {len(reviews)} decisions, but it had {head.length}: the last were cut off. "
                + advice
            )
        if reviews[head.length - 1].hash != head.hash:
            raise BrokenChain(f"decision {head.length - 1} is not the one that was kept. {advice}")

    def write(self, reviews: Sequence[Decision]) -> None:
        """Keeps the present head, unless another process has kept a later one; raises OSError."""
        if not reviews:
            return
        self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(BrokenChain):
                kept = self.read()
                if kept is not None and kept.length > len(reviews):
                    return
            temporary = self.path.with_suffix(".new")
            temporary.write_bytes(encode(Head(len(reviews), reviews[-1].hash)))
            sync(temporary)
            temporary.replace(self.path)
            sync(self.path.parent)
