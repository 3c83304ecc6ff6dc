"""Training data of a run of ECL: pairs with the entities of their summaries, and their variants of an
epoch.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models import drugs
from models.summarization.medical_entities import Entity, Recogniser
from models.tables import read_tsv
from training.summarization.data import Corpora, Pair
from training.summarization.ecl.negatives import EntityDictionary, SharedEntity, shared_entities, swapped
from training.summarization.messages import message
from training.summarization.settings import MEQSUM, PAIRS, Settings, Stage, stages_of


class Example(NamedTuple):
    """A training pair in the form of one epoch, with the entities of its summary."""

    pair: Pair
    entities: Sequence[Entity]


@dataclass(frozen=True, slots=True)
class Material:
    """Pairs, entities and sentences from which examples are drawn."""

    pairs: Mapping[str, Sequence[Pair]]
    """of each stage, by its name"""
    entities: Mapping[str, Sequence[Entity]]
    """pair id to the entities of its summary"""
    dictionary: EntityDictionary
    shared: Mapping[str, Sequence[SharedEntity]]
    """pair id to the entities that question and summary share"""
    names: Mapping[bool, Sequence[str]]
    """drugs (True) and others, by which entities are replaced"""
    sentences: Sequence[str] = ()
    """of patients, for the messages"""


def material_of(
    corpora: Corpora, recogniser: Recogniser, *, trained: bool = True, sentences: Sequence[str] = ()
) -> Material:
    """The entities of all summaries, the dictionary D of MeQSum's, and names to replace them. Without
    training the first stage is not searched for entities.
    """
    pairs = [*(corpora.pretraining if trained else []), *corpora.training]
    of_summaries = recogniser.entities([p.summary for p in pairs])
    entities = {p.id: e for p, e in zip(pairs, of_summaries, strict=True)}
    every = [e for one_summary in entities.values() for e in one_summary]
    lexicon = {row[0] for row in read_tsv(drugs.BUNDLED, ("name",))}
    return Material(
        pairs={PAIRS: corpora.pretraining, MEQSUM: corpora.training},
        entities=entities,
        dictionary=EntityDictionary(e.text for p in corpora.training for e in entities[p.id]),
        shared=shared_entities(pairs, entities),
        names={
            True: sorted({e.text for e in every if e.drug} | lexicon),
            False: sorted({e.text for e in every if not e.drug}),
        },
        sentences=sentences,
    )


class ExampleSampler:
    """Draws the examples of an epoch; every draw comes from `rng`."""

    def __init__(self, material: Material, settings: Settings, rng: random.Random) -> None:
        self._material, self._swap, self._rng = material, settings.swap, rng
        self._first = stages_of(settings)[0]

    def replayed(self, stage: Stage) -> int:
        """Pairs of the first stage in each epoch of this one."""
        return min(stage.replay, len(self._material.pairs[self._first.name]))

    def examples(self, stage: Stage) -> list[Example]:
        """Every pair of the stage and the replayed ones, each as a variant."""
        result = [self._variant(pair, stage.message_share) for pair in self._material.pairs[stage.name]]
        if stage.replay:
            earlier = self._rng.sample(self._material.pairs[self._first.name], self.replayed(stage))
            result += [self._variant(pair, self._first.message_share) for pair in earlier]
        return result

    def _variant(self, pair: Pair, message_share: float) -> Example:
        """A pair, sometimes with other entities, sometimes in a message."""
        entities = self._material.entities.get(pair.id, ())
        shared = self._material.shared.get(pair.id)
        if shared and self._rng.random() < self._swap:
            pair, entities = swapped(pair, shared, self._material.names, self._rng)
        if message_share and self._rng.random() < message_share:
            pair = message(pair, entities, self._material.sentences, self._rng)
        return Example(pair, entities)
