"""Which drugs an effect is blamed on: by relations, by the words of a post, or by what its source states."""

from __future__ import annotations

from collections.abc import Sequence

from models.drugs import bundled_lexicon
from models.drugs.misspelled import generic_of_misspelling
from models.drugs.nicknames import generic_of_nickname
from models.drugs.suspects_by_words import NamedDrug, causes
from models.text import with_long_forms
from models.types import CODED_LABELS, DRUG, Evidence, Expansion, Mention, Span, TaggedText


class Suspects:
    """The suspected drugs of each effect of a text, and the evidence: the drugs related to the effect in the
    text; else those of a post whose words name them as its cause; else those that the source states, by their
    nonproprietary names; else the only drug of a post, or of several the one that its place in the post
    speaks for.

    What all effects of a text share is found once, because there may be thousands.
    """

    def __init__(
        self,
        text: str,
        tagged: TaggedText,
        *,
        expansions: Sequence[Expansion] = (),
        stated: Sequence[str] = (),
        clinical: bool = False,
    ) -> None:
        """`expansions`: the long forms of the text's acronyms; `stated`: the drugs that the source names, in
        its words. The rules for posts do not apply to a `clinical` sentence: without a relation its text
        gives no suspect.
        """
        self._text, self._mentions, self._expansions = text, tagged.mentions, expansions
        self._related: dict[int, list[Mention]] = {}
        for relation in tagged.relations:
            self._related.setdefault(relation.tail, []).append(self._mentions[relation.head])
        self._drugs = [] if clinical else sorted(self._named_drugs())
        self._starts = sorted(m.start for m in self._mentions if m.label in CODED_LABELS)
        generics = (generic for name in stated for generic in bundled_lexicon().generics(name))
        self._stated = tuple(dict.fromkeys(generics))
        self._only = not self._stated and len({d.name for d in self._drugs}) == 1

    def of(self, effect: int) -> tuple[tuple[str, ...], Evidence]:
        """The drugs suspected of the mention with this number, and the evidence."""
        if related := self._related.get(effect):
            return tuple(dict.fromkeys(name for drug in related for name in self._names(drug))), "relation"
        mention = self._mentions[effect]
        place = Span(mention.start, mention.end)
        found = causes(self._text, self._drugs, place, self._starts) if self._drugs else None
        if self._stated and not (found and found.stated):
            return self._stated, "report"
        if found is None:
            return (), "none"
        return found.names, "only_drug_in_text" if self._only else "text"

    def _named_drugs(self) -> list[NamedDrug]:
        """The drugs that a post names. Where the tagger's lexicon does not have one, the bundled lexicon,
        which may be newer, a nickname or a misspelling gives its nonproprietary name.
        """

        def known(name: str) -> str:
            generic = bundled_lexicon().generic(name) or generic_of_nickname(name, self._text)
            return generic or generic_of_misspelling(name) or name

        drugs = [m for m in self._mentions if m.label == DRUG]
        return [NamedDrug(m.start, m.end, m.generic or known(self._name(m))) for m in drugs]

    def _name(self, drug: Mention) -> str:
        """The nonproprietary name; else the long form of an abbreviated drug; else the drug as written."""
        return drug.generic or with_long_forms(self._text, drug.start, drug.end, self._expansions).lower()

    def _names(self, drug: Mention) -> list[str]:
        """The name; of several drugs in one mention ("ASA/Plavix", "ASA-Plavix") that of each."""
        name = self._name(drug)
        if drug.generic is not None:
            return [name]
        lexicon = bundled_lexicon()
        names = (name, name.replace("+", "/").replace("-", "/"))
        split = [[lexicon.generic(part.strip()) for part in parts.split("/")] for parts in names]
        named = ([part for part in parts if part] for parts in split if len(parts) > 1 and all(parts))
        return next(named, [generic_of_misspelling(name) or name])
