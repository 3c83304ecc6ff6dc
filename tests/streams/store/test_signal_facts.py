"""What the table of signals asks every database for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from streams.signals.facts import facts
from streams.signals.history import past
from streams.signals.population import Population, count
from streams.signals.statistics.fitting import DEFAULT
from streams.signals.watch import WEEKS
from tests.streams.store.conftest import Open
from tests.streams.store.messages import NOON, event, message, report
from tests.streams.store.test_contract import apply


def test_completeness_countries_and_past_weeks_are_the_same_in_every_database(opened: Open) -> None:
    database = opened(write=True)
    denied = event(pt="Insomnia", negated=True)
    made = [
        replace(
            report(f"r{i}", i, event(), denied, created_at=NOON - timedelta(days=days)),
            country=country, indication="gout" if i else None,
        )
        for i, (days, country) in enumerate([(800, "DE"), (8, "DE"), (8, "IE"), (1, None)])
    ]  # fmt: skip
    repeat = replace(report("repeat", 9, event(), created_at=NOON), country="DE", duplicate_of="r1")
    apply(database, *(message(i, one) for i, one in enumerate([*made, repeat])))
    ((pair, found),) = facts(database).items()
    # Of five reports all have a date, four a country, three an indication and none a reporter.
    assert pair == ("sertraline", "Nausea") and found.complete == pytest.approx(12 / 20)
    assert found.countries == (("DE", 2), ("IE", 1))
    pairs = [("sertraline", "Nausea"), ("no drug", "Nausea")]
    gone = past(database, Population(), pairs, NOON + timedelta(hours=1), DEFAULT)
    assert gone.n.tolist() == [[1] * (WEEKS - 2) + [3, 4], [0] * WEEKS]
    assert np.isfinite(gone.ic025).all() and np.isfinite(gone.eb05).all()
    assert gone.weeks[-1] == "2026-02-25", "seven days before"


def test_terms_of_an_outcome_count_as_one_in_every_database(opened: Open) -> None:
    database = opened(write=True)
    told = (event(), event(pt="Insomnia"), event(pt="Rash")), (event(pt="Insomnia"),)
    apply(database, *(message(i, report(f"r{i}", i, *events)) for i, events in enumerate(told)))
    population = Population(outcomes=(("the patient's \\ ill", ("Nausea", "Insomnia")),))
    tables = count(database, population)
    assert tables.pairs == [("sertraline", "Rash"), ("sertraline", "the patient's \\ ill")]
    assert tables.counts.n.tolist() == tables.counts.term.tolist() == [1, 2]
