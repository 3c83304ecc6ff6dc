"""Hard negatives: summaries that differ from the right one only in their entities (ECL, section 3.6)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from models.summarization.medical_entities import Entity, word_keys


class EntityDictionary:
    """Every medical entity of the training summaries, D of section 3.6.1."""

    def __init__(self, entities: Iterable[str]) -> None:
        # Two spellings of one entity are one: the first is kept.
        first: dict[tuple[str, ...], str] = {}
        for entity in entities:
            first.setdefault(tuple(word_keys(entity)), entity)
        self._names = {key: name for key, name in first.items() if key}

    def __len__(self) -> int:
        return len(self._names)

    def without(self, gold: Iterable[str]) -> list[str]:
        """D': the entities whose words neither contain all words of one of these nor are contained in one."""
        own = [set(word_keys(g)) for g in gold]
        return [n for key, n in self._names.items() if not any(o <= set(key) or set(key) <= o for o in own)]


def hard_negatives(
    summary: str, entities: Sequence[Entity], dictionary: EntityDictionary, count: int, rng: random.Random
) -> list[str]:
    """Up to `count` different copies of a summary with each of its entities replaced by another one, drawn
    from the dictionary without the gold entities; none where it has no entity or there is no other.
    """
    others = dictionary.without(e.text for e in entities)
    if not entities or not others:
        return []
    negatives: dict[str, None] = {}
    # Repeated draws are dropped; with a small dictionary this must end nevertheless.
    for _ in range(4 * count):
        if len(negatives) == count:
            break
        negatives.setdefault(_replaced(summary, entities, [rng.choice(others) for _ in entities]))
    return list(negatives)


def _replaced(text: str, entities: Sequence[Entity], names: Sequence[str]) -> str:
    for entity, name in zip(reversed(entities), reversed(names), strict=True):
        text = text[: entity.start] + name + text[entity.end :]
    return text
