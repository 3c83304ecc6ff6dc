"""When two spellings are the same long form."""

from __future__ import annotations

import re

_POSSESSIVE = re.compile(r"['\u2019]s\b")
#: Words up to this length keep a final s.
_SHORT = 3


def key(long_form: str) -> str:
    """Equal for spellings that differ in case, hyphens, spaces, the possessive or the plural ("Crohn's
    disease", "crohn diseases").
    """
    words = re.findall(r"[^\W_]+", _POSSESSIVE.sub("", long_form.lower()))
    return "".join(word[:-1] if len(word) > _SHORT and re.search("[^s]s$", word) else word for word in words)
