"""Which drugs an effect is blamed on: by relations, by the words of a post, or by what its source states."""

from __future__ import annotations

from collections.abc import Sequence

from models.drugs import bundled_lexicon
from models.drugs.classes import group_named
from models.drugs.informal_names import generic_of_nickname
from models.drugs.joined import generic_as_written
from models.drugs.placeholders import is_placeholder, specified
from models.drugs.suspects_in_posts import Causes, NamedDrug, causes, is_taken
from models.text import with_long_forms
from models.types import CODED_LABELS, DRUG, Evidence, Expansion, Mention, Span, TaggedText

#: A text in which the maker of a vaccine is the vaccine.
_VACCINE = "vaccine"


class Suspects:
    """The suspected drugs of each effect of a text, and the evidence: the drugs related to the effect in the
    text; else those of a post whose words name them as its cause; else those that the source states, by their
    nonproprietary names; else the only drug of a post, or of several the one that its place in the post
    speaks for. A regimen stands for its members. A class is suspected where the words name it as the
    cause, then as a product that belongs to it, if one is there; or without any product, where it is taken.
    What names no drug ("unknown", "study drug") is none.

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
            if not is_placeholder(self._name(self._mentions[relation.head])):
                self._related.setdefault(relation.tail, []).append(self._mentions[relation.head])
        self._drugs = [] if clinical else sorted(self._named_drugs())
        self._starts = sorted(m.start for m in self._mentions if m.label in CODED_LABELS)
        self._stated = tuple(dict.fromkeys(generic for name in stated for generic in _of_source(name)))
        groups = {d.name: group_named(d.name) for d in self._drugs}
        self._classes = {name: group for name, group in groups.items() if group and group.kind == "class"}
        self._products = [d for d in self._drugs if d.name not in self._classes]
        self._taken = [d for d in self._drugs if is_taken(text, d)]
        self._only = not self._stated and len({d.name for d in self._products or self._drugs}) == 1

    def of(self, effect: int) -> tuple[tuple[str, ...], Evidence]:
        """The drugs suspected of the mention with this number, and the evidence."""
        if related := self._related.get(effect):
            return _members([name for drug in related for name in self._names(drug)]), "relation"
        mention = self._mentions[effect]
        place = Span(mention.start, mention.end)
        by_text = self._causes(place) if self._drugs else None
        if self._stated and not (by_text and by_text.stated):
            return self._stated, "report"
        if by_text is None:
            return (), "none"
        is_only = self._only and by_text.names == ((self._products or self._drugs)[0].name,)
        return _members(by_text.names), "only_drug_in_text" if is_only else "text"

    def _causes(self, effect: Span) -> Causes | None:
        """Of the products in the text, or of a class where the words name it as the cause: then of the
        products that belong to it, where some are there.
        """
        products = self._products or [d for d in self._taken if d.end <= effect.start]
        by_products = causes(self._text, products, effect, self._starts) if products else None
        by_words = causes(self._text, self._drugs, effect, self._starts) if self._classes else None
        named = [self._classes[name] for name in by_words.names if name in self._classes] if by_words else []
        if by_words is None or not (by_words.stated and named):
            return by_products
        if any(group.has(name) for group in named for name in self._stated):
            return None
        members = [d for d in products if any(group.has(d.name) for group in named)]
        return (
            causes(self._text, members, effect, self._starts)._replace(stated=True) if members else by_words
        )

    def _named_drugs(self) -> list[NamedDrug]:
        """The drugs that a post names. Where the record has no nonproprietary name of one, as those of
        earlier versions, the bundled lexicon, a nickname, a class or how it is written gives it.
        """

        def known(name: str) -> str:
            generic = bundled_lexicon().generic(name) or generic_of_nickname(name, self._text)
            return generic or _class_of(name) or generic_as_written(name) or name

        drugs = [m for m in self._mentions if m.label == DRUG]
        named = [NamedDrug(m.start, m.end, m.generic or known(self._name(m))) for m in drugs]
        return [drug for drug in named if not is_placeholder(drug.name)]

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
        return next(named, [_class_of(name) or generic_as_written(name) or name])


def _class_of(name: str) -> str | None:
    group = group_named(name)
    return group and group.name


def _of_source(stated: str) -> Sequence[str]:
    """The names of what a source states as the drug: what may be another thing in a text is a drug here. None
    where it names no drug.
    """
    generics = bundled_lexicon().generics(stated)
    if generics != (" ".join(stated.lower().split()),) or bundled_lexicon().generic(stated):
        return generics if not is_placeholder(stated) else ()
    name = generic_of_nickname(stated, _VACCINE) or _class_of(specified(stated))
    if name:
        return _members([name])
    if is_placeholder(stated):
        return ()
    written = generic_as_written(stated)
    return (written,) if written else generics


def _members(names: Sequence[str]) -> tuple[str, ...]:
    """The names, of a regimen those of its members."""
    groups = ((name, group_named(name)) for name in names)
    parts = (g.members if g and g.kind == "regimen" else (name,) for name, g in groups)
    return tuple(dict.fromkeys(member for members in parts for member in members))
