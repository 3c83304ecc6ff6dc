"""One report as markup: its text with the mentions in it, what it is coded to, and what has changed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise
from typing import Any

from models.types import LABELS, Mention
from streams.records import CodedReport, Summary
from streams.replay.comparison import in_order
from streams.replay.diff import Difference
from streams.replay.gold import NIL, Decision, Gold


def article(difference: Difference, gold: Gold | None) -> str:
    """A report that two chains decide otherwise: the base beside the other, and what changed."""
    sides = [
        f"<section><h4>{name}</h4>{_side(record)}</section>"
        for name, record in (("Base", difference.base), ("Other", difference.other))
    ]
    changes = [("lost", d) for d in in_order(difference.lost)]
    changes += [("gained", d) for d in in_order(difference.gained)]
    items = [f"<li>{escape(_change(difference, how, d, gold))}</li>" for how, d in changes]
    return (
        f'<article>\n<h3>{escape(difference.id)}</h3>\n<div class="sides">{"".join(sides)}</div>\n'
        f"<ul>{''.join(items)}</ul>\n</article>"
    )


def highlighted(text: str, mentions: Iterable[Mention]) -> str:
    """The text as markup: every piece between two borders of mentions is one element, so that mentions may
    overlap. The caption of a mention stands after its end and is no part of the text.
    """
    inside = [m for m in mentions if m.start < m.end <= len(text)]
    borders = sorted({0, len(text), *(m.start for m in inside), *(m.end for m in inside)})
    parts = []
    for start, end in pairwise(borders):
        piece = _exactly(text[start:end])
        covering = sorted((m for m in inside if m.start <= start and end <= m.end), key=_length)
        if not covering:
            parts.append(piece)
            continue
        captions = " ".join(m.label for m in covering if m.end == end)
        caption = f' data-label="{escape(captions)}"' if captions else ""
        parts.append(f'<mark class="{_css_class(covering[0].label)}"{caption}>{piece}</mark>')
    return "".join(parts)


def describe(decision: Decision, text: str) -> str:
    """A decision in words, with the pieces of the text that it is about."""
    match decision:
        case "mention", start, end, label:
            return f"{label} “{text[start:end]}” at {start}"
        case "relation", drug, drug_end, effect, effect_end:
            return f"“{text[drug:drug_end]}” caused “{text[effect:effect_end]}”"
        case "expansion", start, end, long_form:
            return f"“{text[start:end]}” means “{long_form}”"
        case "event", start, end, pt:
            coded = "coded to nothing" if pt == NIL else f"coded to {pt}"
            return f"“{text[start:end]}” at {start} {coded}"
        case _:
            return f"summary “{decision[-1]}”"


def terms(pt: str | None, llt: str | None) -> str:
    """Preferred and lowest level term in words."""
    return f"{pt} ({llt})" if pt is not None else "coded to nothing"


def _side(record: Any | None) -> str:
    if record is None:
        return "<p>A dead letter: there is no record.</p>"
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


def _change(difference: Difference, how: str, decision: Decision, gold: Gold | None) -> str:
    right = gold.verdict(difference.id, decision) if gold else None
    against = {None: "", True: ", which gold has", False: ", which gold has not"}[right]
    effect = "" if right is None else (" (better)" if right == (how == "gained") else " (worse)")
    return f"{how}: {describe(decision, difference.text)}{against}{effect}"


def _exactly(text: str) -> str:
    """Escaped; a carriage return as a reference, which a browser would turn into a newline."""
    return escape(text).replace("\r", "&#13;")


def _css_class(label: str) -> str:
    return label.lower() if label in LABELS else "unknown"


def _length(mention: Mention) -> int:
    return mention.end - mention.start
