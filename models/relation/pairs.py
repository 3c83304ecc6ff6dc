"""Which drugs and effects of a text are compared: those of one sentence, in a long list the nearest ones, but
no drug with what it is taken for, what was there before it, or the effect of another drug
of a list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from models.relation.effect_lists import listed
from models.relation.purpose import each_for_its_own, taken_for, was_before
from models.types import ADE, DRUG, Mention

LABELS = (DRUG, ADE)
#: Pairs of a text that are compared with the training pairs, about a millisecond each.
MOST_PAIRS = 10_000


class SentenceMention(NamedTuple):
    """A mention in its sentence."""

    mention: Mention
    position: int
    """among the mentions of its text"""
    last_word: int
    """position of its last word in the sentence"""

    def word(self) -> int:
        """`last_word`, to sort by."""
        return self.last_word


class Pair(NamedTuple):
    """A drug and an effect, by their positions among the mentions of their text."""

    report: int
    head: int
    tail: int
    sentence: int
    """position of its sentence among those that have pairs"""
    drug_word: int
    """position of the last word of the drug in the sentence"""
    effect_word: int
    is_stated: bool = False
    """in a list of allergies or the like, which needs no votes"""


def pairs_of(
    texts: Sequence[str], reports: Sequence[int], tagged: Sequence[Sequence[SentenceMention]]
) -> list[Pair]:
    """The drugs of each sentence with its effects but those that they are taken for, that were there before
    them, or that a list gives another drug; `reports` are the positions of their texts. In a text with more
    than MOST_PAIRS each drug has its nearest effects only, all drugs as many.
    """
    found = [[[m for m in own if m.mention.label == label] for label in LABELS] for own in tagged]
    n_drugs, n_pairs = Counter[int](), Counter[int]()
    for report, (drugs, effects) in zip(reports, found, strict=True):
        n_drugs[report] += len(drugs)
        n_pairs[report] += len(drugs) * len(effects)
    pairs = []
    for place, (report, (drugs, effects)) in enumerate(zip(reports, found, strict=True)):
        most = max(1, MOST_PAIRS // n_drugs[report]) if n_pairs[report] > MOST_PAIRS else len(effects)
        text, named = texts[report], [m.mention for m in drugs]
        events = [m.mention for m in effects]
        drug_of, of_others, are_stated = listed(text, named, events)
        uses = each_for_its_own(text, named, events)
        treating = set(uses.values())
        by_place = sorted(effects, key=SentenceMention.word) if most < len(effects) else effects
        for drug in drugs:
            for effect in _nearest(drug, by_place, most):
                is_own = drug_of.get(effect.mention, drug.mention) is drug.mention
                is_own = is_own and effect.mention not in of_others
                stated = are_stated and effect.mention in drug_of
                is_treated = effect.mention in uses and drug.mention in treating
                if is_own and (stated or not (is_treated or _innocent(text, drug, effect, named))):
                    words_of = drug.last_word, effect.last_word
                    pairs.append(Pair(report, drug.position, effect.position, place, *words_of, stated))
    return pairs


def _innocent(text: str, drug: SentenceMention, effect: SentenceMention, drugs: Sequence[Mention]) -> bool:
    mentions = drug.mention, effect.mention
    return taken_for(text, *mentions, drugs) or was_before(text, *mentions)


def _nearest(
    drug: SentenceMention, effects: Sequence[SentenceMention], most: int
) -> Sequence[SentenceMention]:
    """The `most` effects with the fewest words between them and the drug; where there are more, they must be
    in the order of the sentence.
    """
    if len(effects) <= most:
        return effects
    at = bisect_left(effects, drug.last_word, key=SentenceMention.word)
    near = sorted(effects[max(0, at - most) : at + most], key=lambda e: abs(e.last_word - drug.last_word))
    return sorted(near[:most], key=SentenceMention.word)
