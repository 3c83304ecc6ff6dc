"""Values of a case's fields in one form: years, mg, durations of ISO 8601."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from models.quantities import Number

#: Unit of time to the form of its durations in ISO 8601, and to years.
_ISO = {
    "seconds": "PT{}S", "minutes": "PT{}M", "hours": "PT{}H", "days": "P{}D", "weeks": "P{}W",
    "months": "P{}M", "years": "P{}Y",
}  # fmt: skip
_YEARS = {"days": 1 / 365.25, "weeks": 7 / 365.25, "months": 1 / 12, "years": 1.0}
_MG = {"mg": 1.0, "ug": 0.001, "g": 1000.0}
#: Years that nobody has reached.
OLDEST = 120


def years(number: Number, unit: str) -> str | None:
    """An age, None where nobody has it."""
    factor = _YEARS.get(unit)
    if factor is None or isnan(number.low) or not 0 < number.high * factor <= OLDEST:
        return None
    return _ends(number, lambda n: f"{n * factor:.3g}")


def duration(number: Number, unit: str) -> str | None:
    """A duration in the unit that is written; a range is two of them with two dots between. None where the
    number is not stated.
    """
    return None if isnan(number.low) else _ends(number, lambda n: _ISO[unit].format(f"{n:.6g}"))


def dose(number: Number, unit: str, per: str) -> str:
    """A dose in mg where the unit is one of mass, else in its unit; `per`: what it is divided by, "/kg/d"."""
    return f"{_ends(number, lambda n: f'{n * _MG.get(unit, 1.0):.6g}')} {'mg' if unit in _MG else unit}{per}"


def _ends(number: Number, form: Callable[[float], str]) -> str:
    ends = [form(number.low), form(number.high)]
    return "..".join(dict.fromkeys(ends))
