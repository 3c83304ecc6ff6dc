"""Whether a text is in a language that a model was not trained on, by py3langid (Lui and Baldwin 2012).

Short texts are often names of drugs and diseases, which look like Latin or Spanish. A language is therefore
called unsupported only where the supported ones are very improbable, and the words are not English either:
text-speak and mixtures of languages look like Welsh or none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from math import sqrt
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from models.drugs import bundled_lexicon
from models.once import once
from models.vocabulary import words_by_frequency

ENGLISH = ("en",)
#: Characters that are read; the time grows with their number.
_READ = 400
#: Minimum number of bytes of the letters of a text, in UTF-8, from which its language is identified; a Korean
#: syllable has three.
_LETTER_BYTES = 10
#: Minimum number of words beside names of drugs where all letters are those of English: "Abilify akathisia"
#: could be in any language.
_WORDS = 3
#: Bytes of the longest feature of the identifier: no byte further back decides where it is.
_LONGEST = 6
#: Below this probability of all supported languages together a text is in another one.
_IMPROBABLE = 0.01
_NOISE = re.compile(r"https?://\S+|[@#]\w+|[\d_]+")
_WORD = re.compile(r"\w+")
_LETTERS = re.compile(r"[^\W\d_]+")
#: A text with a drug is read that has this share of English words, and so many different ones beside it.
_ENGLISH_SHARE, _ENGLISH_WORDS = 1 / 3, 2
#: Of the vocabulary of `mini` so many words, the most frequent ones, are English where they have at least
#: three letters and are none of other languages.
_FREQUENT = 8_000
_FOREIGN = frozenset(
    re.findall(
        r"\w+",
        "ante ang arm auf aus avec bei ben bien bin bir bis bon com como con contra dan das dans del "
        "den der des det dia die dos ein elle entre era est fait gut han hat het ich las les los main "
        "mais mal man mar mas med mein mes mich mil min mir mit moe mon nach non nos nous nur och para "
        "par pas per pero pet plus por pot pour que rue san sans sen ser ses sie sin sobre sol som son "
        "sont sua sur tag tak tan tar tes todo tome ton tout uma una und van var vil vor von vous war "
        "wie",
    )
)
#: How English is written in posts, and symptoms that the vocabulary lacks or has far behind.
_OF_POSTS = frozenset(
    re.findall(
        r"\w+",
        "i u r n it is my of we ok up im ive id ur omg smh lol lmao wtf idk tbh ngl rn cuz coz bc thx "
        "plz pls ppl cant cnt dont wont didnt doesnt isnt wasnt gonna wanna gotta tho thru nite tmrw "
        "evry wz hv jst jus ovr wen wat dat dis yall meds diarrhea diarrhoea insomnia nausea nauseous "
        "dizzy headache headaches migraine rash itchy hives vomit vomiting bloated fatigue cramps "
        "sleepy",
    )
)
#: No patient writes Latin: what looks like it are names of diseases.
_LATIN_LANGUAGE = "la"


class Identified(NamedTuple):
    """What the identifier says of a text."""

    other: str | None
    """The ISO 639-1 code of its language where that is certainly none of the supported ones."""
    score: float | None
    """How probable the supported languages are together, 0 to 1; None for a text of too few letters."""


def unsupported_language(text: str, supported: Collection[str] = ENGLISH) -> str | None:
    """`Identified.other` of a text."""
    return identify([text], supported)[0].other


def identify(texts: Sequence[str], supported: Collection[str] = ENGLISH) -> list[Identified]:
    """Identifies the languages of texts in their reading form; of one the same in any batch."""
    plain = [_NOISE.sub(" ", text[:_READ]).strip().lower() for text in texts]
    found = _identify(plain, supported)
    return [
        _checked(text, one, supported) if one.other else one for text, one in zip(plain, found, strict=True)
    ]


def _checked(plain: str, found: Identified, supported: Collection[str]) -> Identified:
    """What is said of a text in another language. Names of drugs look like words of any language, so the
    other words decide; few texts come this far.
    """
    rest = _without_drugs(plain)
    few = "".join(filter(str.isalpha, rest)).isascii() and len(_WORD.findall(rest)) < _WORDS
    if few or ("en" in supported and _is_partly_english(plain, rest)):
        return Identified(None, found.score)
    return Identified(_identify([rest], supported)[0].other, found.score)


def _identify(plain: Sequence[str], supported: Collection[str]) -> list[Identified]:
    found = [Identified(None, None)] * len(plain)
    some = [i for i, text in enumerate(plain) if _has_letters(text)]
    if some:
        for i, row in zip(some, _identifier().probabilities([plain[i] for i in some]), strict=True):
            found[i] = _best(row, supported)
    return found


def _has_letters(plain: str) -> bool:
    return len("".join(islice(filter(str.isalpha, plain), _LETTER_BYTES)).encode()) >= _LETTER_BYTES


def _best(probabilities: NDArray[np.float32], supported: Collection[str]) -> Identified:
    codes = _identifier().codes
    likely = sum(probabilities[codes.index(code)].item() for code in {*supported} if code in codes)
    likely, best = round(min(1.0, likely), 4), codes[probabilities.argmax()]
    if likely >= _IMPROBABLE or best in (*supported, _LATIN_LANGUAGE):
        return Identified(None, likely)
    return Identified(best, likely)


def _is_partly_english(plain: str, rest: str) -> bool:
    """Whether a text names a drug, and a third of its words are that or English: text-speak, or English mixed
    with another language. `rest`: the text without names of drugs.
    """
    others = _LETTERS.findall(rest)
    n_words = len(_LETTERS.findall(plain))
    english = [word for word in others if word in _english()]
    n_english = n_words - len(others) + len(english)
    return (
        n_words > len(others) and len({*english}) >= _ENGLISH_WORDS and n_english >= _ENGLISH_SHARE * n_words
    )


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
    _english()


@once
def _english() -> frozenset[str]:
    frequent = words_by_frequency()[:_FREQUENT]
    return frozenset(w for w in frequent if len(w) > 2) - _FOREIGN | _OF_POSTS  # noqa: PLR2004


class _Identifier:
    """The model of py3langid, whose `rank` gives the same in nearly twice the time: NumPy unpacks the 16-bit
    weights more slowly than PyTorch, and few of the languages are asked for.
    """

    def __init__(self) -> None:
        import torch  # noqa: PLC0415  a second to load, like the next
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415

        model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self._moves = np.asarray(model.tk_nextmove)
        self._rows = np.array(model.tk_row, np.int64) << 8
        self._features = np.array(model.tk_output)
        self._tensor, self._bias = torch.from_numpy, model.nb_pc
        self._weights = torch.from_numpy(model.nb_ptc)
        self.codes: list[str] = model.nb_classes
        places = [(self.codes.index(code), i) for i, code in enumerate(self.codes)]
        self._twice = [(first, again) for first, again in places if first != again]

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, codes), of at least one text; where a code is there twice, all of it at the first place."""
        written = [normalize("NFC", text).encode(errors="surrogatepass") for text in texts]
        # No feature has the byte between the texts: each is read from the first state.
        data = np.frombuffer(b"\xff".join(written), np.uint8)
        states = np.zeros(len(data), np.int64)
        for back in reversed(range(min(_LONGEST, len(data)))):
            states[back:] = self._moves.take(self._rows.take(states[back:]) + data[: len(data) - back])
        features, end, rows = self._features[states], 0, []
        for text in written:
            found = features[end : end + len(text)]
            rows.append(self._scores(Counter(found[found >= 0].tolist())) * (1.0 / sqrt(len(text) or 1)))
            end += len(text) + 1
        scores = np.array(rows)
        np.exp(scores - scores.max(1, keepdims=True), out=scores)
        scores /= scores.sum(1, keepdims=True)
        for first, again in self._twice:
            scores[:, first] += scores[:, again]
            scores[:, again] = 0
        return scores

    def _scores(self, counts: Mapping[int, int]) -> NDArray[np.float32]:
        """(codes,), logarithms, from the counts of features; the same for all without any."""
        if not counts:
            return np.zeros(len(self.codes), np.float32)
        rows = self._tensor(np.fromiter(counts, np.int64, len(counts)))
        weights = self._weights.index_select(0, rows).float().numpy()
        frequent = np.log1p(np.fromiter(counts.values(), np.float32, len(counts)))
        scores: NDArray[np.float32] = frequent @ weights + self._bias
        return scores


@once
def _identifier() -> _Identifier:
    return _Identifier()
