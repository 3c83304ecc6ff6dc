"""Removes credentials of URLs from text that is printed, logged or served."""

from __future__ import annotations

import re

_USER = re.compile(r"://[^/\s]*@")
_QUERY = re.compile(r"([?&][\w.~%$-]+=)[^&\s\"'<>]+")


def redact(text: str) -> str:
    """The text with the user, the password and all values of the query of every URL in it replaced by `***`.

    All values, because each store has names of its own for its signatures and keys.
    """
    return _QUERY.sub(r"\1***", _USER.sub("://***@", text))
