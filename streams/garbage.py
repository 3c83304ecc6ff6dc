"""Leaves what exists now and stays for good out of garbage collections."""

from __future__ import annotations

import atexit
import gc


def freeze() -> None:
    """To be called once everything is imported and loaded: otherwise each full collection, and every model
    swap runs one, visits half a million objects and stops the process for 0.2 s.

    At the end of the process they are collected again: libraries that look for what is left (nanobind, with
    which duckdb is made) would else print it as leaked.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)
