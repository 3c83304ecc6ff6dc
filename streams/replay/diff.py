"""The decisions in the outputs of two replays of the same records, and where they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streams.order import Latest, revision_of
from streams.records import CodedEvent, CodedReport, ExpandedReport, Summary, TaggedReport
from streams.replay.gold import NIL, Decision, Gold

#: Identifies a report: its input topic and its id.
Key = tuple[str, str]
#: Old preferred and lowest-level term; new preferred and lowest-level term.
_Terms = tuple[str | None, str | None, str | None, str | None]
#: Stands for words of a report whose text must not be kept.
NOT_KEPT = "(text not kept)"
#: Report ids given for each change of coding.
EXAMPLES = 3
FLAGS = ("negated", "hypothetical", "other_experiencer", "serious")


def decisions(record: Any) -> frozenset[Decision]:
    """All decisions in a record, also those that gold has no field for. Scores are left out: they vary in
    their last digits and decide nothing.
    """
    result: list[Decision] = []
    if isinstance(record, ExpandedReport):
        result += [("expansion", e.start, e.end, e.long_form) for e in record.expansions]
    if isinstance(record, TaggedReport):
        mentions = record.mentions
        result += [("mention", m.start, m.end, m.label) for m in mentions]
        result += [("generic", m.start, m.end, m.generic) for m in mentions if m.generic]
        result += [("status", m.start, m.end, m.status) for m in mentions if m.status]
        pairs = [(mentions[r.head], mentions[r.tail]) for r in record.relations]
        result += [("relation", d.start, d.end, e.start, e.end) for d, e in pairs]
    if isinstance(record, CodedReport):
        coded = [(record.mentions[e.mention], e) for e in record.events]
        result += [("event", m.start, m.end, NIL if e.nil else e.pt) for m, e in coded]
        result += [("term", m.start, m.end, e.llt) for m, e in coded if e.llt]
        result += [("flag", m.start, m.end, flag) for m, e in coded for flag in FLAGS if getattr(e, flag)]
        result += [("suspect", m.start, m.end, drug) for m, e in coded for drug in e.drugs]
    if isinstance(record, Summary):
        result.append(("summary", record.summary.text))
    return frozenset(result)


def latest(records: Iterable[Any]) -> dict[Key, Any]:
    """The latest record of each report: at-least-once delivery makes repeats, and may make stale records."""
    kept: Latest[Any] = Latest()
    for record in records:
        kept.offer((record.source, record.id), revision_of(record), record)
    return dict(kept.items())  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Change:
    """A decision of one chain only."""

    is_gained: bool
    """Of the other chain; else it is lost, of the base chain."""
    decision: Decision
    in_gold: bool | None
    """None without gold for it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A report with different decisions in two chains; None for a chain in which it became a dead letter."""

    id: str
    text: str
    changes: tuple[Change, ...]
    base: Any | None
    other: Any | None

    @property
    def lost(self) -> frozenset[Decision]:
        """Decisions of the base chain only."""
        return frozenset(c.decision for c in self.changes if not c.is_gained)

    @property
    def gained(self) -> frozenset[Decision]:
        """Decisions of the other chain only."""
        return frozenset(c.decision for c in self.changes if c.is_gained)


def differences(base: Iterable[Any], other: Iterable[Any], gold: Gold | None) -> list[Difference]:
    """The reports with different decisions, worst first: by gold decisions lost minus gold decisions gained;
    without gold, by the number of changed decisions. Ties are ordered by id.
    """
    base_records, other_records = latest(base), latest(other)
    changed = []
    for key in sorted(base_records.keys() | other_records.keys()):
        one, two = base_records.get(key), other_records.get(key)
        before, after = decisions(one), decisions(two)
        if before != after or one is None or two is None:
            text: str = (other_records[key] if one is None else one).text
            lost_and_gained = (False, before - after), (True, after - before)
            changes = tuple(
                Change(is_gained, d, gold.verdict(key[1], d) if gold else None)
                for is_gained, own in lost_and_gained
                for d in own
            )
            changed.append(Difference(key[1], text, changes, one, two))
    return sorted(changed, key=lambda d: (-_severity(d, gold), d.id))


def _severity(difference: Difference, gold: Gold | None) -> int:
    changes = difference.changes
    return len(changes) if gold is None else sum(-1 if c.is_gained else 1 for c in changes if c.in_gold)


def as_written(
    found: Iterable[Difference], base: Mapping[Key, Any], other: Mapping[Key, Any]
) -> list[Difference]:
    """The differences of whole records with these records in place of them, which may lack a text that must
    not be kept. Of a decision that is in no such record the words are left out.
    """
    result = []
    for difference in found:
        whole: Any = difference.other if difference.base is None else difference.base
        one, two = (side.get((whole.source, whole.id)) for side in (base, other))
        text: str = (two if one is None else one).text  # type: ignore[union-attr]
        changes = tuple(_written(c, two if c.is_gained else one) for c in difference.changes)
        result.append(Difference(difference.id, text, changes, one, two))
    return result


def _written(change: Change, record: Any) -> Change:
    if change.decision in decisions(record):
        return change
    return replace(change, decision=(*change.decision[:-1], NOT_KEPT))


@dataclass(frozen=True, slots=True)
class CodingChange:
    """A mention text that two chains code differently; terms are None for NIL."""

    text: str
    """The mention in lower case, white space collapsed; NOT_KEPT where it must not be kept."""
    old_pt: str | None
    old_llt: str | None
    new_pt: str | None
    new_llt: str | None
    count: int
    examples: tuple[str, ...]
    """Ids of the first few reports, in order."""


def recoded(changed: Sequence[Difference]) -> int:
    """The number of reports of `changed` with a mention that both replays code, to different terms."""
    return sum(
        any((old.pt, old.llt) != (new.pt, new.llt) for _, old, new in _both(d.base, d.other)) for d in changed
    )


def coding_changes(
    base: Sequence[Any], other: Sequence[Any], written: Mapping[Key, Any] | None = None
) -> list[CodingChange]:
    """Changes of term among the mentions that both replays code, most frequent first. `written` has the
    records whose text may be shown, without it where it must not be kept; by default those of `base`.
    """
    base_records, other_records = latest(base), latest(other)
    ids_by_change: defaultdict[tuple[str, str, _Terms], list[str]] = defaultdict(list)
    for key in sorted(base_records.keys() & other_records.keys()):
        for span, old, new in _both(base_records[key], other_records[key]):
            if (old.pt, old.llt) != (new.pt, new.llt):
                whole = _mention(base_records[key], span)
                shown = whole if written is None else _mention(written[key], span) or NOT_KEPT
                ids_by_change[shown, whole, (old.pt, old.llt, new.pt, new.llt)].append(key[1])
    changes = [
        CodingChange(shown, *terms, len(ids), tuple(dict.fromkeys(ids))[:EXAMPLES])
        for (shown, _, terms), ids in ids_by_change.items()
    ]
    return sorted(changes, key=lambda c: (-c.count, c.text, c.old_llt or "", c.new_llt or ""))


def _mention(record: Any, span: tuple[int, int]) -> str:
    return " ".join(record.text[slice(*span)].lower().split())


def _both(base: Any, other: Any) -> list[tuple[tuple[int, int], CodedEvent, CodedEvent]]:
    """The spans that both records code, each with both codings."""
    after = _codings(other)
    return [(span, old, after[span]) for span, old in _codings(base).items() if span in after]


def _codings(record: Any) -> Mapping[tuple[int, int], CodedEvent]:
    if not isinstance(record, CodedReport):
        return {}
    mentions = record.mentions
    return {(mentions[e.mention].start, mentions[e.mention].end): e for e in record.events}
