"""Which tweets are compared, and what counts as their events."""

from __future__ import annotations

import json

from benchmarks.alarms import posts
from training.evaluation.alarms import Post


def test_tweets_with_an_own_event_are_compared_to_those_without_any() -> None:
    def row(kind: str, *mentions: tuple[int, int, str]) -> str:
        spans = [{"start": a, "end": b, "label": label} for a, b, label in mentions]
        return json.dumps({"kind": kind, "text": "zoloft hives", "mentions": spans})

    lines = "\n".join(
        [row("own_event", (0, 6, "DRUG"), (7, 12, "SYMPTOM")), row("spoken_of"), row("none", (0, 6, "DRUG"))]
    )
    assert posts(lines) == [Post("zoloft hives", ((7, 12),), True), Post("zoloft hives", (), False)]
