"""Drugs and effects in two forms of clinical notes that the corpora of the tagger lack: items of a list of
what was not borne, "NSAIDs (GI bleed)", and what a patient reports or denies, "denies nausea and rash".
Names of the bundled tables alone count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter

from models.drugs import DrugLexicon
from models.drugs.classes import class_named
from models.ner.mention_rules import Cover
from models.relation.effect_lists import end_of_reactions
from models.rules.notation import patterns
from models.terminology.names import term_named
from models.types import ADE, DRUG, Mention, Span

_SAYS = patterns("named_effects")
#: Most words of the name of a drug, and of an effect.
_DRUG_WORDS, _EFFECT_WORDS = 3, 5
#: System organ classes of what a drug does not cause.
_NO_EFFECTS = frozenset({"Surgical and medical procedures", "Social circumstances"})
#: Characters in front of a drug in which the word or mark is that makes it an item.
_BEFORE = 20


def named(
    text: str, words: Sequence[Span], mentions: Sequence[Mention], lexicon: DrugLexicon
) -> list[Mention]:
    """The mentions of a sentence that such forms name, with score 1; none shares a character with `mentions`.
    What is reported or denied counts in a sentence with a drug.
    """
    found: list[Mention] = []
    if any(m.label == DRUG for m in mentions):
        for told in _SAYS["told"].finditer(text, words[0].start, words[-1].end):
            found += _effects(text, words, told.end())
    for drug, at in _items(text, words, lexicon):
        effects = _effects(text, words, at)
        found += [drug, *effects] if effects else []
    taken = Cover(mentions)
    return [m for m in dict.fromkeys(found) if not taken.overlaps(Span(m.start, m.end))]


def _items(text: str, words: Sequence[Span], lexicon: DrugLexicon) -> Iterator[tuple[Mention, int]]:
    """The known drugs and classes that begin an item, and where what is said of each begins; none behind a
    drug that is no item ("takes metformin (diabetes)").
    """
    begin, is_list = words[0].start if words else 0, False
    for i, word in enumerate(words):
        opened = _SAYS["has"].match(text, word.end) if text[word.end - 1].isalnum() else None
        for start in words[max(0, i + 1 - _DRUG_WORDS) : i + 1] if opened else ():
            name = text[start.start : word.end]
            generic = lexicon.generic(name)
            if opened and (generic or class_named(name)):
                before = text[max(begin, start.start - _BEFORE) : start.start]
                is_list = is_list or end_of_reactions(text, start.start) is not None
                if not is_list or not _SAYS["in_list"].search(before):
                    return
                yield Mention(start.start, word.end, name, DRUG, 1.0, generic), opened.end()
                break


def _effects(text: str, words: Sequence[Span], at: int) -> list[Mention]:
    """The effects of a list that begins there; the longest name counts."""
    found: list[Mention] = []
    while True:
        if grade := _SAYS["grade"].match(text, at):
            at = grade.end()
        first = bisect_left(words, at, key=attrgetter("start"))
        for last in reversed(words[first : first + _EFFECT_WORDS]):
            name = text[at : last.end]
            if _is_effect(name) and _SAYS["name_end"].match(text, last.end):
                found.append(Mention(at, last.end, name, ADE, 1.0))
                break
        else:
            return found
        following = _SAYS["next"].match(text, last.end)
        if following is None:
            return found
        at = following.end()


def _is_effect(name: str) -> bool:
    term = term_named(name)
    return term is not None and term.soc not in _NO_EFFECTS
