"""Summary of scores over the folds of a corpus."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any


def summary(folds: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Mean of each score and of its baseline and, with at least two folds, the score's standard deviation."""
    rows = list(folds.values())
    figures: dict[str, Any] = {"folds_done": len(rows)}
    for name in rows[0]["scores"]:
        values = [r["scores"][name] for r in rows]
        figures[name] = round(statistics.mean(values), 4)
        figures[f"{name}_baseline"] = round(statistics.mean(r["baselines"][name] for r in rows), 4)
        if len(values) > 1:
            figures[f"{name}_sd"] = round(statistics.stdev(values), 4)
    return figures | {"seconds_a_fold": round(statistics.mean(r["seconds"] for r in rows))}
