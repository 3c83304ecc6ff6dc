"""HTML for one report: its text with highlighted mentions, its codes, and its changed decisions."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from models.types import Mention
from streams.records import CodedReport, Summary
from streams.replay.diff import Change, Difference
from streams.replay.gold import NIL, Decision
from streams.replay.page import css_class, cut, length

#: What a decision on a mention or an event is about.
WORDS = {
    "generic": "drug",
    "status": "status",
    "term": "lowest-level term",
    "flag": "flag",
    "suspect": "suspected drug",
}


def article(difference: Difference) -> str:
    """A report with different decisions in two chains: base and other side by side, and the changes."""
    sides = [
        f"<section><h4>{name}</h4>{_side(record)}</section>"
        for name, record in (("Base", difference.base), ("Other", difference.other))
    ]
    changes = sorted(difference.changes, key=lambda c: (c.is_gained, c.decision))
    items = [f"<li>{escape(_change(c, difference.text))}</li>" for c in changes]
    return (
        f'<article>\n<h3>{escape(difference.id)}</h3>\n<div class="sides">{"".join(sides)}</div>\n'
        f"<ul>{''.join(items)}</ul>\n</article>"
    )


def highlighted(text: str, mentions: Iterable[Mention]) -> str:
    """The text as HTML. Every piece between two mention boundaries is one element, so mentions may overlap;
    its class is the label of the shortest mention. A mention's label is shown after its end by the style
    sheet and is not part of the text.
    """
    parts = []
    for start, end, found in cut(text, ((m.start, m.end, m) for m in mentions)):
        piece = _escape_text(text[start:end])
        covering = [m for _, _, m in sorted(found, key=length)]
        if not covering:
            parts.append(piece)
            continue
        labels = " ".join(m.label for m in covering if m.end == end)
        attribute = f' data-label="{escape(labels)}"' if labels else ""
        parts.append(f'<mark class="{css_class(covering[0].label)}"{attribute}>{piece}</mark>')
    return "".join(parts)


def describe(decision: Decision, text: str) -> str:
    """A decision in words, with the parts of the text that it refers to."""
    match decision:
        case "mention", start, end, label:
            return f"{label} “{text[start:end]}” at {start}"
        case "relation", drug, drug_end, effect, effect_end:
            return f"“{text[drug:drug_end]}” caused “{text[effect:effect_end]}”"
        case "expansion", start, end, long_form:
            return f"“{text[start:end]}” means “{long_form}”"
        case "event", start, end, pt:
            return f"“{text[start:end]}” at {start} coded to {pt}"
        case "generic" | "status" | "term" | "flag" | "suspect" as kind, start, end, value:
            return f"“{text[start:end]}” at {start}, {WORDS[kind]}: {value}"
        case _:
            return f"summary “{decision[-1]}”"


def terms(pt: str | None, llt: str | None) -> str:
    """Preferred and lowest-level term in words, or NIL."""
    return f"{pt} ({llt})" if pt is not None else NIL


def _side(record: Any | None) -> str:
    if record is None:
        return "<p>Dead letter: there is no record.</p>"
    mentions = getattr(record, "mentions", ())
    parts = [f'<p class="text" dir="auto">{highlighted(record.text, mentions)}</p>']
    if isinstance(record, CodedReport):
        codes = [
            f"<li>{escape(mentions[e.mention].text)}: {escape(terms(e.pt, e.llt))}</li>"
            for e in record.events
        ]
        parts.append(f"<ul>{''.join(codes)}</ul>" if codes else "<p>No adverse event.</p>")
    if isinstance(record, Summary):
        short = record.summary
        parts.append(f'<blockquote dir="auto">{escape(short.text)}</blockquote><p>{escape(short.method)}</p>')
    return "".join(parts)


def _change(change: Change, text: str) -> str:
    in_gold = change.in_gold
    verdict = {None: "", True: ", in gold", False: ", not in gold"}[in_gold]
    effect = "" if in_gold is None else (" (better)" if in_gold == change.is_gained else " (worse)")
    way = "gained" if change.is_gained else "lost"
    return f"{way}: {describe(change.decision, text)}{verdict}{effect}"


def _escape_text(text: str) -> str:
    """Escaped; a carriage return as a reference, because a browser would turn it into a newline."""
    return escape(text).replace("\r", "&#13;")
