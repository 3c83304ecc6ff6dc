"""How many neighbours decide, and from what share of their votes on."""

from __future__ import annotations

from dataclasses import dataclass

from models.relation.neighbours import Vote
from models.releases.manifest import Release, ReleaseError


@dataclass(frozen=True, slots=True)
class Voting:
    """How many neighbours vote on a word and on a pair, how the votes on a word are weighted, and what else
    counts.
    """

    k_words: int
    k_pairs: int
    vote: Vote = "majority"
    words_share: float = 1.0
    """of the votes in the probability of a word's tag, from 0 to 1; the rest is that of the token head"""
    threshold: float = 0.5
    """a pair is related where its share of the votes is higher; in a release with a sentence head that states
    no `event_threshold`, where that share times the probability of an event is higher"""
    event_threshold: float | None = None
    """and where the probability that its sentence reports an event is higher"""

    def related(self, share: float, event: float) -> bool:
        """Whether a pair with this share of the votes, in a sentence that reports an event with this
        probability, is related.
        """
        if self.event_threshold is None:
            return share * event > self.threshold
        return share > self.threshold and event > self.event_threshold


def voting_of(release: Release) -> Voting:
    """The votes of a release; one without `words_share`, `threshold` and `event_threshold` leaves words and
    pairs to the neighbours alone.
    """
    configuration = release.manifest.configuration
    vote = configuration.get("vote", "majority")
    if vote not in ("majority", "similarity"):
        raise ReleaseError(f"{release.version}: unknown vote {vote!r}")
    names = ("words_share", "threshold", "event_threshold")
    further = {name: configuration[name] for name in names if name in configuration}
    return Voting(configuration["k_words"], configuration["k_pairs"], vote, **further)
