"""Live feeds for the benchmark of a steady load: a Jetstream server, and files that grow. All publish at a
given rate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.world import World

PACE_SECONDS = 0.02


class Feed:
    """What happens on one input topic: posts, edits and deletions, of which some are published."""

    def __init__(self, topic: str, seed: int) -> None:
        self.topic = topic
        self.world = World([])
        self._seed = seed

    def extend(self, happenings: int) -> None:
        """Adds about so many; numbers of posts go on where those before ended."""
        first = len(self.world.final)
        more = World.made(self._seed + first, round(happenings / 1.22), delete_first=False)
        for happening in more.happenings:
            happening.number += first
        self.world.happenings += more.happenings
        self.world.final |= {number + first: text for number, text in more.final.items()}

    def publish(self, n: int) -> None:
        self.world.publish(n)

    def id_of(self, number: int) -> str:
        return post_id(number)

    def expected(self) -> dict[str, str | None]:
        """The id of each report and its last text; None where it is deleted."""
        return {self.id_of(number): text for number, text in self.world.final.items()}


class Lines(Feed):
    """JSON Lines in a file that grows."""

    def __init__(self, topic: str, seed: int, folder: Path) -> None:
        super().__init__(topic, seed)
        self.file = folder / f"{topic}.jsonl"
        self.file.touch()

    def publish(self, n: int) -> None:
        begin = self.world.published
        super().publish(n)
        with self.file.open("ab") as file:
            for happening in self.world.happenings[begin : self.world.published]:
                line: dict[str, Any] = {"id": self.id_of(happening.number), "text": happening.text}
                line |= {"deleted": True} if happening.kind == "delete" else {}
                file.write(orjson.dumps(line) + b"\n")

    def id_of(self, number: int) -> str:
        return f"{self.topic}-{number}"


class Server(Jetstream):
    """Sends what is published elsewhere, to one client that stays."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.keeps_alive = True

    async def _publish(self) -> None:
        """The feeds do."""


class Pace:
    """Publishes the happenings of all feeds at `rate` a second together; `shares` of it for each."""

    def __init__(self, feeds: Sequence[Feed], shares: Sequence[float]) -> None:
        self.rate = 0.0
        self._feeds = feeds
        self._shares = shares

    @property
    def published(self) -> int:
        return sum(feed.world.published for feed in self._feeds)

    @property
    def is_over(self) -> bool:
        return all(feed.world.is_over for feed in self._feeds)

    async def run(self) -> None:
        """Until cancelled."""
        due = [0.0] * len(self._feeds)
        last = time.monotonic()
        while True:
            await asyncio.sleep(PACE_SECONDS)
            now = time.monotonic()
            for i, (feed, share) in enumerate(zip(self._feeds, self._shares, strict=True)):
                due[i] += self.rate * share * (now - last)
                feed.publish(int(due[i]))
                due[i] -= int(due[i])
            last = now
