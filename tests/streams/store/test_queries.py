"""Every database gives the same answers to what the page, the signals, the cases and the export ask."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from streams.codec import decode, encode
from streams.records import CodedReport, Inbound, Review, ReviewedEvent
from streams.reviews.cases import cases
from streams.reviews.examples import gold_lines
from streams.reviews.log import ReviewLog, place_of
from streams.settings import Settings
from streams.signals.population import STRATUM, WEEK, Population, count, strata
from streams.store.database import Database, DatabaseError
from streams.store.export import export
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.store.tables import REPORTS
from streams.web import figures, reports, same, search
from streams.web.queue import ORDERS, alike, present, reviewed_since, waiting
from tests.streams.store.conftest import Open
from tests.streams.store.messages import FOUND, NOON, deletion, event, message, report

KEPT = replace(FOUND, llt="Feeling sick", review="correct")
#: Ids that would end a literal of some database, if they were not quoted for all.
HOSTILE = ("it's", "a\\", "a\\' OR 1=1 --", "$t0$", "b\\$t0", "b\\$t0$", "{a:String}", "%s", "--")


def named(id_: str, offset: int, *events: Any, **fields: Any) -> CodedReport:
    at = NOON - timedelta(days=offset)
    record_id = f"posts/{id_}/f{offset}/normalization@1"
    return report(id_, offset, *events, created_at=at, record_id=record_id, **fields)


def decision(sequence: int, of: CodedReport, after: ReviewedEvent, offset: int) -> Inbound:
    made = Review(
        sequence=sequence, report_id=of.id, start=0, end=4, fingerprint=f"f{offset}", reviewer="ann",
        decided_at=NOON, action="correct", before=FOUND, after=after,
    )  # fmt: skip
    return Inbound("reviews", 0, sequence, of.id.encode(), encode(made), NOON.timestamp())


def filled(database: Database) -> Database:
    """Reports of many days with decisions, some on reports that were stored before, and a deletion."""
    follower = Follower(Settings(), database)
    made = [
        named(id_, i, event(), event("lithium", "Insomnia", serious=True), language=("en", None)[i % 2])
        for i, id_ in enumerate(HOSTILE)
    ]
    made += [named(f"r{i}", i, event(("sertraline", "lithium")[i % 2])) for i in range(20, 60)]
    last = replace(made[-1], duplicate_of=made[-2].id)
    follower.apply([message(i, one) for i, one in enumerate([*made, last])])
    follower.apply([
        decision(0, made[1], KEPT, 1),
        decision(1, made[12], replace(KEPT, review="reject"), 23),
        decision(2, made[13], replace(KEPT, drugs=("aspirin",), start=1, end=3), 24),
        message(101, named("new", 99, event())), decision(3, named("new", 99), KEPT, 99),
        deletion(102, made[20].id, 1000), message(103, made[20]),
    ])  # fmt: skip
    database.release()
    return database


def more_decisions() -> ReviewLog:
    """The four that the store has, and others that it has not: two first ones, one that is taken back, and
    one on a report that it does not have.
    """
    log = ReviewLog(Settings())
    undone = replace(KEPT, review=None)
    later = [(HOSTILE[2], 2, KEPT), (HOSTILE[3], 3, KEPT), ("r23", 23, undone), ("nobody", 4, KEPT)]
    log.decisions += [decode(Review, decision(i, named("r20", 20), KEPT, 20).value) for i in range(4)]
    for i, (id_, offset, after) in enumerate(later, 4):
        made = decode(Review, decision(i, named(id_, offset), after, offset).value)
        log.decisions.append(made)
        log.current[place_of(made)] = after
    return log


def answers(database: Database) -> dict[str, Any]:
    """By the name of the question."""
    population = Population()
    tables = count(database, population, stratified=True)
    by_week, by_source = (strata(database, population, tables.pairs, s) for s in (WEEK, STRATUM))
    found: dict[str, Any] = {
        "totals": reports.totals(database),
        "latest": reports.latest(database, texts=True),
        "pair": reports.of_pair(database, "lithium", "Nausea", texts=True),
        "cases": list(cases(database, undecided=True)),
        "gold": list(gold_lines(database)),
        "pairs": sorted(zip(tables.pairs, tables.counts.n.tolist(), strict=True)),
        "since": sorted(count(database, replace(population, start=NOON - timedelta(hours=77.7))).pairs),
        "weeks": (by_week.names, by_week.n.sum(axis=0).tolist(), np.round(by_week.expected, 9).tolist()),
        "strata": (by_source.names, by_source.n.sum(axis=0).tolist()),
        "revisions": database.revisions(REPORTS, [*HOSTILE, "new"]),
    }
    found |= {order: waiting(database, order) for order in ORDERS}
    found |= searched(database)
    found["present"] = present(database, [*found["random"][1], ("nobody", 0, 4, "f1")])
    assert reviewed_since(database, more_decisions()) == 1
    found |= {f"one {id_}": reports.report_of(database, id_, texts=True) for id_ in (*HOSTILE, "r24", "new")}
    return found


FILTERS = (
    search.Filter(), search.Filter(text="TEXT 1 OF A\\"), search.Filter(drug="lith", term="nausea"),
    search.Filter(flag="serious", state="undecided"), search.Filter(state="correct"),
    search.Filter(source="it's"), search.Filter(since="2026-01-20", until="2026-02-02"),
    search.Filter(drug="\\"), search.Filter(flag="nil"),
)  # fmt: skip


def searched(database: Database) -> dict[str, Any]:
    """What the search and the figures say, and the events that are accepted together."""
    found: dict[str, Any] = {}
    for wanted in FILTERS:
        events = sorted(search.events_of(database, wanted), key=str)
        found[f"search {wanted}"] = search.listed(database, wanted, 0), events
    one = next(e for e in reports.report_of(database, "r30", texts=True)["events"])  # type: ignore[index]
    end = NOON.date()
    return found | {
        "alike": (alike(database, one), same.found_alike(database, one)),
        "days": [figures.by_day(database, drug, end) for drug in ("", "lithium")],
        "releases": figures.releases(database, end - timedelta(days=50)),
        "terms": [figures.terms(database, drug, end) for drug in ("", "sertraline")],
        "heat": figures.heat(database),
    }


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, Any]:
    """The answers of DuckDB."""
    database = filled(open_database(Settings(database=str(tmp_path / "expected.duckdb")), write=True))
    found = answers(database)
    database.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("address", ["postgresql", "clickhouse"], indirect=True)
def test_every_database_gives_the_same_answers(opened: Open, expected: dict[str, Any]) -> None:
    filled(opened(write=True))
    found = answers(opened())
    for question, answer in expected.items():
        assert found[question] == answer, question


def test_hostile_ids_are_found_and_decisions_are_in_the_tables(expected: dict[str, Any]) -> None:
    """What the comparison stands on is not empty."""
    assert [expected[f"one {id_}"]["id"] for id_ in HOSTILE] == list(HOSTILE)
    # Both events of the report are those of one mention.
    assert [e["review"] for e in expected[f"one {HOSTILE[1]}"]["events"]] == ["correct"] * 2
    (moved,) = expected["one r24"]["events"]
    assert (moved["drugs"], moved["span_start"], moved["span_end"]) == (["aspirin"], 1, 3)
    (new,) = expected["one new"]["events"]
    assert new["review"] == "correct"
    counts = [expected[f"search {wanted}"][0][0] for wanted in FILTERS]
    assert counts[0] == 49 and all(counts[1:5]) and counts[5:] == [0, 13, 0, 0], counts
    assert expected["alike"][0] == len(expected["alike"][1]) > 5 and expected["heat"][0]
    assert len(expected["weeks"][0]) > 5 and expected["since"] and len(expected["gold"]) == 4


def test_a_decision_on_the_code_says_whether_the_event_is_nil(opened: Open) -> None:
    database = opened(write=True)
    follower = Follower(Settings(), database)
    coded, nil = named("a", 1, event()), named("b", 2, event(pt=None))
    follower.apply([message(0, coded), message(1, nil)])
    uncoded = replace(FOUND, llt=None, pt=None, soc=None, review="correct")
    sql = "SELECT pt, nil FROM events ORDER BY report_id"
    for number, (first, second) in enumerate(((uncoded, KEPT), (FOUND, uncoded))):
        follower.apply([decision(2 * number, coded, first, 1), decision(2 * number + 1, nil, second, 2)])
        expected = [(state.pt, state.pt is None) for state in (first, second)]
        assert [tuple(row) for row in database.query(sql)[1]] == expected


@pytest.mark.parametrize("undone_first", [False, True])
def test_an_undo_gives_back_what_the_latest_release_found(opened: Open, undone_first: bool) -> None:
    """In whatever batches the later release and the undo come."""
    database = opened(write=True)
    follower = Follower(Settings(), database)
    first, later = named("a", 1, event()), named("a", 2, event(pt="Insomnia", negated=True))
    later = replace(later, record_id=first.record_id)
    undo = decision(1, first, replace(FOUND, review=None), 1)
    follower.apply([message(0, first), decision(0, first, KEPT, 1)])
    if undone_first:
        follower.apply([undo])
        follower.apply([message(1, later)])
    else:
        follower.apply([message(1, later)])
        corrected = [("Feeling sick", "correct")]
        assert [tuple(row) for row in database.query("SELECT llt, review FROM events")[1]] == corrected
        follower.apply([undo])
    sql = "SELECT llt, pt, soc, negated, review FROM events"
    expected = [("Insomnia", "Insomnia", "Psychiatric disorders", True, None)]
    assert [tuple(row) for row in database.query(sql)[1]] == expected
    pairs = [tuple(row) for row in database.query("SELECT pt, affirmed FROM pairs")[1]]
    assert pairs == [("Insomnia", False)]


def test_an_export_has_the_rows_that_readers_see(opened: Open, tmp_path: Path) -> None:
    filled(opened(write=True))
    database = opened()
    written = export(database, tmp_path / "parquet")
    seen = [tuple(row) for row in database.query("SELECT report_id, drug, pt FROM pairs")[1]]
    assert written["pairs"] == len(seen) > 50
    sql = f"SELECT report_id, drug, pt FROM '{tmp_path}/parquet/pairs/*/*.parquet'"
    assert sorted(duckdb.execute(sql).fetchall(), key=str) == sorted(seen, key=str)


def test_an_export_that_fails_leaves_no_part_of_it(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(opened(write=True))
    database = opened()
    read, (empty, new) = database.query, (tmp_path / "empty", tmp_path / "made" / "new")
    empty.mkdir()

    def failing(sql: str) -> Any:
        if sql.endswith("FROM pairs"):
            raise DatabaseError("the connection is lost")
        return read(sql)

    with monkeypatch.context() as patch:
        patch.setattr(database, "query", failing)
        for folder in (empty, new):
            with pytest.raises(DatabaseError):
                export(database, folder)
    assert list(empty.iterdir()) == list(new.parent.iterdir()) == []
    for folder in (empty, new):
        assert export(database, folder)["pairs"] > 50
        assert sorted(path.name for path in folder.iterdir()) == ["events", "pairs", "reports", "summaries"]
        assert list(folder.parent.glob("pvstream-export-*")) == []


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_an_export_is_of_one_moment(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that is deleted while its tables are read is there with its events, or not at all."""
    writer = filled(opened(write=True))
    database = opened()
    read = database.query

    def deleting(sql: str) -> Any:
        names, rows = read(sql)
        read_whole = list(rows)
        if sql.endswith("FROM reports"):
            Follower(Settings(), writer).apply([deletion(200, "r25", 1000)])
        return names, iter(read_whole)

    with monkeypatch.context() as patch:
        patch.setattr(database, "query", deleting)
        export(database, tmp_path / "parquet")
    for table, column in (("reports", "id"), ("events", "report_id"), ("pairs", "report_id")):
        sql = f"SELECT count(*) FROM '{tmp_path}/parquet/{table}/*/*.parquet' WHERE {column} = 'r25'"
        assert duckdb.execute(sql).fetchall() == [(1,)], table
    assert list(database.query("SELECT deleted FROM reports WHERE id = 'r25'")[1]) == [(True,)]


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
def test_what_was_deleted_or_replaced_leaves_the_disk(opened: Open) -> None:
    database: Any = filled(opened(write=True))
    sql = "SELECT count(*) FROM stored_reports WHERE id = 'r31' AND text IS NOT NULL"
    assert list(database.query(sql)[1]) == [(1,)]
    database._client.command("OPTIMIZE TABLE stored_reports FINAL")
    assert list(database.query(sql)[1]) == [(0,)]
    assert list(database.query("SELECT deleted FROM reports WHERE id = 'r31'")[1]) == [(True,)]


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
def test_the_tables_behind_the_kafka_engine_keep_the_latest_result(opened: Open) -> None:
    """The SQL of the page, with a plain table where the engine would read the topic."""
    page = (Path(__file__).parents[3] / "docs/results/store.md").read_text(encoding="utf-8")
    (sql,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    _, *statements = [statement for statement in sql.split(";") if statement.strip()]
    client: Any = opened(write=True)._client  # type: ignore[attr-defined]
    client.command("CREATE TABLE events_queue (record String, _error String) ENGINE = Memory")
    for statement in statements:
        client.command(statement)
    for record in (named("a", 5), named("a", 3), named("b", 4)):
        client.insert("events_queue", [[encode(record).decode(), ""]], ["record", "_error"])
    client.insert("events_queue", [["{", "no JSON"]], ["record", "_error"])
    found = client.query("SELECT id, source_offset FROM events_latest FINAL ORDER BY id").result_rows
    assert [tuple(row) for row in found] == [("a", 5), ("b", 4)]


def test_a_second_reading_changes_no_pair_also_without_a_first_one_that_can_be_read(opened: Open) -> None:
    database = opened(write=True)
    follower, made = Follower(Settings(), database), named("a", 1, event())
    follower.apply([message(0, made)])
    given = decision(0, made, KEPT, 1)
    second = replace(decode(Review, given.value), reading=2)
    follower.apply([replace(given, value=encode(second))])
    asked = ("SELECT pt FROM events", "SELECT pt FROM pairs", "SELECT reading FROM reviews")
    assert [list(database.query(sql)[1]) for sql in asked] == [[("Nausea",)], [("Nausea",)], [(2,)]]
