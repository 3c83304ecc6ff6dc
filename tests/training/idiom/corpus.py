"""Values that the tests of idioms share."""

from __future__ import annotations

import math

EXPRESSIONS = ("home run", "big fish", "dead heat", "night owl")


def unit(degrees: float) -> list[float]:
    """The unit vector (2,) at an angle."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]
