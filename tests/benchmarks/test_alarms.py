"""The share of tweets with an unflagged event, on sentences of our own."""

from __future__ import annotations

from typing import Any

from benchmarks.alarms import alarms, shares
from models.types import ADE, DRUG, Mention
from streams.records import TaggedReport


def tagged(text: str, *effects: str, label: str = ADE) -> TaggedReport:
    mentions = [Mention(text.index(e), text.index(e) + len(e), e, label, 0.9) for e in effects]
    return TaggedReport(id="t", text=text, mentions=tuple(mentions))


def test_flagged_events_and_drugs_raise_no_alarm() -> None:
    assert alarms(tagged("zoloft gave me hives", "hives")) == [(15, 20)]
    assert alarms(tagged("no hives on zoloft", "hives")) == []
    assert alarms(tagged("my dog got hives", "hives")) == []
    assert alarms(tagged("zoloft again", "zoloft", label=DRUG)) == []


def test_shares_are_counted_by_kind_of_tweet() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "own_event", "mentions": [{"start": 0, "end": 4}]},
        {"kind": "own_event", "mentions": [{"start": 15, "end": 20}]},
        {"kind": "none", "mentions": []},
    ]
    reports = [tagged("zoloft gave me hives", "hives")] * 2 + [tagged("zoloft again")]
    assert shares(rows, reports) == {
        "none": {"tweets": 1, "alarmed": 0.0, "on a gold mention": 0.0},
        "own_event": {"tweets": 2, "alarmed": 1.0, "on a gold mention": 0.5},
    }
