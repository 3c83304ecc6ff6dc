"""Signals as records, their report and the command that makes them, from a store with a planted signal."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import orjson

from streams.codec import decode, encode
from streams.records import CodedReport, Signal
from streams.signals.facts import is_new
from streams.signals.report import html
from streams.signals.surveillance import CAVEAT, Options, Surveillance
from streams.signals.watch import LEAST, WEEKS, sequential_test
from streams.store.database import Database
from tests.streams.cli.command_line import CommandLine
from tests.streams.signals.conftest import Fill
from tests.streams.store.messages import NOON, event, report

PLANTED = ("<drug>", "Insomnia")
#: Without digits: no unknown name with one is in a pair.
DRUGS = [f"drug {first}{second}" for first in "abcdefgh" for second in "abcdefghij"]
TERMS = [f"Term {i}" for i in range(9)]


def reports(planted: int = 25) -> list[CodedReport]:
    """Drugs and terms that are independent, and in the last five weeks one pair that is not."""
    rng = random.Random(8)
    made = [
        report(
            f"r{i}", i, event(rng.choice(DRUGS[:9]), rng.choice(TERMS)),
            created_at=NOON - timedelta(days=rng.uniform(0, 200)), releases={"ner": "0123456789ab"},
        )
        for i in range(900)
    ]  # fmt: skip
    return made + [
        report(
            f"p{i}", i, event(PLANTED[0], PLANTED[1] if i % 2 else rng.choice(TERMS)),
            created_at=NOON - timedelta(days=rng.uniform(0, 35)), text="a text of a patient",
        )
        for i in range(2 * planted)
    ]  # fmt: skip


def test_a_planted_signal_is_first_by_ic025_and_meets_all_criteria(stored: Database, fill: Fill) -> None:
    fill(reports())
    outcome = Surveillance(stored, Options(fdr=0.05)).compute(NOON)
    first = outcome.signals[0]
    assert (first.drug, first.term) == PLANTED and first.key == "<drug>|Insomnia"
    assert set(first.windows["all"].criteria) == {"evans", "ror025", "ic025", "eb05", "fdr"}
    assert first.windows["all"].n == 25 and first.windows["7d"].n < 25
    assert first.watch is not None and first.watch.signalled and sum(first.watch.n) == 25
    assert first.caveat == CAVEAT and "no better than chance" in CAVEAT
    lows = [s.windows["all"].ic.low for s in outcome.signals]
    assert lows == sorted(lows, reverse=True)
    by_ebgm = sorted(outcome.signals, key=lambda s: -s.windows["all"].ebgm.low)
    assert [s.key for s in by_ebgm] != [s.key for s in outcome.signals]
    others = outcome.signals[1:]
    assert len(others) > 50
    assert sum("eb05" in s.windows["all"].criteria for s in others) == 0
    assert decode(Signal, encode(first)) == first


def test_a_fitted_prior_is_stated_as_such(stored: Database, fill: Fill) -> None:
    rng = random.Random(1)
    fill([
        report(
            f"r{i}", i, event(rng.choice(DRUGS), f"Term {rng.randrange(60)}"),
            created_at=NOON - timedelta(days=100 - i % 100, minutes=1),
        )
        for i in range(5000)
    ])  # fmt: skip
    outcome = Surveillance(stored, Options()).compute(NOON)
    assert outcome.windows["all"].prior_note == "" and outcome.windows["7d"].prior_note
    (signal, *_) = [s for s in outcome.signals if "7d" in s.windows]
    assert {name: s.ebgm_prior for name, s in signal.windows.items() if name != "90d"} == {
        "all": "fitted", "7d": "published",
    }  # fmt: skip
    assert "fitted to all pairs" in html(outcome, [], "1")


def test_the_history_of_a_pair_is_what_a_computation_at_the_end_of_each_week_gives(
    stored: Database, fill: Fill
) -> None:
    undated = report("undated", 0, event(*PLANTED), created_at=NOON - timedelta(days=900))
    fill([*reports(), undated, replace(undated, id="repeat", created_at=NOON, duplicate_of="undated")])
    (now,) = [s for s in Surveillance(stored, Options()).compute(NOON).signals if (s.drug, s.term) == PLANTED]
    assert now.history is not None and len(now.history.weeks) == WEEKS
    assert now.history.n[-1] == now.windows["all"].n == 26
    assert (now.history.ic025[-1], now.history.eb05[-1]) == (
        now.windows["all"].ic.low, now.windows["all"].ebgm.low,
    )  # fmt: skip
    assert list(now.history.ic025[-6:]) == sorted(now.history.ic025[-6:]), "it rises from its first week on"
    end = NOON - timedelta(weeks=2)
    assert now.history.weeks[-2] == str(end.date())
    (then,) = [
        s
        for s in Surveillance(stored, Options(least=1)).compute(end).signals
        if s.drug == PLANTED[0] and s.term == PLANTED[1]
    ]
    assert (now.history.n[-3], now.history.ic025[-3]) == (then.windows["all"].n, then.windows["all"].ic.low)


def test_a_signal_of_sunday_is_new_on_monday_and_for_seven_days(stored: Database, fill: Fill) -> None:
    sunday = datetime(2026, 3, 8, 20, tzinfo=UTC)
    made = [report(f"s{i}", i, event("drug ab", "Gout"), created_at=sunday) for i in range(9)]
    fill(reports(0) + [replace(one, received_at=sunday) for one in made])
    found = []
    for days in (0.1, 0.6, 6.9, 7.1):
        outcome = Surveillance(stored, Options()).compute(sunday + timedelta(days=days))
        found.append({s.term for s in outcome.signals if is_new(s.history)})
    assert [*map(sorted, found)] == [["Gout"], ["Gout"], ["Gout"], []]


def test_a_drug_and_what_it_is_taken_for_are_listed_as_a_known_use(stored: Database, fill: Fill) -> None:
    treated = [report(f"k{i}", i, event("sertraline", "Depression"), created_at=NOON) for i in range(9)]
    fill([*reports(), *treated])
    outcome = Surveillance(stored, Options()).compute(NOON + timedelta(minutes=1))
    assert {(s.drug, s.term) for s in outcome.signals if s.known_use} == {("sertraline", "Depression")}
    assert re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td>.*<td>yes</td></tr>", html(outcome, [], "1")) == [
        ("sertraline", "Depression")
    ]


def test_a_second_computation_says_what_changed(stored: Database, fill: Fill) -> None:
    fill(reports())
    surveillance = Surveillance(stored, Options())
    assert len(surveillance.compute(NOON).changed) > 80
    stored.release()
    assert surveillance.compute(NOON).changed == frozenset()
    stored.release()
    more = [report(f"n{i}", i, event("drug ab", "Term 1"), created_at=NOON) for i in range(30)]
    fill(more)
    outcome = surveillance.compute(NOON + timedelta(minutes=1))
    assert outcome.changed == {("drug ab", "Term 1")}
    (pair,) = [s for s in outcome.signals if (s.drug, s.term) == ("drug ab", "Term 1")]
    assert pair.windows["7d"].n >= 30


def test_pairs_are_computed_anew_of_which_only_the_margins_changed(stored: Database, fill: Fill) -> None:
    fill(reports())
    surveillance = Surveillance(stored, Options())
    before = surveillance.compute(NOON)
    stored.release()
    fill([report(f"n{i}", i, event(DRUGS[i % 3]), created_at=NOON - timedelta(1)) for i in range(2000)])
    after = surveillance.compute(NOON)
    assert PLANTED not in after.changed
    now = {signal.key: signal.windows["all"] for signal in after.signals}
    fresh = {s.key: s.windows["all"] for s in Surveillance(stored, Options()).compute(NOON).signals}
    old = {signal.key: signal.windows["all"] for signal in before.signals}
    assert {key: s.prr for key, s in now.items()} == {key: s.prr for key, s in fresh.items()}
    assert now[f"{PLANTED[0]}|{PLANTED[1]}"].expected < old[f"{PLANTED[0]}|{PLANTED[1]}"].expected / 2


def test_pairs_that_have_left_the_window_are_no_hypotheses(stored: Database, fill: Fill) -> None:
    def week(tag: str, pairs: int, weeks: int) -> list[CodedReport]:
        made = NOON - timedelta(weeks=weeks, days=1)
        chosen = [(f"{tag} {DRUGS[i % 20]}", f"{tag} {i // 20}") for i in range(pairs)]
        return [report(f"{tag}{i}", i, event(*pair), created_at=made) for i, pair in enumerate(chosen)]

    fill(week("old", 2000, 8))
    surveillance = Surveillance(stored, Options(fdr=0.05))
    surveillance.compute(NOON - timedelta(weeks=8))
    stored.release()
    planted = [report(f"p{i}", i, event("planted", "Rash"), created_at=NOON) for i in range(3)]
    others = [report(f"q{i}", i, event("planted", f"new {i}"), created_at=NOON) for i in range(2)]
    fill([*week("new", 100, 0), *planted, *others])
    now = NOON + timedelta(minutes=1)
    followed, afresh = surveillance.compute(now), Surveillance(stored, Options(fdr=0.05)).compute(now)
    for outcome in (followed, afresh):
        (found,) = [s for s in outcome.signals if s.drug == "planted"]
        assert "fdr" in found.windows["7d"].criteria


def test_an_empty_store_has_no_signals(stored: Database) -> None:
    outcome = Surveillance(stored, Options()).compute(NOON)
    assert outcome.signals == [] and outcome.windows["all"].reports == 0
    assert "No pair has enough reports" in html(outcome, [], "1")


def test_the_report_is_self_contained_escaped_and_carries_the_caveat(stored: Database, fill: Fill) -> None:
    fill(reports())
    page = html(Surveillance(stored, Options()).compute(NOON), ["ner 0123456789ab"], "1.2.3")
    HTMLParser().feed(page)
    assert "<drug>" not in page and "&lt;drug&gt;" in page
    assert not re.search(r"<script|https?://|<link|a text of a patient", page)
    parts = ("READUS-PV", "Comparator", "Thresholds", "ner 0123456789ab", "pvstream 1.2.3", "<svg", CAVEAT)
    assert [part for part in parts if part not in page] == []


def test_a_week_without_a_report_is_a_week_of_the_watch(stored: Database, fill: Fill) -> None:
    days = (80, 80, 3, 2)
    fill([report(f"r{i}", i, event(), created_at=NOON - timedelta(day)) for i, day in enumerate(days)])
    (found,) = Surveillance(stored, Options()).compute(NOON).signals
    assert found.watch is not None and len(found.watch.weeks) == WEEKS
    assert (found.watch.weeks[0], found.watch.weeks[-1]) == ("2025-12-08", "2026-03-02")
    assert found.watch.n == (2, *[0] * (WEEKS - 3), 1, 1) and sum(found.watch.expected) == 4


def test_a_week_in_which_a_pair_is_frequent_signals_and_stays_a_signal() -> None:
    weeks = [f"week {i}" for i in range(4)]
    n = np.array([[0, 6, 0, 0], [0, LEAST - 1, 0, 0], [1, 1, 1, 1]], float)
    expected = np.array([[0.2, 0.2, 9, 3], [0.01, 0.01, 0.1, 0.1], [1, 1, 1, 1]])
    found = sequential_test(weeks, n, expected)
    # The first is no excess any more at the end; the second has too few reports for a signal.
    assert found.signalled.tolist() == [True, False, False]
    assert found.ratio[0] < found.critical[0]


def test_many_reports_in_the_last_week_signal_also_of_a_pair_that_is_frequent() -> None:
    expected = np.repeat([[0.3], [0.7], [0.8], [2.0], [9.0], [70.0]], WEEKS, axis=1)
    n = np.round(expected)
    n[:, -1] = 5 * expected[:, -1] + 10
    found = sequential_test([f"week {i}" for i in range(WEEKS)], n, expected)
    assert found.signalled.all()
    # The limits are 10, 10, 20, 50, 200 and 1000 expected reports.
    np.testing.assert_allclose(found.critical, [3.06425, 3.06425, 3.28822, 3.54483, 3.86276, 4.16002], 1e-5)
    n[:, -1] = expected[:, -1]
    assert not sequential_test(["week"] * WEEKS, n, expected).signalled.any()


def test_of_pairs_without_an_excess_few_signal_in_a_period_and_many_in_some_week_of_a_year() -> None:
    """The shares that signals.md gives."""
    rng, in_year = np.random.default_rng(0), []
    for expected in (0.2, 2.0):
        n = rng.poisson(expected, (500, 52 + WEEKS - 1)).astype(float)
        periods = [n[:, i : i + WEEKS] for i in range(52)]
        found = [sequential_test(["week"] * WEEKS, p, np.full_like(p, expected)).signalled for p in periods]
        assert found[0].mean() < 0.05
        in_year.append(np.any(found, axis=0).mean())
    assert min(in_year) > 0.29 and max(in_year) < 0.38


def test_the_command_prints_and_writes_the_signals(
    pvstream: CommandLine, fill: Fill, database_path: str, tmp_path: Path
) -> None:
    fill(reports())
    pvstream.set("PV_DATABASE", database_path)
    page, lines = tmp_path / "signals.html", tmp_path / "signals.jsonl"
    answer = pvstream(
        "signals", "--until", NOON.isoformat(), "--criterion", "eb05", "--html", page, "--json", lines
    )
    assert answer.code == 0, answer.err
    assert "Insomnia"[:4] in answer.out and "no better than chance" in answer.one_line
    (signal,) = map(orjson.loads, lines.read_bytes().splitlines())
    assert (signal["drug"], signal["term"]) == ("<drug>", "Insomnia")
    # The 90 pairs are too few for a fit, and what is written says so too.
    assert "pairs are too few to fit one" in answer.one_line
    assert signal["windows"]["all"]["ebgm_prior"] == "published"
    assert "as published, not fitted" in page.read_text(encoding="utf-8")
    written = page.read_text(encoding="utf-8")
    assert "that meet eb05" in written and "<td>&lt;drug&gt;</td>" in written and "<td>drug" not in written
    assert pvstream("signals", "--criterion", "fdr").code == 2
    pvstream.set("PV_DATABASE", str(tmp_path / "none.duckdb"))
    assert "there is no" in pvstream("signals").error_line.replace("\n", " ")


def test_signals_prints_a_drug_like_markup(pvstream: CommandLine, fill: Fill, database_path: str) -> None:
    fill([report(f"r{i}", i, event("a[/b]", "Insomnia"), created_at=NOON) for i in range(5)])
    pvstream.set("PV_DATABASE", database_path)
    answer = pvstream("signals", "--until", (NOON + timedelta(minutes=1)).isoformat())
    assert answer.code == 0, answer.err
    assert "a[/b]" in answer.out


def test_the_commands_query_and_export(
    pvstream: CommandLine, fill: Fill, database_path: str, tmp_path: Path
) -> None:
    fill(reports(3))
    pvstream.set("PV_DATABASE", database_path)
    for form in ((), ("--json",), ("--csv",)):
        answer = pvstream("query", "SELECT drug, count(*) AS n FROM pairs GROUP BY drug ORDER BY n", *form)
        assert answer.code == 0 and "<drug>" in answer.out and "6" in answer.out
        assert "only the first 2 rows" in pvstream("query", "SELECT * FROM pairs", "--limit", "2", *form).err
        assert pvstream("query", "DROP TABLE pairs", *form).code == 1
    folder = tmp_path / "parquet"
    assert "906 rows of reports" in pvstream("export", folder).out
    names = {path.relative_to(folder).parts[:2] for path in folder.rglob("*.parquet")}
    assert ("reports", "month=2026-02") in names and ("events", "month=2026-03") in names
    again = pvstream("export", folder)
    assert again.code == 2 and "or empty folder" in " ".join(again.err.replace("│", " ").split())


def test_a_language_leaves_out_reports_that_state_none_and_says_how_many(
    stored: Database, fill: Fill, pvstream: CommandLine, database_path: str, tmp_path: Path
) -> None:
    stated = {"a": "en", "b": "es", "c": None, "d": None, "e": None}
    fill([report(id_, 1, event(), language=code) for id_, code in stated.items()])
    fill([report("f", 1, event(negated=True)), report("g", 1, event(), duplicate_of="c")])
    fill([report("h", 1, event(), duplicate_of="a")])  # "a" states it and counts
    stored.release()
    pvstream.set("PV_DATABASE", database_path)
    until = ("--until", (NOON + timedelta(1)).isoformat())
    answer = pvstream("signals", "--least", 1, "--language", "en", "--html", tmp_path / "x.html", *until)
    assert answer.code == 0 and "1 unique reports" in answer.one_line
    assert "leaves out 3 more reports: their source states no language" in answer.one_line
    said = "3 more reports, of which no language is stated, are left out"
    assert said in (tmp_path / "x.html").read_text()
    assert "leaves out" not in pvstream("signals", *until).one_line
