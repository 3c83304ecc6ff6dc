"""Formats records for the terminal."""

from __future__ import annotations

from typing import Any

import orjson
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from models.types import ADE, DRUG, INDICATION, SYMPTOM, WITHDRAWAL, Neighbour
from streams.records import (
    Announcement,
    Assignment,
    CodedEvent,
    CodedReport,
    Cursor,
    Decision,
    ExpandedReport,
    Lease,
    Review,
    Signal,
    SignalDecision,
    Summary,
    TaggedReport,
)

STYLES = {
    DRUG: "bold black on bright_cyan",
    ADE: "bold white on red",
    WITHDRAWAL: "bold black on yellow",
    INDICATION: "bold black on green",
    SYMPTOM: "bold white on magenta",
}
_EXPANSION = "underline"
#: Training pairs that are shown of a relation.
NEIGHBOURS = 3
#: Characters that could command the terminal, to what is printed for them: spans keep their places.
_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160)) if c not in b"\t\n"} | dict.fromkeys(
    b"\r\v\f", " "
)
_TIME = "%Y-%m-%d %H:%M:%S"
#: Fields of an event that did not happen to the writer, and the word that is printed next to the mention.
_NOT_ASSERTED = {"negated": "denied", "hypothetical": "possible", "other_experiencer": "someone else"}


def legend() -> Text:
    """The labels in their colours."""
    return Text(" ").join(Text(f" {label} ", STYLES[label]) for label in STYLES)


def render(topic: str, record: Any) -> RenderableType:
    """One record of any topic; a record of an unknown type as its plain text."""
    if isinstance(record, Announcement | Cursor | Signal | Decision | Lease):
        return Text.assemble((f"{topic} ", "dim"), plain_text(_line(record)))
    head = Text.assemble((f"{topic} ", "dim"), (record.id, "bold"))
    match record:
        case CodedReport():
            return Group(
                head,
                *_indented(highlighted(record), *_relations(record), *_expansions(record), _events(record)),
            )
        case TaggedReport():
            return Group(head, *_indented(highlighted(record), *_relations(record)))
        case ExpandedReport():
            return Group(head, *_indented(plain_text(record.text), *_expansions(record)))
        case Summary():
            question = plain_text(" ".join(record.text.split()), "dim")
            short = Text.assemble(
                ("-> ", "bold"),
                plain_text(record.summary.text, "bold green"),
                (f"  ({record.summary.method})", "dim"),
            )
            return Group(head, *_indented(question, short))
    return Group(head, *_indented(plain_text(record.text)))


def plain_text(text: str, style: str = "") -> Text:
    """What somebody else wrote, without control characters."""
    return Text(text.translate(_CONTROLS), style)


def _line(record: Announcement | Cursor | Signal | Decision | Lease) -> str:
    """What has no text."""
    match record:
        case Announcement():
            return f"{record.key} {record.version} ({record.reason}), {record.announced_at:{_TIME}}"
        case Cursor():
            position = orjson.dumps(record.position).decode()
            return f"{record.source} {position}, {record.written_at:{_TIME}}"
        case Signal():
            counts = "".join(f", {name} {window.n}" for name, window in record.windows.items())
            counts += ", known use" if record.known_use else ""
            return f"{record.drug} | {record.term} ({record.level}){counts}, {record.computed_at:{_TIME}}"
        case SignalDecision():
            made = f"{record.after.state}, {record.reviewer}, {record.decided_at:{_TIME}}"
            return f"{record.drug} | {record.term} {made}"
    if isinstance(record, Assignment):
        made = f"{record.report_id} assigned to {record.owner or 'nobody'}"
    else:
        made = f"{record.report_id} {record.start}-{record.end}"
    if isinstance(record, Lease):
        return f"{made} {record.seconds:g} s"
    if isinstance(record, Review):
        made += f" {record.action}"
    return f"{made}, {record.reviewer}, {record.decided_at:{_TIME}}"


def highlighted(record: TaggedReport) -> Text:
    """The original text with its mentions coloured and its acronyms underlined."""
    text = plain_text(record.text)
    for expansion in record.expansions:
        text.stylize(_EXPANSION, expansion.start, expansion.end)
    for mention in record.mentions:
        text.stylize(STYLES.get(mention.label, "bold"), mention.start, mention.end)
    return text


def _relations(record: TaggedReport) -> list[RenderableType]:
    """Each relation with its score, and the training pairs that are nearest to it."""
    lines: list[RenderableType] = []
    for relation in record.relations:
        drug, effect = record.mentions[relation.head], record.mentions[relation.tail]
        lines.append(_pair(drug.generic or drug.text, effect.text, relation.score))
        lines += [Padding.indent(_neighbour(near), 4) for near in relation.neighbours[:NEIGHBOURS]]
    return lines


def _pair(drug: str, effect: str, score: float) -> Text:
    return Text.assemble(
        plain_text(drug, "cyan"), " -> ", plain_text(effect, "red"), (f"  {score:.2f}", "dim")
    )


def _neighbour(near: Neighbour) -> Text:
    """A training pair with its similarity, and where it stands."""
    said = (
        f"{near.drug} -> {near.effect}{', unrelated' if near.related is False else ''}, " if near.drug else ""
    )
    return plain_text(f"{1 - near.distance:.2f} {said}{near.id}: {near.source}".rstrip(": "), "dim")


def _expansions(record: ExpandedReport) -> list[RenderableType]:
    return [
        Text.assemble(
            plain_text(e.short_form, _EXPANSION),
            " = ",
            plain_text(e.long_form, "italic"),
            (f"  ({e.source})", "dim"),
        )
        for e in record.expansions
    ]


def _events(record: CodedReport) -> RenderableType:
    if not record.was_read:
        return Text(f"not read: language {record.language}", style="yellow")
    if not record.events:
        return Text("no adverse event", style="dim")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for event in record.events:
        mention = plain_text(record.mentions[event.mention].text, "red")
        mention.append_text(_assertion(event))
        if event.nil:
            nearest = event.candidates[0].pt if event.candidates else "nothing"
            table.add_row(
                mention,
                Text("NIL", style="bold yellow"),
                Text(f"nearest: {nearest}", style="dim"),
                _score(event.score),
                "",
            )
        else:
            table.add_row(
                mention,
                Text(event.pt or "", style="bold"),
                Text(_best_match(event)),
                _score(event.score),
                _drugs(event),
            )
    return table


def _best_match(event: CodedEvent) -> str:
    """The lowest-level term, or in quotation marks the patient's phrase where that was the best match."""
    phrase = event.candidates[0].phrase if event.candidates else None
    return (event.llt or "") if phrase is None else f"\u201c{phrase}\u201d"


def _assertion(event: CodedEvent) -> Text:
    words = [word for field, word in _NOT_ASSERTED.items() if getattr(event, field)]
    return Text(f" ({', '.join(words)})" if words else "", style="yellow")


def _score(score: float) -> Text:
    return Text(f"{score:.2f}", style="dim")


def _drugs(event: CodedEvent) -> Text:
    return plain_text(", ".join(event.drugs) + (f" ({event.drug_evidence})" if event.drugs else ""), "cyan")


def _indented(*parts: RenderableType) -> list[RenderableType]:
    return [Padding.indent(part, 2) for part in parts]
