"""Control records: which release is live, and where a source resumes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from models.scores import Comparison

Version = Annotated[str, StringConstraints(pattern="^[0-9a-f]{12}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A release becomes live. The last announcement of a task is valid, whatever its time, so a rollback is
    one more announcement. Where signatures are required, only one with a higher sequence replaces another.
    """

    task: Literal["ner", "acronym", "relation", "normalization", "summarization", "judge"]
    version: Version
    reason: Literal["publish", "rollback"]
    """`publish` is the word of the wire for an announcement."""
    announced_at: datetime
    previous: Version | None = None
    """The release that was live before. A worker that starts and cannot load `version` loads this one, which
    the running workers have kept.
    """
    forced: bool = False
    """Announced although it was not compared with the live release, or was worse."""
    compared: Comparison | None = None
    sequence: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """Rises by one with each announcement of a key; 0 in those of earlier versions."""

    @property
    def key(self) -> str:
        """On the topic."""
        return self.task


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where a source of live posts resumes; the broker has confirmed everything before it."""

    source: str
    """The key on the topic: the protocol and, where there may be several, the server or the feed."""
    position: dict[str, Any]
    """Has the protocol's own fields; no text, no author and no credentials."""
    written_at: datetime
