"""What all training programs share: corpora, loop, batching, adapters, checkpoints, building of releases."""

from __future__ import annotations

from pathlib import Path

#: Tables and texts that training reads.
DATA = Path(__file__).parents[1] / "data"


class UserError(Exception):
    """What the user of a program can act on; the message is always one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
