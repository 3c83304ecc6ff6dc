"""A record that is one long run of any character stops no stage, and shifts no offset."""

from __future__ import annotations

import time
from typing import Any

import pytest

from streams.agents import ner, normalization
from streams.agents.pipeline import expand, relate, summarize
from streams.records import Report
from streams.rollout.opening import load_release
from streams.settings import Settings
from tests.models.hostile_texts import UNITS, repeated

#: Characters of a run: the text is almost as long as a record may be.
N = 99_000
#: Processor seconds of all stages together. Ordinary text of this length takes more; with patterns that try
#: each place of a run again it is minutes.
MOST = 15
#: Units that give a run without words that are read: others are text.
RUNS = [unit for unit in UNITS if unit.isspace() or len(unit) == 1]
#: With white space between the parts, each of these took a stage minutes; other runs are in one of them.
TEXTS = (
    ("The CK", "was sent."),
    ("What is the treatment for asthma", "; diabetes?"),
    ("Zoloft made my legs x feet swell, a rash", "x hives"),
    ("Zoloft", "withdrawal, no rash or hives. Does Zoloft cause asthma?"),
)


@pytest.fixture(scope="module")
def bundled() -> dict[str, Any]:
    tasks = ("ner", "acronym", "relation", "normalization", "summarization")
    return {task: load_release(task, None, Settings()).model for task in tasks}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "unit"), [*enumerate(RUNS)])
def test_each_stage_reads_a_long_run_in_bounded_time(bundled: dict[str, Any], number: int, unit: str) -> None:
    for before, behind in TEXTS if unit.isspace() else [TEXTS[number % len(TEXTS)]]:
        text = before + repeated(unit, N) + behind
        report = Report(id="a", text=text)
        start = time.process_time()
        (tagged,) = ner.predict(bundled["ner"], [report])
        (coded,) = normalization.predict(bundled["normalization"], [tagged])
        (expanded,) = expand(bundled["acronym"], [report])
        (related,) = relate(bundled["relation"], [expanded])
        normalization.predict(bundled["normalization"], [related])
        (summary,) = summarize(bundled["summarization"], [report])
        assert time.process_time() - start < MOST
        for output in (tagged, coded, expanded, related, summary):
            assert output.text == text
        for mention in (*tagged.mentions, *related.mentions):
            assert mention.text == text[mention.start : mention.end]
        for expansion in expanded.expansions:
            assert expansion.short_form == text[expansion.start : expansion.end]
