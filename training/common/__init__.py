"""What all training programs share: corpora, loop, batching, adapters, checkpoints, building of releases."""


class UserError(Exception):
    """What the user of a program can act on; the message is always one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
