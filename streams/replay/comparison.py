"""One or two replays of a range, with their scores and differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streams.replay.diff import CodingChange, Difference, as_written, coding_changes, differences, latest
from streams.replay.gold import Gold
from streams.replay.run import ReplayResult
from streams.replay.scoring import Score, score_replays


@dataclass(frozen=True, slots=True)
class Source:
    """A replayed range: the topic, the bounds as the user gave them, and the number of records between."""

    topic: str
    start: str
    stop: str
    records: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The releases of one replay, stage to version, and its result."""

    releases: Mapping[str, str]
    result: ReplayResult


@dataclass(frozen=True, slots=True)
class Comparison:
    """A replay and, optionally, a second replay of the same records and gold to score them against."""

    source: Source
    base: Chain
    other: Chain | None
    gold: Gold | None
    scores: list[Score]
    differences: list[Difference]
    coding: list[CodingChange]
    compared: int
    """Number of reports that came out of at least one chain, each counted once."""

    @property
    def chains(self) -> tuple[Chain, ...]:
        return (self.base,) if self.other is None else (self.base, self.other)

    @property
    def in_gold(self) -> int:
        """Number of records of the gold that came out of a chain or became a dead letter in one."""
        known = self.gold.records if self.gold else {}
        results = [chain.result for chain in self.chains]
        outputs = {o.id for result in results for o in result.outputs}
        return len(known.keys() & (outputs | {d.key for result in results for d in result.dead}))

    @property
    def agreement(self) -> float:
        """Share of the compared reports with the same decisions in both chains; 1 if there are none."""
        return 1 - len(self.differences) / self.compared if self.compared else 1.0


def compare(source: Source, base: Chain, other: Chain | None = None, gold: Gold | None = None) -> Comparison:
    """Computes scores (with gold), and differences and changes of coding (with a second chain).

    The whole outputs are compared; what is returned has no text that must not be kept.
    """
    results = [base.result] if other is None else [base.result, other.result]
    before, after = base.result.compared, other.result.compared if other else []
    written = latest(base.result.outputs), latest(other.result.outputs if other else [])
    return Comparison(
        source,
        base,
        other,
        gold,
        scores=score_replays(results, gold) if gold else [],
        differences=as_written(differences(before, after, gold), *written) if other else [],
        coding=coding_changes(before, after, written[0]) if other else [],
        compared=len(latest([*before, *after])),
    )


def as_json(comparison: Comparison, *, text: bool = False) -> dict[str, Any]:
    """The JSON form. Texts of reports and mentions are included only with `text`."""
    content: dict[str, Any] = {
        "source": asdict(comparison.source),
        "chains": [
            {
                "releases": dict(chain.releases),
                "outputs": len(chain.result.outputs),
                "dead": [asdict(d) for d in chain.result.dead],
            }
            for chain in comparison.chains
        ],
        "scores": [asdict(s) for s in comparison.scores],
    }
    if comparison.gold is not None:
        content["gold"] = {"records": len(comparison.gold.records), "in_range": comparison.in_gold}
    if comparison.other is not None:
        content |= {
            "compared": comparison.compared,
            "changed": len(comparison.differences),
            "agreement": comparison.agreement,
            "coding_changes": sum(c.count for c in comparison.coding),
        }
    if text:
        content["differences"] = [_difference(d) for d in comparison.differences]
        content["coding"] = [asdict(c) for c in comparison.coding]
    return content


def _difference(difference: Difference) -> dict[str, Any]:
    lost, gained = sorted(difference.lost), sorted(difference.gained)
    return {"id": difference.id, "text": difference.text, "lost": lost, "gained": gained}
