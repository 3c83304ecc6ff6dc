"""The keyed hash that stands for an author: HMAC-SHA256 (RFC 2104) of the handle."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field

from streams.settings import Settings

HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class AuthorKeys:
    """The present key, and the former one while keys are rotated; both may be missing."""

    present: bytes = field(default=b"", repr=False)
    former: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, settings: Settings) -> AuthorKeys:
        keys = (settings.author_key, settings.author_key_old)
        return cls(*(key.get_secret_value().encode() for key in keys))

    def hash(self, author: str) -> str | None:
        """64 hexadecimal digits by the present key; None without one."""
        return _hash(self.present, author) if self.present else None

    def hashes(self, author: str) -> frozenset[str]:
        """The hashes under which reports of this author may be kept, one for each key."""
        return frozenset(_hash(key, author) for key in (self.present, self.former) if key)


def _hash(key: bytes, author: str) -> str:
    # Handles are compared without case and without the sign before them.
    name = author.strip().lstrip("@").lower()
    return hmac.new(key, name.encode("utf-8", "surrogatepass"), "sha256").hexdigest()
