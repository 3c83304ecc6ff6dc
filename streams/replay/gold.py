"""What people decided about records, one line of JSON for each, to hold a release's decisions against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from streams.records import Id

#: Begins with its kind: (mention, start, end, label), (relation, drug start, end, effect start, end),
#: (expansion, start, end, long form), (event, start, end, preferred term or NIL), (summary, text).
Decision = tuple[Any, ...]
#: The preferred term of a mention that is coded to nothing.
NIL = "NIL"
_STRICT = ConfigDict(extra="forbid", strict=True)


class GoldError(Exception):
    """A gold file that cannot be read; one line that names the place and quotes no text."""


@checked(frozen=True, slots=True, config=_STRICT)
class GoldMention:
    """Half-open range of code points of the record's text."""

    start: int
    end: int
    label: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError("the span is empty or negative")


@checked(frozen=True, slots=True, config=_STRICT)
class GoldEvent:
    """A mention's preferred term; null where the terminology has none."""

    start: int
    end: int
    pt: str | None

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError("the span is empty or negative")


@checked(frozen=True, slots=True, config=_STRICT)
class GoldRecord:
    """What is null was not looked at; what is empty was, and there is nothing."""

    id: Id
    mentions: tuple[GoldMention, ...] | None = None
    relations: tuple[tuple[int, int], ...] | None = None
    """Drug and effect, by their positions in the mentions."""
    events: tuple[GoldEvent, ...] | None = None
    summary: str | None = None

    def __post_init__(self) -> None:
        n = len(self.mentions or ())
        if not all(0 <= position < n for pair in self.relations or () for position in pair):
            raise ValueError("a relation names a mention that is not there")

    def decisions(self) -> dict[str, frozenset[Decision]]:
        """Decisions by kind, for the kinds that were looked at."""
        found: dict[str, frozenset[Decision]] = {}
        mentions = self.mentions or ()
        if self.mentions is not None:
            found["mention"] = frozenset(("mention", m.start, m.end, m.label) for m in mentions)
        if self.relations is not None:
            pairs = [(mentions[drug], mentions[effect]) for drug, effect in self.relations]
            found["relation"] = frozenset(("relation", d.start, d.end, e.start, e.end) for d, e in pairs)
        if self.events is not None:
            found["event"] = frozenset(("event", e.start, e.end, e.pt or NIL) for e in self.events)
        if self.summary is not None:
            found["summary"] = frozenset([("summary", self.summary)])
        return found


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold decisions by record id and kind, and the mention labels that people gave at all."""

    records: Mapping[str, Mapping[str, frozenset[Decision]]]
    labels: tuple[str, ...]

    def verdict(self, id_: str, decision: Decision) -> bool | None:
        """Whether people decided the same; None where they did not look or never give the mention's label."""
        kind = decision[0]
        looked_at = self.records.get(id_, {}).get(kind)
        if looked_at is None or (kind == "mention" and decision[3] not in self.labels):
            return None
        return decision in looked_at


def read_gold(file: BinaryIO) -> Gold:
    """Reads lines of JSON, strictly; raises GoldError with the number of the first line that is wrong."""
    reader = TypeAdapter(GoldRecord)
    records: dict[str, Mapping[str, frozenset[Decision]]] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            record = reader.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise GoldError(f"line {number}: {place + ': ' if place else ''}{first['msg']}") from None
        if record.id in records:
            raise GoldError(f"line {number}: its id came before")
        records[record.id] = record.decisions()
    labels = {d[3] for kinds in records.values() for d in kinds.get("mention", ())}
    return Gold(records, tuple(sorted(labels)))
