"""The models without Kafka: texts in, the records of the final topics out, by the functions of the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.types import JUDGE
from streams.agents.annotator import Annotator
from streams.agents.pipeline import FINAL_TOPICS, stages_from
from streams.rollout.loaded_judge import STAGE, with_judge
from streams.rollout.loading import load_release
from streams.settings import Settings
from streams.stage import Stage

__all__ = ["Annotator", "load", "stages_from", "tasks_of"]


def tasks_of(stages: Sequence[Stage[Any, Any]]) -> list[str]:
    """The tasks whose releases some stages load."""
    names = [stage.name for stage in stages]
    return [*names, JUDGE] if STAGE in names else names


def load(
    topic: str = "posts",
    *,
    results: str | None = None,
    releases: Mapping[str, str | Path] | None = None,
    settings: Settings | None = None,
) -> Annotator:
    """The models that read the texts of an input topic: `posts`, `sentences` or `questions`.

    `results`: the topic of the records that are made, of questions `events` or, by default, `summaries`.
    `releases`: stage, or `judge`, to version or folder; the others are the bundled ones. `settings` are by
    default those of the environment (PV_DEVICE, PV_JUDGE and so on). Raises ReleaseError, KeyError for
    another topic, and TopicsError for results that it does not have.
    """
    if topic not in FINAL_TOPICS:
        raise KeyError(f"no input topic {topic!r}; they are {', '.join(FINAL_TOPICS)}")
    settings, chosen = settings or Settings(), dict(releases or {})
    stages = stages_from(topic, results)
    if other := chosen.keys() - set(tasks_of(stages)):
        raise KeyError(f"no stage of {topic}: {', '.join(sorted(other))}")
    loaded = [(s, load_release(s.name, chosen.get(s.name), settings)) for s in stages]
    steps = tuple((s, with_judge(one, settings, chosen.get(JUDGE))) for s, one in loaded)
    for stage, _ in steps:
        if stage.prepare is not None:
            stage.prepare()
    return Annotator(topic, steps)
