"""What a reviewer's form makes of an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from models.drugs import BUNDLED, DrugLexicon
from models.drugs.classes import class_named
from models.tables import read_tsv
from models.terminology import Term
from streams.records import ReviewedEvent
from streams.store.decisions import found_span

ACTIONS = ("accept", "reject", "correct")
FLAGS = ("negated", "hypothetical", "other_experiencer")
NIL = "NIL"
Form = Mapping[str, Any]


class FieldError(ValueError):
    """What a field of the form has cannot be saved; the message says what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a correction may name."""

    terms: dict[str, Term]
    """By the lowest-level term in small letters."""
    drugs: DrugLexicon
    drug_names: Mapping[str, str]
    """Nonproprietary name by each name of the lexicon in small letters."""


def names_of_drugs() -> dict[str, str]:
    """The `drug_names` of a vocabulary."""
    return {row[0].lower(): row[1] for row in read_tsv(BUNDLED, ("name", "generic"))}


def state_of(event: Mapping[str, Any]) -> ReviewedEvent:
    """An event of the store; a span and drugs that were not corrected are null."""
    span: tuple[int | None, int | None] = event["span_start"], event["span_end"]
    start, end = (None, None) if span == found_span(event) else span
    drugs = None if event["drugs"] == found_drugs(event) else tuple(event["drugs"])
    return ReviewedEvent(
        llt=event["llt"], pt=event["pt"], soc=event["soc"], negated=bool(event["negated"]),
        hypothetical=bool(event["hypothetical"]), other_experiencer=bool(event["other_experiencer"]),
        serious=bool(event["serious"]), review=event["review"], start=start, end=end, drugs=drugs,
    )  # fmt: skip


def found_drugs(event: Mapping[str, Any]) -> list[str]:
    """The suspected drugs of the models."""
    if not event["found"]:
        return list(event["drugs"])
    drugs: list[str] = orjson.loads(orjson.loads(event["found"])["drugs"])
    return drugs


def shown_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields of the form have for an event."""
    return {
        "term": event["llt"] or NIL, "span_start": event["span_start"], "span_end": event["span_end"],
        "drugs": ", ".join(event["drugs"]), "reason": "",
    } | {name: bool(event[name]) for name in FLAGS}  # fmt: skip


def typed_fields(form: Form, event: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields had when the form was sent."""
    texts = {name: form.get(name, value) for name, value in shown_fields(event).items() if name not in FLAGS}
    return texts | {name: name in form for name in FLAGS}


def decided(
    before: ReviewedEvent, action: str, form: Form, event: Mapping[str, Any], vocabulary: Vocabulary
) -> ReviewedEvent:
    """The event after a decision. `event` has the `text` of its report, or None. Raises FieldError."""
    if action != "correct":
        return replace(before, review="accept" if action == "accept" else "reject")
    flags: dict[str, Any] = {name: name in form for name in FLAGS}
    corrected = _coded(replace(before, review="correct", **flags), form, vocabulary.terms)
    return _with_drugs(_with_span(corrected, form, event), form, event, vocabulary.drugs)


def _coded(state: ReviewedEvent, form: Form, terms: Mapping[str, Term]) -> ReviewedEvent:
    wanted = str(form.get("term", "")).strip()
    if not wanted or wanted.lower() == (state.llt or NIL).lower():
        return state
    if wanted.upper() == NIL:
        return replace(state, llt=None, pt=None, soc=None, serious=False)
    term = terms.get(wanted.lower())
    if term is None:
        raise FieldError("term", "The terminology has no such term: choose one of the list, or NIL.")
    return replace(state, llt=term.llt, pt=term.pt, soc=term.soc, serious=term.serious)


def _with_span(state: ReviewedEvent, form: Form, event: Mapping[str, Any]) -> ReviewedEvent:
    if event["text"] is None or "span_start" not in form:
        return state
    start, end = _number(form, "span_start"), _number(form, "span_end")
    if not 0 <= start < end <= len(event["text"]):
        field = "span_end" if 0 <= start < len(event["text"]) else "span_start"
        raise FieldError(
            field, f"The span must be within the text, which has {len(event['text'])} characters."
        )
    is_found = (start, end) == found_span(event)
    return replace(state, start=None if is_found else start, end=None if is_found else end)


def _number(form: Form, field: str) -> int:
    try:
        return int(str(form.get(field, "")))
    except ValueError:
        raise FieldError(field, "A whole number is needed.") from None


def _with_drugs(
    state: ReviewedEvent, form: Form, event: Mapping[str, Any], lexicon: DrugLexicon
) -> ReviewedEvent:
    """Only names of the lexicon and of classes: a decision must have no words of the report."""
    by_models = found_drugs(event)
    if "drugs" not in form:
        return state
    given = [name.strip() for name in str(form["drugs"]).split(",") if name.strip()]
    if state.drugs is not None and (given == list(state.drugs) or _is_unchanged(form, state.drugs)):
        return state
    if given == by_models or _is_unchanged(form, by_models):
        return replace(state, drugs=None)
    known = [(name, lexicon.generic(name) or class_named(name)) for name in given]
    unknown = [name for name, generic in known if generic is None]
    if unknown:
        message = f"The lexicon has no drug “{unknown[0]}”: name drugs of the lexicon, with commas."
        raise FieldError("drugs", message)
    return replace(state, drugs=tuple(dict.fromkeys(generic for _, generic in known if generic)))


def _is_unchanged(form: Form, drugs: Iterable[str]) -> bool:
    """Whether the field has these drugs as the page shows them. Words of a report may have commas, and line
    breaks, which a browser takes out.
    """
    return "".join(str(form["drugs"]).split()) == "".join(", ".join(drugs).split())
