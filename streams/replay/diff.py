"""What records decide, and where two replays of the same records decide otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.records import CodedEvent, CodedReport, ExpandedReport, Summary, TaggedReport
from streams.replay.gold import NIL, Decision, Gold

#: Names a report: the topic it entered by and its id.
Key = tuple[str, str]
#: Records that are named for each change of coding.
EXAMPLES = 3


def decisions(record: Any) -> frozenset[Decision]:
    """Everything a record decides, without scores, which move in their last digits and decide nothing."""
    found: list[Decision] = []
    if isinstance(record, ExpandedReport):
        found += [("expansion", e.start, e.end, e.long_form) for e in record.expansions]
    if isinstance(record, TaggedReport):
        mentions = record.mentions
        found += [("mention", m.start, m.end, m.label) for m in mentions]
        pairs = [(mentions[r.head], mentions[r.tail]) for r in record.relations]
        found += [("relation", d.start, d.end, e.start, e.end) for d, e in pairs]
    if isinstance(record, CodedReport):
        coded = [(record.mentions[e.mention], e) for e in record.events]
        found += [("event", m.start, m.end, NIL if e.nil else e.pt) for m, e in coded]
    if isinstance(record, Summary):
        found.append(("summary", record.summary.text))
    return frozenset(found)


def latest(records: Iterable[Any]) -> dict[Key, Any]:
    """Each report once: of repeats, which delivery at least once makes, the last."""
    return {(r.source, r.id): r for r in records}


@dataclass(frozen=True, slots=True)
class Difference:
    """A report that two chains decide otherwise; a chain in which it died has no record."""

    id: str
    text: str
    lost: frozenset[Decision]
    """What only the base decides."""
    gained: frozenset[Decision]
    """What only the other decides."""
    base: Any | None
    other: Any | None


def differences(base: Iterable[Any], other: Iterable[Any], gold: Gold | None) -> list[Difference]:
    """Worst first: most gold decisions lost, less those gained; without gold, most decisions changed. Ties go
    by id.
    """
    ours, theirs = latest(base), latest(other)
    found = []
    for key in sorted(ours.keys() | theirs.keys()):
        one, two = ours.get(key), theirs.get(key)
        before, after = decisions(one), decisions(two)
        if before != after or one is None or two is None:
            text: str = (theirs[key] if one is None else one).text
            found.append(Difference(key[1], text, before - after, after - before, one, two))
    return sorted(found, key=lambda d: (-_harm(d, gold), d.id))


def _harm(difference: Difference, gold: Gold | None) -> int:
    if gold is None:
        return len(difference.lost) + len(difference.gained)
    lost = sum(gold.verdict(difference.id, d) is True for d in difference.lost)
    return lost - sum(gold.verdict(difference.id, d) is True for d in difference.gained)


@dataclass(frozen=True, slots=True)
class CodingChange:
    """The same words coded otherwise; terms are None where they are coded to nothing."""

    text: str
    """The mention, in lower case."""
    old_pt: str | None
    old_llt: str | None
    new_pt: str | None
    new_llt: str | None
    count: int
    examples: tuple[str, ...]
    """Ids of the first few reports, in the order of their names."""


def coding_changes(base: Sequence[Any], other: Sequence[Any]) -> list[CodingChange]:
    """How the terms of mentions that both replays code have changed, most frequent first."""
    ours, theirs = latest(base), latest(other)
    changes: defaultdict[tuple[str, str | None, str | None, str | None, str | None], list[str]] = defaultdict(
        list
    )
    for key in sorted(ours.keys() & theirs.keys()):
        before, after = _codings(ours[key]), _codings(theirs[key])
        for span, old in before.items():
            new = after.get(span)
            if new is not None and (old.pt, old.llt) != (new.pt, new.llt):
                words = " ".join(ours[key].text[slice(*span)].lower().split())
                changes[words, old.pt, old.llt, new.pt, new.llt].append(key[1])
    found = [
        CodingChange(*change, len(ids), tuple(dict.fromkeys(ids))[:EXAMPLES])
        for change, ids in changes.items()
    ]
    return sorted(found, key=lambda c: (-c.count, c.text, c.old_llt or "", c.new_llt or ""))


def _codings(record: Any) -> Mapping[tuple[int, int], CodedEvent]:
    if not isinstance(record, CodedReport):
        return {}
    mentions = record.mentions
    return {(mentions[e.mention].start, mentions[e.mention].end): e for e in record.events}
