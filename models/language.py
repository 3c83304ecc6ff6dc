"""Whether a text is in a language that a model was not trained on, by py3langid (Lui and Baldwin 2012).

Short texts are often names of drugs and diseases, which look like Latin or Spanish. A language is therefore
called unsupported only where the supported ones are very improbable.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from models.drugs import bundled_lexicon
from models.once import once

ENGLISH = ("en",)
#: Characters that are read; the time grows with their number.
_READ = 400
#: Minimum number of bytes of the letters of a text, in UTF-8, from which its language is identified; a Korean
#: syllable has three.
_LETTER_BYTES = 10
#: Minimum number of words beside names of drugs where all letters are those of English: "Abilify akathisia"
#: could be in any language.
_WORDS = 3
#: Below this probability of all supported languages together a text is in another one.
_IMPROBABLE = 0.01
_NOISE = re.compile(r"https?://\S+|[@#]\w+|[\d_]+")
_WORD = re.compile(r"\w+")
#: No patient writes Latin: what looks like it are names of diseases.
_LATIN_LANGUAGE = "la"


def unsupported_language(text: str, supported: Collection[str] = ENGLISH) -> str | None:
    """The ISO 639-1 code of the text's language where that is certainly none of `supported`; else None."""
    plain = _NOISE.sub(" ", text[:_READ]).strip().lower()
    if _other(plain, supported) is None:
        return None
    # Few texts come this far. Names of drugs look like words of any language, so the others decide.
    rest = _without_drugs(plain)
    few = "".join(filter(str.isalpha, rest)).isascii() and len(_WORD.findall(rest)) < _WORDS
    return None if few else _other(rest, supported)


def _other(plain: str, supported: Collection[str]) -> str | None:
    letters = "".join(filter(str.isalpha, plain))
    if len(letters.encode()) < _LETTER_BYTES:
        return None
    ranked = _identifier().rank(plain)
    likely = sum(p for code, p in ranked if code in supported)
    if likely >= _IMPROBABLE or ranked[0][0] in (*supported, _LATIN_LANGUAGE):
        return None
    return str(ranked[0][0])


def _without_drugs(plain: str) -> str:
    parts, done = [], 0
    for span, _ in bundled_lexicon().find(plain):
        parts.append(plain[done : span.start])
        done = span.end
    return " ".join([*parts, plain[done:]])


def load() -> None:
    """Loads the identifier, which otherwise the first text does: 0.7 s of processor time."""
    _identifier()
    bundled_lexicon()


@once
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415  a second to load

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
