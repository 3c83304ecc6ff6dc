"""Finds what may be the data of a real person or a real account."""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.drugs import DrugLexicon

_PATTERNS = {
    "an e-mail address": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    # Hosts of the reserved ending belong to nobody (RFC 2606).
    "a web address": re.compile(
        r"(?:https?://|\bwww\.)(?!\S*\.example\b)\S+|(?<![@\w.-])[\w-]+\.(?:com|org|net|info|co\.uk)\b",
        re.IGNORECASE,
    ),
    # The numbers that are reserved for fiction are left out.
    "a telephone number": re.compile(
        r"(?<![\w.])(?!\S*555[-. ]?01)"
        r"(?:\+\d[\d ()./-]{7,}\d|\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}|\d{3}-\d{4})\b(?!-)"
    ),
}
_HANDLE = re.compile(r"(?<![\w.])@(\w+)")
#: Handles that are plainly invented: @user12, @xanax_user3.
_INVENTED = re.compile(r"(?:\w+_)?user\d+", re.IGNORECASE)


def personal_data(text: str, lexicon: DrugLexicon) -> Iterator[str]:
    """What a text holds of it: kind and words. A handle may be an invented one, or a drug's name."""
    for kind, pattern in _PATTERNS.items():
        for match in pattern.finditer(text):
            yield f"{kind}: {match[0]}"
    for match in _HANDLE.finditer(text):
        if not _INVENTED.fullmatch(match[1]) and lexicon.generic(match[1]) is None:
            yield f"a handle that may be real: {match[0]} (use @user and a number)"
