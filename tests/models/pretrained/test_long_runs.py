"""A record that is one long run of any character stops no stage, and shifts no offset."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from models.loading import Loaded
from streams.agents.pipeline import STAGES
from streams.records import Report
from streams.rollout.loading import load_release
from streams.settings import Settings
from streams.stage import Stage
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
def stages() -> dict[str, Callable[[Any], Any]]:
    """Of each stage what it makes of a report."""
    return {
        stage.name: partial(_output, stage, load_release(stage.name, None, Settings())) for stage in STAGES
    }


def _output(stage: Stage[Any, Any], loaded: Loaded, report: Any) -> Any:
    (output,) = stage.outputs(loaded, [report])
    return output


@pytest.mark.slow
@pytest.mark.parametrize(("number", "unit"), [*enumerate(RUNS)])
def test_each_stage_reads_a_long_run_in_bounded_time(
    stages: dict[str, Callable[[Any], Any]], number: int, unit: str
) -> None:
    for before, behind in TEXTS if unit.isspace() else [TEXTS[number % len(TEXTS)]]:
        text = before + repeated(unit, N) + behind
        report = Report(id="a", text=text)
        start = time.process_time()
        tagged = stages["ner"](report)
        coded = stages["normalization"](tagged)
        expanded = stages["acronym"](report)
        related = stages["relation"](stages["ner"](expanded))
        stages["normalization"](related)
        summary = stages["summarization"](report)
        assert time.process_time() - start < MOST
        for output in (tagged, coded, expanded, related, summary):
            assert output.text == text
        for mention in (*tagged.mentions, *related.mentions):
            assert mention.text == text[mention.start : mention.end]
        for expansion in expanded.expansions:
            assert expansion.short_form == text[expansion.start : expansion.end]
