"""What a page shows of one report: its text with highlighted mentions, and its changed decisions."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from models.types import Mention
from streams.html import css_class, cut, exact, length
from streams.replay.diff import Change, Difference
from streams.replay.gold import NIL, Decision

#: What a decision on a mention or an event is about.
WORDS = {
    "generic": "drug",
    "status": "status",
    "term": "lowest-level term",
    "flag": "flag",
    "suspect": "suspected drug",
}


def highlighted(text: str, mentions: Iterable[Mention]) -> Markup:
    """The text as HTML. Every piece between two mention boundaries is one element, so mentions may overlap;
    its class is the label of the shortest mention. A mention's label is shown after its end by the style
    sheet and is not part of the text.
    """
    parts = []
    for start, end, found in cut(text, ((m.start, m.end, m) for m in mentions)):
        piece = exact(text[start:end])
        covering = [m for _, _, m in sorted(found, key=length)]
        if covering:
            labels = " ".join(m.label for m in covering if m.end == end)
            attribute = Markup(' data-label="{}"').format(labels) if labels else ""
            piece = Markup('<mark class="{}"{}>{}</mark>').format(
                css_class(covering[0].label), attribute, piece
            )
        parts.append(piece)
    return Markup().join(parts)


def changes(difference: Difference) -> list[str]:
    """The changed decisions of a report in words, those that are lost first."""
    ordered = sorted(difference.changes, key=lambda c: (c.is_gained, c.decision))
    return [_change(change, difference.text) for change in ordered]


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


def _change(change: Change, text: str) -> str:
    in_gold = change.in_gold
    verdict = {None: "", True: ", in gold", False: ", not in gold"}[in_gold]
    effect = "" if in_gold is None else (" (better)" if in_gold == change.is_gained else " (worse)")
    way = "gained" if change.is_gained else "lost"
    return f"{way}: {describe(change.decision, text)}{verdict}{effect}"
