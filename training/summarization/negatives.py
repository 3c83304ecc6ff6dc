"""Wrong summaries of a question that differ from the right one only in what it is about (ECL, section 3.6),
and other questions made from one by the same means.
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
        """D': the entities that are none of these, nor hold the words of one of them, nor are held by one."""
        own = [set(word_keys(g)) for g in gold]
        return [n for key, n in self._names.items() if not any(o <= set(key) or set(key) <= o for o in own)]


def hard_negatives(
    summary: str, entities: Sequence[Entity], dictionary: EntityDictionary, wanted: int, rng: random.Random
) -> list[str]:
    """Up to `wanted` different copies of a summary with each of its entities replaced by another one, drawn
    from the dictionary without the gold entities; none where it has no entity or there is no other.
    """
    others = dictionary.without(e.text for e in entities)
    if not entities or not others:
        return []
    found: dict[str, None] = {}
    # Repeated draws are dropped; a small dictionary must not make this last for ever.
    for _ in range(4 * wanted):
        if len(found) == wanted:
            break
        found.setdefault(_replaced(summary, entities, [rng.choice(others) for _ in entities]))
    return list(found)


def _replaced(text: str, entities: Sequence[Entity], names: Sequence[str]) -> str:
    for entity, name in zip(reversed(entities), reversed(names), strict=True):
        text = text[: entity.start] + name + text[entity.end :]
    return text


class Shared(NamedTuple):
    """An entity that a summary has from its question, in lower case."""

    text: str
    drug: bool


def shared_entities(
    pairs: Sequence[Pair], entities: Mapping[str, Sequence[Entity]]
) -> dict[str, list[Shared]]:
    """Pair id to the entities of its summary that stand in the question too, longest first."""
    found = {}
    for pair in pairs:
        own = {Shared(e.text.lower(), e.drug) for e in entities[pair.id]}
        inside = [s for s in own if _whole(s.text).search(pair.question)]
        found[pair.id] = sorted(inside, key=lambda s: (-len(s.text), s.text))
    return found


def swapped(
    pair: Pair, shared: Sequence[Shared], names: Mapping[bool, Sequence[str]], rng: random.Random
) -> tuple[Pair, list[Entity]]:
    """The same question about other things, and where these stand in its summary: each shared entity is
    replaced on both sides by one name of its kind, so that what a summary is about can only be learnt by
    copying.
    """
    question, summary, put = pair.question, pair.summary, []
    for text, drug in shared:
        name = rng.choice(names[drug])
        pattern = _whole(text)
        question, summary = (pattern.sub(lambda _, n=name: n, t) for t in (question, summary))  # type: ignore[misc]
        put.append((name, drug))
    spans = [(*m.span(), drug) for name, drug in put for m in _whole(name).finditer(summary)]
    return Pair(pair.id, question, summary), merge_spans(summary, spans)


def _whole(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
