"""Fuzzed records through the real stages: none stops a stage, and each is accounted for."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.fuzz import __main__ as fuzz
from streams import stage


@pytest.mark.slow
def test_of_fuzzed_records_each_has_one_outcome_and_none_stops_a_stage() -> None:
    found = fuzz.run(8_000, number=7, examples=120)
    assert found.clean, found
    assert sum(found.outcomes.values()) == found.records == 8_000
    assert min(found.outcomes[name] for name in ("output", "dead", "tombstone", "dropped")) > 0
    assert min(found.reasons[name] for name in ("bad_record", "poison", "output_too_large")) > 0
    assert found.sound > 1000


@pytest.mark.slow
def test_a_stage_that_sends_nothing_for_a_deletion_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(stage._Run, "_pass_tombstone", nothing)
    assert fuzz.run(300, number=7, examples=20).lost > 0


def test_a_stage_that_dies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise UnicodeError("not isolated")

    monkeypatch.setattr(stage, "tombstone_headers", broken)
    found = fuzz.run(300, number=7, examples=20)
    assert (found.deaths, found.first_death) == (1, "ner: UnicodeError: not isolated")
    assert found.lost > 0
