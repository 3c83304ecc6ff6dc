"""One or two replays of a range and everything that is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streams.replay.diff import CodingChange, Difference, coding_changes, differences, latest
from streams.replay.gold import Decision, Gold
from streams.replay.run import Replayed
from streams.replay.scoring import Score, scored


@dataclass(frozen=True, slots=True)
class Source:
    """What was replayed: a topic, the bounds as they were asked for, and how many records lie between."""

    topic: str
    start: str
    stop: str
    records: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Stage to version, and what these releases made of the range."""

    releases: Mapping[str, str]
    replayed: Replayed


@dataclass(frozen=True, slots=True)
class Comparison:
    """A replay, a second one of the same records where there is one, and gold where there is some."""

    source: Source
    base: Chain
    other: Chain | None
    gold: Gold | None
    scores: list[Score]
    differences: list[Difference]
    coding: list[CodingChange]
    compared: int
    """Reports, each counted once, that came out of at least one of the chains."""

    @property
    def chains(self) -> tuple[Chain, ...]:
        return (self.base,) if self.other is None else (self.base, self.other)

    @property
    def agreement(self) -> float:
        """Share of the compared reports that both chains decide alike; 1 where there are none."""
        return 1 - len(self.differences) / self.compared if self.compared else 1.0


def compare(source: Source, base: Chain, other: Chain | None = None, gold: Gold | None = None) -> Comparison:
    """Scores, differences and changes of coding; the latter two only with a second chain."""
    chains = [base.replayed] if other is None else [base.replayed, other.replayed]
    ours, theirs = base.replayed.outputs, other.replayed.outputs if other else []
    return Comparison(
        source,
        base,
        other,
        gold,
        scored(chains, gold) if gold else [],
        differences(ours, theirs, gold) if other else [],
        coding_changes(ours, theirs) if other else [],
        len(latest([*ours, *theirs])),
    )


def as_json(comparison: Comparison, *, text: bool = False) -> dict[str, Any]:
    """Plain values for a JSON file; no word of any report, and no mention, unless `text` asks for them."""
    answer: dict[str, Any] = {
        "source": asdict(comparison.source),
        "chains": [
            {
                "releases": dict(chain.releases),
                "outputs": len(chain.replayed.outputs),
                "dead": [asdict(d) for d in chain.replayed.dead],
            }
            for chain in comparison.chains
        ],
        "scores": [asdict(s) for s in comparison.scores],
    }
    if comparison.other is not None:
        answer |= {
            "compared": comparison.compared,
            "changed": len(comparison.differences),
            "agreement": comparison.agreement,
            "coding_changes": sum(c.count for c in comparison.coding),
        }
    if text:
        answer["differences"] = [_difference(d) for d in comparison.differences]
        answer["coding"] = [asdict(c) for c in comparison.coding]
    return answer


def _difference(difference: Difference) -> dict[str, Any]:
    lost, gained = in_order(difference.lost), in_order(difference.gained)
    return {"id": difference.id, "text": difference.text, "lost": lost, "gained": gained}


def in_order(found: frozenset[Decision]) -> list[Decision]:
    """By kind and place; decisions of one kind are alike, so that they can be compared."""
    return sorted(found)
