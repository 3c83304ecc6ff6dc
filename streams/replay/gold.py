"""Gold decisions of human annotators, one JSON line per record, to score the decisions of a release."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from streams.records import Id

#: The kind and its values: (mention, start, end, label), (relation, drug start, end, effect start, end),
#: (expansion, start, end, long form), (event, start, end, preferred term or NIL), (summary, text). Gold has
#: no field for (generic or status, start, end, that of the mention) and (term, flag or suspect, start, end,
#: that of the event). The values of one kind have the same types, so any two decisions can be ordered.
Decision = tuple[Any, ...]
#: Stands for the preferred term of a mention that the terminology has no term for.
NIL = "NIL"
_STRICT = ConfigDict(extra="forbid", strict=True)


class GoldError(Exception):
    """A gold file is invalid; the message is one line that names the place and quotes no text."""


@validated_dataclass(frozen=True, slots=True, config=_STRICT)
class GoldMention:
    """A label and a half-open range of code points of the record's text."""

    start: int
    end: int
    label: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError("the span is empty or negative")


@validated_dataclass(frozen=True, slots=True, config=_STRICT)
class GoldEvent:
    """A span and its preferred term; null where the terminology has none."""

    start: int
    end: int
    pt: str | None

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError("the span is empty or negative")


@validated_dataclass(frozen=True, slots=True, config=_STRICT)
class GoldRecord:
    """The annotations of one record: null means not annotated, empty means annotated and none found."""

    id: Id
    mentions: tuple[GoldMention, ...] | None = None
    relations: tuple[tuple[int, int], ...] | None = None
    """Drug and effect, by their indices in `mentions`."""
    events: tuple[GoldEvent, ...] | None = None
    summary: str | None = None

    def __post_init__(self) -> None:
        n = len(self.mentions or ())
        if not all(0 <= index < n for pair in self.relations or () for index in pair):
            raise ValueError("a relation refers to a mention that does not exist")

    def decisions(self) -> dict[str, frozenset[Decision]]:
        """Decisions by kind, for the kinds that are annotated."""
        by_kind: dict[str, frozenset[Decision]] = {}
        mentions = self.mentions or ()
        if self.mentions is not None:
            by_kind["mention"] = frozenset(("mention", m.start, m.end, m.label) for m in mentions)
        if self.relations is not None:
            pairs = [(mentions[drug], mentions[effect]) for drug, effect in self.relations]
            by_kind["relation"] = frozenset(("relation", d.start, d.end, e.start, e.end) for d, e in pairs)
        if self.events is not None:
            by_kind["event"] = frozenset(("event", e.start, e.end, e.pt or NIL) for e in self.events)
        if self.summary is not None:
            by_kind["summary"] = frozenset([("summary", self.summary)])
        return by_kind


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold decisions by record id and kind, and the mention labels that occur in them."""

    records: Mapping[str, Mapping[str, frozenset[Decision]]]
    labels: tuple[str, ...]

    def verdict(self, id_: str, decision: Decision) -> bool | None:
        """Whether gold has the decision; None if the record is not annotated for this kind of decision, or
        for a mention with a label that gold never uses.
        """
        kind = decision[0]
        annotated = self.records.get(id_, {}).get(kind)
        if annotated is None or (kind == "mention" and decision[3] not in self.labels):
            return None
        return decision in annotated


def read_gold(file: BinaryIO) -> Gold:
    """Reads JSON lines with strict validation; raises GoldError with the number of the first invalid line."""
    reader = TypeAdapter(GoldRecord)
    records: dict[str, Mapping[str, frozenset[Decision]]] = {}
    for number, read in enumerate(file, 1):
        # The first line of a file of Windows may begin with a byte order mark.
        line = read.removeprefix(BOM_UTF8) if number == 1 else read
        if not line.strip():
            continue
        try:
            record = reader.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise GoldError(f"line {number}: {place + ': ' if place else ''}{first['msg']}") from None
        if record.id in records:
            raise GoldError(f"line {number}: duplicate id")
        records[record.id] = record.decisions()
    labels = {d[3] for kinds in records.values() for d in kinds.get("mention", ())}
    return Gold(records, tuple(sorted(labels)))
