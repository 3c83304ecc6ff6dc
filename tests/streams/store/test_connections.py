"""What several connections to a database of the store do to each other, and what is left after a failure."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streams.order import revision_of
from streams.settings import Settings
from streams.signals.surveillance import Options, Surveillance
from streams.store.changes import Read, fold
from streams.store.clickhouse import lease
from streams.store.clickhouse.database import ClickHouseDatabase
from streams.store.database import DatabaseError
from streams.store.follow import Follower
from streams.store.open_database import open_database
from tests.streams.store.conftest import Open
from tests.streams.store.messages import NOON, deletion, event, message, report
from tests.streams.store.test_contract import apply, contents, rows


def test_a_transaction_that_fails_changes_nothing(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened(write=True)
    apply(database, message(0, report("a", 1, event())))
    expected = contents(database)
    bad = report("a", 2, event(), event())
    object.__setattr__(bad.events[1], "score", "no number")
    follower = Follower(Settings(), database)
    read = [Read(bad.id, revision_of(bad), bad)], 0
    monkeypatch.setattr("streams.store.follow.read_all", lambda messages: read)
    with pytest.raises(DatabaseError):
        follower.apply([message(1, report("a", 2))])
    assert contents(database) == expected
    assert database.offsets() == {("events", 0): 1}


def test_a_reader_can_read_and_nothing_else(opened: Open, tmp_path: Path) -> None:
    writer = opened(write=True)
    apply(writer, message(0, report("a", 1, event())))
    writer.release()
    reader = opened()
    names, found = reader.query("SELECT drug, count(*) AS n FROM pairs GROUP BY drug")
    assert (names, list(found)) == (["drug", "n"], [("sertraline", 1)])
    for attempt in (
        "DELETE FROM reports", "DROP TABLE pairs", "CREATE TABLE t (a text)",
        "COMMIT; DELETE FROM reports", "SELECT 1; COMMIT; DELETE FROM reports",
        f"COPY reports TO '{tmp_path}/copy'",
    ):  # fmt: skip
        with pytest.raises(DatabaseError):
            list(reader.query(attempt)[1])
        reader.close()
        reader = opened()
    assert rows(reader, "SELECT id FROM reports") == [("a",)]
    with pytest.raises(DatabaseError) as wrong:
        list(reader.query("SELECT nothing FROM reports")[1])
    assert "\n" not in str(wrong.value)


@pytest.mark.slow
def test_a_second_writer_is_refused(opened: Open, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # However late the first one renews its lease on a loaded machine: the second one waits for that.
    monkeypatch.setattr(lease, "LEASE", 600.0)
    opened(write=True)
    with pytest.raises(DatabaseError, match="another process writes"):
        open_database(Settings(database=address), write=True)


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
@pytest.mark.parametrize("inserts", range(5))
def test_a_crash_between_two_tables_loses_nothing_and_doubles_nothing(
    opened: Open, inserts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no transaction over tables; `inserts` are done before the crash."""
    made = [message(i, report(f"r{i % 4}", i, *[event()] * (1 + i % 3))) for i in range(9)]
    made.append(deletion(9, "r1", 20))
    database = opened(write=True)
    apply(database, *made[:5])
    done: list[str] = []
    insert = ClickHouseDatabase._insert

    def crashing(self: ClickHouseDatabase, table: str, rows: Iterable[bytes]) -> None:
        if len(done) == inserts:
            raise KeyboardInterrupt
        insert(self, table, rows)
        done.append(table)

    with monkeypatch.context() as patch:
        patch.setattr(ClickHouseDatabase, "_insert", crashing)
        with suppress(KeyboardInterrupt):
            apply(database, *made[5:])
    assert database.offsets() == {("events", 0): 5 if inserts < 4 else 10}
    database.close()
    restarted = opened(write=True)
    for start in range(restarted.offsets()["events", 0], len(made), 2):
        apply(restarted, *made[start : start + 2])
    ids, events, pairs = contents(restarted)
    assert [row[:2] for row in ids] == [
        ("r0", "text 8 of r0"),
        ("r2", "text 6 of r2"),
        ("r3", "text 7 of r3"),
    ]
    assert [row[:2] for row in events] == [
        ("r0", 0), ("r0", 1), ("r0", 2), ("r2", 0), ("r3", 0), ("r3", 1),
    ]  # fmt: skip
    assert [row[0] for row in pairs] == ["r0", "r2", "r3"]
    assert restarted.offsets() == {("events", 0): 10}


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
def test_a_writer_that_has_lost_its_lease_is_refused_and_what_it_sent_is_older(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "LEASE", 0.2)
    monkeypatch.setattr(lease, "RENEWAL", 60.0)
    suspended: Any = opened(write=True)
    apply(suspended, message(0, report("a", 1, event())))
    time.sleep(0.3)
    successor = opened(write=True)
    apply(successor, message(1, report("a", 2, event(pt="Insomnia"))))
    with pytest.raises(DatabaseError, match="another process writes"):
        apply(suspended, message(0, report("b", 1)))
    late = fold([Read("a", revision_of(report("a", 1)), report("a", 1))], {})
    late.offsets = {("events", 0): 1}
    monkeypatch.setattr(suspended._lease, "check", lambda: None)
    suspended.write(late)
    assert [row[3] for row in contents(successor)[1]] == ["Insomnia"]
    assert successor.offsets() == {("events", 0): 2}
    suspended._lease.close()
    apply(successor, message(2, report("c", 3)))


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_signals_are_those_of_one_moment(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions while they are computed, which take the margins away under the pairs that were counted."""
    writer, reader = opened(write=True), opened()
    made = [report(f"r{i}", i, event(), created_at=NOON) for i in range(4)]
    made.append(report("o", 5, event("lithium", "Insomnia"), created_at=NOON))
    apply(writer, *(message(i, one) for i, one in enumerate(made)))
    later = NOON + timedelta(minutes=1)
    expected = Surveillance(reader, Options(stratified=True)).compute(later).signals
    query = type(reader).query

    def while_it_is_deleted(database: Any, sql: str) -> tuple[list[str], Any]:
        names, found = query(database, sql)
        found = iter(list(found))
        apply(writer, *(deletion(10 + i, f"r{i}", 20 + i) for i in range(4)))
        return names, found

    monkeypatch.setattr(reader, "query", partial(while_it_is_deleted, reader))
    assert Surveillance(reader, Options(stratified=True)).compute(later).signals == expected != []
    monkeypatch.undo()
    assert Surveillance(reader, Options()).compute(later).signals == []
