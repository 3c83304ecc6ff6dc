"""A cache whose function runs once for each of its arguments, also when several threads ask at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """A cache like `functools.cache`, which would let each thread compute and keep a result of its own."""
    cached = cache(function)
    lock = threading.RLock()

    @wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return cached(*args, **kwargs)  # type: ignore[arg-type]

    return locked
