"""What the drugs of a report are taken for, where its source states that: an effect that is this complaint is
no adverse event, unless the text says that it is harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from models.drugs.uses import bundled_uses
from models.rules.notation import patterns
from models.terminology import term_at_end
from models.text import word_texts
from models.types import ADE, Mention, Stated

_SAYS = patterns("harm_despite_indication")
#: Characters before an effect in which words are looked for that call it harm.
_BEFORE = 80


class KnownUses:
    """Of a report: the stated indication, its terms, and the uses of drugs that belong to it."""

    def __init__(self, stated: Stated) -> None:
        indication = stated.indication or ""
        self._words = frozenset(word_texts(indication.lower()))
        self.terms = _terms(indication)
        """preferred terms in lower case that the indication names"""

    def wanted(self, drugs: Iterable[str]) -> frozenset[str]:
        """The preferred terms, in lower case, that drugs, by their nonproprietary names, are taken for as the
        source states it: the terms of the indication, and the uses of a drug that belong together with one
        of them ("regurgitation" where omeprazole is taken for heartburn).
        """
        return self.terms.union(*(bundled_uses().beside(drug, self.terms) for drug in drugs))

    def explain(self, text: str, effect: Mention, pt: str | None, drugs: Iterable[str]) -> bool:
        """Whether an effect, coded as `pt`, is what the suspected drugs are taken for, in words of the
        indication or by its code, and the text does not say that it is harm.
        """
        if not self._words or effect.label != ADE:
            return False
        is_named = self._words.issuperset(word_texts(effect.text.lower()))
        if not is_named and (pt is None or pt.lower() not in self.wanted(drugs)):
            return False
        before = text[max(0, effect.start - _BEFORE) : effect.start]
        inside = text[effect.start : effect.end]
        is_harm = _SAYS["before"].search(before) or _SAYS["behind"].match(text, effect.end)
        return not (is_harm or _SAYS["first"].match(inside) or _SAYS["last"].search(inside))


@lru_cache(maxsize=4096)
def _terms(indication: str) -> frozenset[str]:
    """The terms of the longest names that end at each word."""
    words = indication.split()
    terms = (term_at_end(" ".join(words[: i + 1]).strip(" ,;.")) for i in range(len(words)))
    return frozenset(term.pt.lower() for term in terms if term)
