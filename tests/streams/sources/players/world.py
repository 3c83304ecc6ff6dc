"""What happens on a made-up network: posts, edits, deletions, and what must be known of them at the end."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["create", "update", "delete"]


@dataclass(slots=True, kw_only=True)
class Happening:
    """One event; `at` is set when it is published."""

    kind: Kind
    number: int
    """Of the post."""
    text: str = ""
    at: float = 0.0


@dataclass(slots=True)
class World:
    """Happenings in the order of their publication; those up to `published` have happened."""

    happenings: list[Happening]
    published: int = 0
    final: dict[int, str | None] = field(default_factory=dict)
    """The last text of each post; None where it is deleted."""
    about: str = "post"

    @classmethod
    def made(
        cls, seed: int, posts: int, *, deletes: bool = True, delete_first: bool = True, about: str = "post"
    ) -> World:
        """One post in eight is deleted later, one in ten edited; a few deletions come before their post. Each
        text begins with `about` and the number of the post, which no other text has.
        """
        draw = random.Random(seed)
        slots: list[tuple[float, Happening]] = []
        final: dict[int, str | None] = {}
        for number in range(posts):
            text, chance = f"{about} {number}: this drug kept me awake", draw.random()
            slots.append((number, Happening(kind="create", number=number, text=text)))
            final[number] = text
            if chance < 0.10:
                final[number] = f"{text}, edited"
                edit = Happening(kind="update", number=number, text=final[number] or "")
                slots.append((number + draw.uniform(1, 30), edit))
            elif chance < 0.22 and deletes:
                final[number] = None
                slots.append((number + draw.uniform(1, 40), Happening(kind="delete", number=number)))
            elif chance < 0.24 and deletes and delete_first:
                final[number] = None
                slots.append((number - 0.5, Happening(kind="delete", number=number)))
        slots.sort(key=lambda slot: slot[0])
        return cls([happening for _, happening in slots], final=final, about=about)

    def publish(self, n: int) -> None:
        """Lets the next `n` happen now, each in a microsecond of its own."""
        now = round(time.time() * 1e6)
        for i in range(self.published, min(len(self.happenings), self.published + n)):
            self.happenings[i].at = (now + i) / 1e6
        self.published = min(len(self.happenings), self.published + n)

    @property
    def deleted_marks(self) -> set[str]:
        """What the texts of the deleted posts begin with, and no other text."""
        return {f"{self.about} {number}:" for number, text in self.final.items() if text is None}

    @property
    def is_over(self) -> bool:
        return self.published == len(self.happenings)
