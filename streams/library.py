"""The models without Kafka: texts in, the records of the final topics out, by the functions of the stages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streams.agents.annotator import Annotator
from streams.agents.pipeline import FINAL_TOPICS, stages_from
from streams.rollout.opening import load_release
from streams.settings import Settings

__all__ = ["Annotator", "load", "stages_from"]


def load(
    topic: str = "posts",
    *,
    results: str | None = None,
    releases: Mapping[str, str | Path] | None = None,
    settings: Settings | None = None,
) -> Annotator:
    """The models that read the texts of an input topic: `posts`, `sentences` or `questions`.

    `results`: the topic of the records that are made, of questions `events` or, by default, `summaries`.
    `releases`: stage to version or folder; the others are the bundled ones. `settings` are by default those
    of the environment (PV_DEVICE, PV_POST_THRESHOLD and so on). Raises ReleaseError, KeyError for another
    topic, and TopicsError for results that it does not have.
    """
    if topic not in FINAL_TOPICS:
        raise KeyError(f"no input topic {topic!r}; they are {', '.join(FINAL_TOPICS)}")
    settings, chosen = settings or Settings(), dict(releases or {})
    stages = stages_from(topic, results)
    steps = tuple((s, load_release(s.name, chosen.pop(s.name, None), settings)) for s in stages)
    if chosen:
        raise KeyError(f"no stage of {topic}: {', '.join(chosen)}")
    for stage, _ in steps:
        if stage.prepare is not None:
            stage.prepare()
    return Annotator(topic, steps)
