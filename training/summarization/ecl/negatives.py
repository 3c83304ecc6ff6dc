"""Hard negatives: summaries that differ from the right one only in their entities (ECL, section 3.6); and
pairs whose entities are replaced on both sides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from models.summarization.medical_entities import Entity, merge_spans, word_keys
from training.summarization.data import Pair


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


class SharedEntity(NamedTuple):
    """An entity that is in both the question and its summary, in lower case."""

    text: str
    drug: bool


def shared_entities(
    pairs: Sequence[Pair], entities: Mapping[str, Sequence[Entity]]
) -> dict[str, list[SharedEntity]]:
    """Pair id to the entities of its summary that are in the question too, longest first."""
    shared = {}
    for pair in pairs:
        own = {SharedEntity(e.text.lower(), e.drug) for e in entities[pair.id]}
        both = [e for e in own if _whole_words(e.text).search(pair.question)]
        shared[pair.id] = sorted(both, key=lambda e: (-len(e.text), e.text))
    return shared


def swapped(
    pair: Pair, shared: Sequence[SharedEntity], names: Mapping[bool, Sequence[str]], rng: random.Random
) -> tuple[Pair, list[Entity]]:
    """The pair with each shared entity replaced on both sides by one name of its kind, and the entities of
    the new summary. The decoder can learn such entities only by copying them.
    """
    question, summary, inserted = pair.question, pair.summary, []
    for text, drug in shared:
        name = rng.choice(names[drug])
        pattern = _whole_words(text)
        question, summary = (pattern.sub(lambda _, n=name: n, t) for t in (question, summary))  # type: ignore[misc]
        inserted.append((name, drug))
    spans = [(*m.span(), drug) for name, drug in inserted for m in _whole_words(name).finditer(summary)]
    return Pair(pair.id, question, summary), merge_spans(summary, spans)


def _whole_words(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
