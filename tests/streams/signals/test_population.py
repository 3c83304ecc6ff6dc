"""What is counted, and statistics that follow its changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import duckdb
import numpy as np
import pytest

from streams.records import CodedReport
from streams.signals.population import STRATUM, WEEK, Population, count, strata
from streams.signals.statistics.ratios import prr
from streams.signals.watch import watch
from streams.store.database import Database
from tests.streams.signals.conftest import Fill
from tests.streams.signals.statistics.test_statistics import REPORTS
from tests.streams.store.messages import NOON, event, report

TOY = [report(f"t{i}", i, event(pair[0], pair[1])) for i, pair in enumerate(REPORTS)]


def counted(database: Database, population: Population | None = None) -> dict[tuple[str, str], float]:
    tables = count(database, population or Population())
    database.release()
    return dict(zip(tables.pairs, tables.counts.n.tolist(), strict=True))


def test_the_toy_reports_of_openebgm_give_its_table(stored: Database, fill: Fill) -> None:
    fill(TOY)
    tables = count(stored, Population())
    assert tables.reports == 17
    assert tables.pairs == [("A", "1"), ("A", "2"), ("B", "1"), ("B", "2"), ("C", "1")]
    np.testing.assert_allclose(tables.counts.n, [5, 4, 3, 4, 1])
    np.testing.assert_allclose(tables.counts.expected[0], 4.7647059, atol=5e-8)
    np.testing.assert_allclose(prr(tables.counts).value, [1.11, 0.89, 0.71, 1.43, 2.00], atol=0.005)


def test_a_report_counts_once_however_often_it_says_something(stored: Database, fill: Fill) -> None:
    fill([report("a", 1, event(), event(), event("sertraline", "Insomnia")), report("b", 2, event())])
    assert counted(stored) == {("sertraline", "Nausea"): 2, ("sertraline", "Insomnia"): 1}


def test_flags_decide_what_is_affirmed(stored: Database, fill: Fill) -> None:
    fill([
        report("a", 1, event(negated=True)), report("b", 2, event(hypothetical=True)),
        report("c", 3, event(other_experiencer=True)), report("d", 4, event(pt=None)),
        report("e", 5, event(), event(negated=True)),
    ])  # fmt: skip
    assert counted(stored) == {("sertraline", "Nausea"): 1}
    assert counted(stored, Population(others=True)) == {("sertraline", "Nausea"): 2}
    assert counted(stored, Population(serious=True)) == {}


def test_windows_sources_languages_and_organ_classes(stored: Database, fill: Fill) -> None:
    def at(id_: str, days: float, pt: str = "Nausea", **fields: str) -> CodedReport:
        made = report(id_, 1, event(pt=pt), created_at=NOON - timedelta(days=days), **fields)
        return made

    fill(
        [at("a", 1), at("b", 30, source="sentences"), at("c", 400, pt="Insomnia", language="es"), at("d", 7)]
    )
    whole = Population()
    sizes = {name: sum(counted(stored, whole.within(name, NOON)).values()) for name in ("all", "90d", "7d")}
    assert sizes == {"all": 4, "90d": 3, "7d": 2}
    assert counted(stored, Population(source="sentences")) == {("sertraline", "Nausea"): 1}
    assert counted(stored, Population(language="es")) == {("sertraline", "Insomnia"): 1}
    assert counted(stored, Population(source="x' OR 'a' = 'a")) == {}
    assert counted(stored, Population(level="soc")) == {
        ("sertraline", "Gastrointestinal disorders"): 3, ("sertraline", "Psychiatric disorders"): 1,
    }  # fmt: skip


def test_every_window_ends_at_the_time_of_the_computation(stored: Database, fill: Fill) -> None:
    without_time = replace(report("d", 1, event("lithium")), created_at=None, received_at=None)
    times = {"a": NOON - timedelta(days=1), "b": NOON + timedelta(days=1), "c": NOON}
    fill([*(report(id_, 1, event(), created_at=at) for id_, at in times.items()), without_time])
    found = {name: counted(stored, Population().within(name, NOON)) for name in ("all", "90d", "7d")}
    lately = {("sertraline", "Nausea"): 1}
    assert found == {"all": lately | {("lithium", "Nausea"): 1}, "90d": lately, "7d": lately}


def test_stratified_expectations_are_the_sum_over_the_strata(stored: Database, fill: Fill) -> None:
    second = [
        replace(report(f"s{i}", i, event(pair[0], pair[1])), source="sentences", language="es")
        for i, pair in enumerate(REPORTS)
    ]
    fill([*TOY, *second[:9]])
    tables = count(stored, Population(), stratified=True)
    by_hand = np.zeros(len(tables.pairs))
    for source in ("posts", "sentences"):
        one = count(stored, Population(source=source))
        expected = dict(zip(one.pairs, one.counts.expected.tolist(), strict=True))
        by_hand += [expected.get(pair, 0.0) for pair in tables.pairs]
    parts = strata(stored, Population(), tables.pairs, STRATUM)
    assert parts.names == ["posts/", "sentences/es"]
    np.testing.assert_allclose(parts.n.sum(axis=1), tables.counts.n)
    # A pair that a stratum lacks has an expectation there all the same.
    assert (tables.counts.expected >= by_hand - 1e-12).all()
    seen = (parts.n > 0).all(axis=1)
    np.testing.assert_allclose(tables.counts.expected[seen], by_hand[seen])
    assert tables.counts.expected[0] != pytest.approx(count(stored, Population()).counts.expected[0])


def test_repeats_of_a_report_count_once(stored: Database, fill: Fill, database_path: str) -> None:
    fill([report("a", 1, event()), report("b", 2, event()), report("c", 3, event())])
    stored.release()
    with duckdb.connect(database_path) as connection:
        connection.execute("UPDATE pairs SET report_group = 'a' WHERE report_id IN ('a', 'b')")
    assert counted(stored) == {("sertraline", "Nausea"): 2}


def test_repeats_in_another_week_or_language_count_once_in_watches(stored: Database, fill: Fill) -> None:
    def repeat(i: int, of: str | None) -> CodedReport:
        made = NOON - timedelta(weeks=3 - i // 2)
        language = "en" if i > 1 else None
        return report(f"r{i}", i, event(), created_at=made, duplicate_of=of, language=language)

    fill([repeat(i, f"r{i % 2}" if i > 1 else None) for i in range(6)])
    fill([report("o", 9, event("lithium", "Insomnia"), created_at=NOON)])
    tables = count(stored, Population(), stratified=True)
    nausea = tables.pairs.index(("sertraline", "Nausea"))
    assert tables.counts.n[nausea] == 2 and tables.counts.expected[nausea] == pytest.approx(2 * 2 / 3)
    for stratum in (WEEK, STRATUM):
        parts = strata(stored, Population(), tables.pairs, stratum)
        np.testing.assert_array_equal(parts.n.sum(axis=1), tables.counts.n)
    assert watch(stored, Population(), tables.pairs, NOON + timedelta(1)).n[nausea].sum() == 2


def test_a_repeat_of_a_report_from_before_the_watch_is_not_in_its_weeks(stored: Database, fill: Fill) -> None:
    """They count in the week of the first of them, however old that is."""
    for i, old in enumerate((True, True, True, False)):
        first = NOON - timedelta(weeks=20 if old else 2)
        fill([report(f"a{i}", i, event(), created_at=first)])
        fill([report(f"b{i}", 9 + i, event(), created_at=NOON, duplicate_of=f"a{i}")])
    denied = report("c", 30, event(negated=True), created_at=NOON - timedelta(weeks=20))
    fill([denied, report("d", 31, event(), created_at=NOON, duplicate_of="c")])
    found = watch(stored, Population(), [("sertraline", "Nausea")], NOON + timedelta(1))
    assert found.n.tolist() == [[*[0] * 10, 1, 0, 1]] and not found.signalled[0]
    assert found.expected.tolist() == found.n.tolist()


def test_all_reports_count_where_that_is_asked_for(stored: Database, fill: Fill) -> None:
    """Repeats of one case, by their text and by their content; in the watch in the week of each."""
    old = NOON - timedelta(weeks=20)
    fill([
        report("a", 1, event(), created_at=old), report("b", 2, event(), created_at=NOON, duplicate_of="a"),
        report("c", 3, event(), created_at=NOON, similar_to="a"), report("d", 4, event(), created_at=NOON),
        report("e", 5, event("lithium"), created_at=NOON, similar_to="a"),
    ])  # fmt: skip
    pair = ("sertraline", "Nausea")
    for every, number, in_watch in ((False, 2, 1), (True, 4, 3)):
        population = Population(all_reports=every)
        tables = count(stored, population, stratified=True)
        place = tables.pairs.index(pair)
        assert (tables.counts.n[place], tables.of_pairs[place], tables.reports) == (
            number,
            (4, 2),
            number + 1,
        )
        assert watch(stored, population, [pair], NOON + timedelta(1)).n.sum() == in_watch
        assert strata(stored, population, [pair], STRATUM).n.sum() == number
