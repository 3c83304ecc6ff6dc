"""Reads a secret that a file holds, as container platforms mount it."""

from __future__ import annotations

from pathlib import Path

#: A secret is a password or a token; a larger file is a mistake.
MAX_BYTES = 64 * 1024


def read_secret(path: Path) -> str:
    """The content of a file without the newline at its end; raises ValueError without quoting the content."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise ValueError(f"{path} is empty")
    return secret
