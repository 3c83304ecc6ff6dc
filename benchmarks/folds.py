"""Scores over the folds of a corpus."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any


def summary(folds: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Mean of each score and of its baseline and, from two folds on, the score's standard deviation."""
    rows = list(folds.values())
    found: dict[str, Any] = {"folds_done": len(rows)}
    for name in rows[0]["scores"]:
        values = [r["scores"][name] for r in rows]
        found[name] = round(statistics.mean(values), 4)
        found[f"{name}_baseline"] = round(statistics.mean(r["baselines"][name] for r in rows), 4)
        if len(values) > 1:
            found[f"{name}_sd"] = round(statistics.stdev(values), 4)
    return found | {"seconds_a_fold": round(statistics.mean(r["seconds"] for r in rows))}
