"""Runs the replays of a command: reads the range, loads the releases, runs the chains and compares them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import typer

from models.loading import Loaded
from models.types import JUDGE
from streams import topics
from streams.agents.pipeline import stages_from
from streams.broker.consumer import send_all
from streams.broker.deletions import Place, read_deletions
from streams.broker.ranges import parse_bound, read_range
from streams.cli.terminal import broker_settings, err, progress_bar
from streams.codec import encode
from streams.provenance import Maker
from streams.records import Inbound
from streams.replay.comparison import Chain, Comparison, Source, compare
from streams.replay.gold import Gold
from streams.replay.run import run_chain
from streams.rollout.announcements import read_announcements
from streams.rollout.loaded_judge import STAGE, judge_at_start
from streams.rollout.loading import load_release
from streams.settings import Settings
from streams.topics import Topic

#: Task to the version or the directory of a release.
Releases = Mapping[str, str | Path]


@dataclass(frozen=True, slots=True)
class Range:
    """A topic and the bounds that the user gave, and the topic of the records that are made."""

    topic: str
    start: str
    stop: str
    results: str | None = None


async def run_replays(range_: Range, first: Releases, second: Releases, gold: Gold | None) -> Comparison:
    """Reads the range once and replays it: with the releases of `first`, and where `second` names any, again
    with those in addition. Tasks that are not named use the live release.

    Raises typer.BadParameter for an invalid bound, and for a task that the range does not reach.
    """
    settings = broker_settings()
    topic = topics.by_name(range_.topic)
    tasks = [s.name for s in stages_from(topic.name, range_.results)]
    if unused := sorted((first.keys() | second.keys()) - set(tasks)):
        raise typer.BadParameter(
            f"no record of {topic.name} reaches {', '.join(unused)}; tasks: {', '.join(tasks)}"
        )
    records = await _read(range_, topic, settings)
    models = await _models(tasks, first, settings)
    base = await _chain(records, range_, models, settings, "replaying")
    compared = None
    if second:
        models |= await _models(list(second), second, settings)
        compared = await _chain(records, range_, models, settings, "comparing")
    return compare(Source(range_.topic, range_.start, range_.stop, len(records)), base, compared, gold)


async def _read(range_: Range, topic: Topic[Any], settings: Settings) -> list[Inbound]:
    try:
        start, stop = parse_bound(range_.start), parse_bound(range_.stop)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    by_time = isinstance(start, datetime) or isinstance(stop, datetime)
    # It answers a time with the end of each partition.
    if by_time and await topics.is_embedded(settings):
        raise typer.BadParameter(
            "an embedded broker finds no records by time: give offsets, beginning or end"
        )
    with progress_bar(f"reading {topic.name}") as progress:
        records = await read_range(settings, topic, start, stop, progress)
    return await _without_deleted(settings, topic, records)


async def _without_deleted(settings: Settings, topic: Topic[Any], records: list[Inbound]) -> list[Inbound]:
    """The records without those that a tombstone deletes, also one behind the range."""
    reports = [
        (r.key, Place(r.partition, r.offset)) for r in records if r.key is not None and r.value is not None
    ]
    deletions = await read_deletions(settings, topic, reports)
    return [
        r
        for r in records
        if r.key is None or r.value is None or not deletions.follow(r.key, Place(r.partition, r.offset))
    ]


async def _models(tasks: Sequence[str], chosen: Releases, settings: Settings) -> dict[str, Loaded]:
    """The chosen releases, and the live ones of the other tasks."""
    live = await read_announcements(settings)
    models = {}
    for task in tasks:
        name = chosen.get(task) or (live[task].version if task in live else None)
        with err.status(f"loading {task}"):
            # In a thread, so that an interrupt is noticed before the next one.
            models[task] = await asyncio.to_thread(load_release, task, name, settings)
            if task == STAGE:
                judge = partial(judge_at_start, live.get(JUDGE), settings, live.generation(JUDGE))
                handle = await asyncio.to_thread(judge)
                if handle is not None and handle.current.model is not None:
                    models[task] = replace(models[task], judge=handle.current)
    return models


async def _chain(
    records: list[Inbound], range_: Range, models: dict[str, Loaded], settings: Settings, description: str
) -> Chain:
    makers = [Maker.of(task, model) for task, model in models.items()]
    versions = {name: version for maker in makers for name, version in maker.releases().items()}
    with progress_bar(description) as progress:
        result = await run_chain(
            records, topics.by_name(range_.topic), models, settings.batch, progress, results=range_.results,
            max_output_bytes=settings.max_output_bytes, keep_text=settings.keep_text,
        )  # fmt: skip
    return Chain(versions, result)


async def check_target(name: str) -> None:
    """Raises typer.BadParameter for a topic of the pipeline, and TopicsError where the broker lacks it."""
    if name in {t.name for t in topics.TOPICS}:
        raise typer.BadParameter(f"{name} is a topic of the pipeline", param_hint="--into")
    await topics.require_named(broker_settings(), name)


async def send_to(name: str, records: Sequence[Any]) -> None:
    """Sends records to a topic, which `check_target` accepts, and waits for the confirmations."""
    await send_all(broker_settings(), ((name, record.id.encode(), encode(record)) for record in records))
