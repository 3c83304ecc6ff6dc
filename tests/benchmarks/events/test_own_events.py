"""Which events of tweets count, and what flags are worth."""

from __future__ import annotations

import json

from benchmarks.events.own_events import figures, flags, tweets
from models.types import ADE, NEGATED, OWN, Mention
from training.evaluation.alarms import Post

TEXT = "my sister went on it and ended up with hives, I got a rash, no itch"


def found(part: str, status: str, score: float) -> Mention:
    start = TEXT.index(part)
    return Mention(start, start + len(part), part, ADE, 0.9, status=status, status_score=score)


MENTIONS = [found("hives", OWN, 0.85), found("rash", OWN, 0.95), found("itch", NEGATED, 0.9)]
POSTS = [Post(TEXT, ((54, 58),), True)]


def test_only_the_adverse_effects_of_a_writer_count() -> None:
    row = {
        "text": "zoloft hives, fever",
        "mentions": [
            {"start": 0, "end": 6, "label": "DRUG"},
            {"start": 7, "end": 12, "label": "SYMPTOM"},
            {"start": 14, "end": 19, "label": "SYMPTOM"},
        ],
        "relations": [
            {"kind": "adverse", "drug": 0, "symptom": 1},
            {"kind": "reason_or_benefit", "drug": 0, "symptom": 2},
        ],
    }
    lines = "\n".join(json.dumps(row | {"kind": kind}) for kind in ("own_event", "spoken_of", "none"))
    assert tweets(lines) == [Post(row["text"], ((7, 12),), True), Post(row["text"], (), False)]  # type: ignore[arg-type]


def test_the_rules_flag_what_the_head_is_less_sure_of() -> None:
    rows = {name: figures(POSTS, [MENTIONS], unflagged) for name, unflagged in flags().items()}
    head = {"f1": 0.6667, "coverage": 1.0, "risk": 0.5, "flags": 1, "flag precision": 1.0, "flag recall": 0.5}
    both = {"f1": 1.0, "coverage": 1.0, "risk": 0.0, "flags": 2, "flag precision": 1.0, "flag recall": 1.0}
    assert rows["by the head"] == rows["rules below 0.0"] == rows["rules below 0.8"] == head
    assert rows["rules below 0.9"] == rows["rules always"] == rows["by the rules"] == both
    assert rows["no flags"] == {
        "f1": 0.5, "coverage": 1.0, "risk": 0.6667, "flags": 0, "flag precision": 0.0, "flag recall": 0.0,
    }  # fmt: skip
