"""What posts call a drug but for its names: for short ("addy", "spiro"), vaccines by their makers ("the
Pfizer shot"), what is one letter from the name of another drug ("taurine" and tacrine), and misspelled names,
which are one edit from names of one drug ("cybalta", "trazdone").

Such a word may be something else too, so it names a drug only where a tagger took it for one or a source
states it, and the name of a maker only where the text speaks of a vaccine or of an injection.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from models.drugs import bundled_lexicon
from models.once import once
from models.rules.notation import patterns
from models.spelling import added, exchanged, left_out, replaced
from models.tables import DATA, read_tsv
from models.vocabulary import common_words

BUNDLED = DATA / "drug_nicknames.tsv"
_MAKER = "maker"
_SAYS = patterns("vaccines")
#: Letters of the shortest word and of the shortest name; shorter words are one edit from too many names.
LEAST_LETTERS = 6


def generic_of_nickname(name: str, text: str) -> str | None:
    """The nonproprietary name of a drug that `text` calls `name`, in any case; None for other words."""
    plain = _SAYS["form"].sub("", " ".join(name.lower().split()))
    generic, kind = _nicknames().get(plain, (None, ""))
    return generic if kind != _MAKER or _SAYS["vaccine"].search(text) else None


@once
def _nicknames() -> dict[str, tuple[str, str]]:
    return {name: (generic, kind) for name, generic, kind in read_tsv(BUNDLED, ("name", "generic", "kind"))}


@lru_cache(maxsize=4096)
def generic_of_misspelling(name: str) -> str | None:
    """The nonproprietary name of the only drug of the bundled lexicon that has a name one edit from `name`,
    in any case, with the same first letter; else None. An edit is a letter deleted, inserted, replaced, or
    exchanged with the next one (Damerau 1964). For words that a tagger took for a drug: others may be one
    edit from a drug too ("ambients"). A common word ("planet") is none, and the name of another drug is no
    slip.
    """
    word = name.strip().lower()
    if len(word) < LEAST_LETTERS or not (word.isascii() and word.isalpha()) or word in common_words():
        return None
    if known := generic_of_nickname(word, word):
        return known
    lexicon = bundled_lexicon()
    edits = chain(exchanged(word), left_out(word), added(word), replaced(word))
    generics = {lexicon.of_word(edit) for edit in edits if len(edit) >= LEAST_LETTERS} - {None}
    return generics.pop() if len(generics) == 1 else None
