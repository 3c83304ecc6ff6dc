"""How many neighbours vote on a pair, and what else counts."""

from __future__ import annotations

from dataclasses import dataclass

from models.releases.manifest import Release


@dataclass(frozen=True, slots=True)
class Voting:
    """How many neighbours vote on a pair, and what else counts."""

    k_pairs: int
    threshold: float = 0.5
    """a pair is related where its share of the votes is higher"""
    least_cosine: float = -1.0
    """of a neighbour to the pair: one that is less similar does not vote for a relation"""


def voting_of(release: Release) -> Voting:
    """The votes of a release; without `threshold` and `least_cosine` their defaults."""
    configuration = release.manifest.configuration
    further = {name: configuration[name] for name in ("threshold", "least_cosine") if name in configuration}
    return Voting(configuration["k_pairs"], **further)
