"""How complete a case is, like the score of vigiGrade (Bergvall, Noren and Lindquist 2014, doi
10.1007/s40264-013-0131-x): 1, less a share for each dimension on which nothing is stated, multiplied.

Unlike that score it counts what was read in a free text, once for a case and not for each drug and event.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

#: What is taken off where a dimension is missing, of their table 1.
PENALTIES = {
    "onset": 0.5, "indication": 0.3, "outcome": 0.3, "sex": 0.3, "age": 0.3, "dose": 0.1, "country": 0.1,
    "reporter": 0.1, "report_type": 0.1, "comments": 0.1,
}  # fmt: skip
#: What is taken off where only an age group or a decade is known, or a time to onset is not a number.
VAGUE = {"age": 0.1, "onset": 0.3}


def completeness(case: Mapping[str, Any]) -> tuple[float, list[str]]:
    """The score of a case, 0.07 to 1, and the dimensions that are missing or vague."""
    stated = _stated(case)
    shares = {name: _penalty(name, stated[name]) for name in PENALTIES}
    return round(prod(1 - share for share in shares.values()), 3), [n for n, share in shares.items() if share]


def _penalty(name: str, stated: bool | None) -> float:
    """`stated`: None where it is vague."""
    return VAGUE[name] if stated is None else 0.0 if stated else PENALTIES[name]


def _stated(case: Mapping[str, Any]) -> dict[str, bool | None]:
    fields: Mapping[str, list[str | None]] = case["fields"]
    ages, onsets = fields.get("age", []), fields.get("onset", [])
    is_exact = len(ages) == 1 and ".." not in (ages[0] or "")
    return {
        "onset": None if onsets and not any(onsets) else bool(onsets),
        "indication": bool(case["indications"]),
        "outcome": bool(fields.get("outcome")),
        "sex": len(fields.get("sex", [])) == 1,
        "age": is_exact or (None if ages or fields.get("age_group") else False),
        "dose": bool(fields.get("dose")),
        "country": bool(case["country"]),
        "reporter": bool(case["criteria"]["reporter"]),
        # A text that its writer published is a spontaneous report.
        "report_type": True,
        "comments": True,
    }
