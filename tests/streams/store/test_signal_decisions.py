"""Decisions on signals in the store, beside those on events."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from streams.codec import decode, encode
from streams.records import Inbound, Review, SignalDecision, SignalStatus
from streams.store.database import Database
from streams.store.decisions import signal_decisions
from tests.streams.reviews.test_cases import decision
from tests.streams.store.conftest import Open
from tests.streams.store.messages import event, message, report
from tests.streams.store.test_contract import apply, rows

HOSTILE = "it's <b>\\0 \0 $t0$ 😴"


def on_signal(sequence: int, state: Any = "closed", **fields: Any) -> SignalDecision:
    """A decision by ann on 4 March 2026."""
    made: dict[str, Any] = {"drug": "sertraline", "term": "Nausea", "reviewer": "ann"} | fields
    return SignalDecision(
        sequence=sequence, decided_at=datetime(2026, 3, 4, tzinfo=UTC), before=SignalStatus(),
        after=SignalStatus(state=state, owner="bob", due=date(2026, 4, 1)), **made,
    )  # fmt: skip


def written(decided: SignalDecision, place: int = 0) -> Inbound:
    return Inbound("reviews", 0, place, b"k", encode(decided), 0.0)


def test_decisions_on_signals_are_kept_whole_and_once_and_change_no_event(opened: Open) -> None:
    database = opened(write=True)
    apply(database, message(0, report("a3", 1, event())))
    first, second = on_signal(0, "new", comment=HOSTILE), on_signal(1, reports=7, eb05=0.25, drug=HOSTILE)
    late: list[SignalDecision] = [replace(second, reason="late")]
    counts = apply(database, *map(written, [first, second, *late, first]))
    assert counts.get("unreadable", 0) == 0
    apply(database, written(first))
    assert signal_decisions(database) == [first, second]
    assert rows(database, "SELECT review FROM events") == [(None,)]
    assert rows(database, "SELECT pt FROM pairs") == [("Nausea",)]


def test_a_decision_on_a_signal_and_one_on_an_event_share_the_sequence(opened: Open) -> None:
    """Of two decisions of one number the first in the topic is the one that the chain has."""
    database = opened(write=True)
    made = decode(Review, decision("a3", "reject").value)
    apply(database, message(0, report("a3", 1, event())))
    apply(database, written(on_signal(made.sequence)), decision("a3", "reject"))
    assert len(signal_decisions(database)) == 1
    assert rows(database, "SELECT review FROM events") == [(None,)]
    apply(database, Inbound("reviews", 0, 3, b"a3", encode(replace(made, sequence=made.sequence + 1)), 0.0))
    assert rows(database, "SELECT pt FROM pairs") == []


def test_a_store_that_is_filled_again_has_the_same_decisions(opened: Open) -> None:
    made = [on_signal(i, state) for i, state in enumerate(("under review", "confirmed", "closed"))]
    database = opened(write=True)
    for decided in made:
        apply(database, written(decided))
    kept = _read(database, opened)
    apply(kept, *map(written, made))
    assert signal_decisions(kept) == made


def _read(database: Database, opened: Open) -> Database:
    """The store, opened again."""
    database.close()
    return opened(write=True)
