"""How many neighbours vote on a word and on a pair, and what else counts."""

from __future__ import annotations

from dataclasses import dataclass

from models.releases.manifest import Release


@dataclass(frozen=True, slots=True)
class Voting:
    """How many neighbours vote on a word and on a pair, and what else counts."""

    k_words: int
    k_pairs: int
    words_share: float = 1.0
    """of the votes in the probability of a word's tag, from 0 to 1; the rest is that of the token head"""
    threshold: float = 0.5
    """a pair is related where its share of the votes is higher"""
    event_threshold: float = 0.0
    """and where the probability that its sentence reports an event is higher"""


def voting_of(release: Release) -> Voting:
    """The votes of a release; without `words_share` and `event_threshold` the neighbours alone count."""
    configuration = release.manifest.configuration
    names = ("words_share", "threshold", "event_threshold")
    further = {name: configuration[name] for name in names if name in configuration}
    return Voting(configuration["k_words"], configuration["k_pairs"], **further)
