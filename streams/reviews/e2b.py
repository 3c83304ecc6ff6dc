"""A candidate case in the elements of ICH E2B(R3), as JSON: a draft that a person must assess and complete.

It is no message: it has no codes of MedDRA, and what the implementation guide requires and a text cannot
state (sender, qualification of the reporter, causality) stands in `to_complete`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Element = dict[str, Any]
DRAFT = "DRAFT for assessment by a qualified person; made by a program from a text; not an E2B message"
#: The minimum of a valid report, by the flag of the case that says whether the record has it.
MINIMUM = {
    "reporter": "C.2.r identifiable reporter",
    "patient": "D identifiable patient",
    "drug": "G.k.2.2 suspect drug",
    "event": "E.i.2.1 reaction",
}
#: What is required beside that and is nowhere in a text.
TO_COMPLETE = (
    "C.1.2 date of creation", "C.1.7 expedited criteria", "C.1.8.2 first sender",
    "C.2.r.4 qualification of the reporter", "C.3 sender", "E.i.2.1b MedDRA code",
    "G.k.9.i.2.r assessment of causality", "G.k.9.i.4 recurrence on readministration",
)  # fmt: skip
_SEX = {"male": "1", "female": "2"}
_AGE_GROUP = {"neonate": "1", "infant": "2", "child": "3", "adolescent": "4", "elderly": "6"}
_OUTCOME = {"recovered": "1", "recovering": "2", "not_recovered": "3"}
FATAL = "5"
_SERIOUS = {
    "E.i.3.2a": "death", "E.i.3.2b": "life_threatening", "E.i.3.2c": "hospitalization",
    "E.i.3.2d": "disability", "E.i.3.2e": "congenital",
}  # fmt: skip
_UNIT = {"Y": "a", "M": "mo", "W": "wk", "D": "d", "TH": "h", "TM": "min", "TS": "s"}
_DURATION = re.compile(r"P(T?)(\d{1,9}(?:\.\d{1,9})?)([YMWDHS])")
_DOSE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ([^ ]+)")
#: Characters between a field and the drug that it is of.
NEAR = 40


def draft(case: Mapping[str, Any]) -> Element:
    """The case with the numbers of the elements as keys; what is not known is null."""
    fields = case["fields"]
    return {
        "draft": DRAFT,
        "missing": case["missing"],
        "to_complete": list(TO_COMPLETE),
        "completeness": case["completeness"],
        "C.1": {
            "C.1.1": f"DRAFT-{case['id']}", "C.1.3": "1", "C.1.4": case["reported_at"],
            "C.1.5": case["reported_at"], "C.1.6.1.r.1": case["permalink"],
        },
        "C.2.r": [{"C.2.r.3": case["country"], "C.2.r.4": None}] if case["criteria"]["reporter"] else [],
        "D": {
            "D.1": "MSK" if case["criteria"]["patient"] else None,
            **_quantity("D.2.2", _only(fields.get("age")), "a"),
            "D.2.3": _AGE_GROUP.get(_only(fields.get("age_group")) or ""),
            "D.5": _SEX.get(_only(fields.get("sex")) or ""),
            "D.7.2": "pregnancy" if "pregnancy" in fields else None,
        },
        "E.i": [_reaction(case, event) for event in case["events"] if is_affirmed(event)],
        "G.k": [_drug(case, drug, "1") for drug in case["suspects"]]
        + [_drug(case, drug, "2") for drug in case["co_medication"]],
        "H": {"H.1": case["text"], "H.2": None, "H.4": case["note"]},
    }  # fmt: skip


def is_affirmed(event: Mapping[str, Any]) -> bool:
    """Whether an event happened, to whomever."""
    return not (event["negated"] or event["hypothetical"])


def _reaction(case: Mapping[str, Any], event: Mapping[str, Any]) -> Element:
    """An event; outcome and criteria of seriousness are those that are told nearest to it."""
    spans = [(e["span_start"], e["span_end"]) for e in case["events"] if is_affirmed(e)]
    own = (event["span_start"], event["span_end"])
    fields = [f for f in case["case_fields"] if own == min(spans, key=lambda span: _distance(f, *span))]
    outcome = _only([f["value"] for f in fields if f["field"] == "outcome"])
    serious = {f["value"] for f in fields if f["field"] == "serious"}
    words = case["text"][slice(*own)] if case["text"] else None
    return {
        "E.i.1.1a": words,
        "E.i.2.1": event["pt"],
        **{number: name in serious for number, name in _SERIOUS.items()},
        "E.i.3.2f": bool(event["serious"]),
        "E.i.7": FATAL if "death" in serious else _OUTCOME.get(outcome or "", "0"),
    }


def _drug(case: Mapping[str, Any], drug: str, role: str) -> Element:
    fields: dict[str, list[Mapping[str, Any]]] = {}
    for field in case["case_fields"]:
        if _drug_of(case, field) == drug:
            fields.setdefault(field["field"], []).append(field)
    values = {name: _only([f["value"] for f in found]) for name, found in fields.items()}
    dose = _DOSE.fullmatch(values.get("dose") or "")
    stopped, suspect = "dechallenge" in fields, role == "1"
    return {
        "G.k.1": role,
        "G.k.2.2": drug,
        "G.k.4.r": {
            "G.k.4.r.1a": float(dose[1]) if dose else None, "G.k.4.r.1b": dose[2] if dose else None,
            **_time("G.k.4.r.6", values.get("duration")),
            "G.k.4.r.8": "; ".join(f["value"] or "" for f in fields.get("dose", ())) or None,
            "G.k.4.r.10.1": values.get("route"),
        },
        **_time("G.k.6", values.get("pregnancy") if suspect else None),
        "G.k.7.r.1": case["indications"] if suspect else [],
        "G.k.8": "1" if stopped else "0",
        **_time("G.k.9.i.3.1", values.get("onset")),
    }  # fmt: skip


def _drug_of(case: Mapping[str, Any], field: Mapping[str, Any]) -> str | None:
    """The drug that is named next to a field, else the only suspect."""
    named = [m for m in case["drugs"] if _distance(field, m["start"], m["end"]) <= NEAR]
    if named and field["field"] in ("dose", "route", "duration"):
        return str(min(named, key=lambda m: _distance(field, m["start"], m["end"]))["name"])
    return _only(case["suspects"])


def _distance(field: Mapping[str, Any], start: int, end: int) -> int:
    return max(int(field["start"]) - end, start - int(field["end"]), 0)


def _only(values: Sequence[str | None] | None) -> str | None:
    """The value that all are, or none."""
    distinct = {value for value in values or () if value}
    return distinct.pop() if len(distinct) == 1 else None


def _quantity(number: str, value: str | None, unit: str) -> Element:
    is_one = value is not None and ".." not in value
    return {f"{number}a": float(value or 0) if is_one else None, f"{number}b": unit if is_one else None}


def _time(number: str, value: str | None) -> Element:
    """A duration of ISO 8601 as a number and a unit of UCUM; a range is neither."""
    match = _DURATION.fullmatch(value or "")
    return _quantity(number, match[2] if match else None, _UNIT[match[1] + match[3]] if match else "")
