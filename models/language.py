"""Whether a text is in a language that a model was not trained on, by py3langid (Lui and Baldwin 2012).

Short texts are often names of drugs and diseases, which look like Latin or Spanish. A language is therefore
called unsupported only where the supported ones are very improbable.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from models.once import once

ENGLISH = ("en",)
#: Characters that are read; the time grows with their number.
_READ = 400
#: Minimum number of bytes of the letters of a text, in UTF-8, from which its language is identified; a Korean
#: syllable has three.
_LETTER_BYTES = 10
#: Below this probability of all supported languages together a text is in another one.
_IMPROBABLE = 0.01
_NOISE = re.compile(r"https?://\S+|[@#]\w+|[\d_]+")


def unsupported_language(text: str, supported: Collection[str] = ENGLISH) -> str | None:
    """The ISO 639-1 code of the text's language where that is certainly none of `supported`; else None."""
    plain = _NOISE.sub(" ", text[:_READ]).strip().lower()
    letters = "".join(filter(str.isalpha, plain))
    if len(letters.encode()) < _LETTER_BYTES:
        return None
    ranked = _identifier().rank(plain)
    if ranked[0][0] in supported or sum(p for code, p in ranked if code in supported) >= _IMPROBABLE:
        return None
    return str(ranked[0][0])


def load() -> None:
    """Loads the identifier, which otherwise the first text does: 0.7 s of processor time."""
    _identifier()


@once
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415  a second to load

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
