"""Checks and parses the values of command arguments; all raise typer.BadParameter."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from models.types import RELEASED, TASKS

if TYPE_CHECKING:
    from streams.stage import Stage
    from streams.topics import Topic

#: Bounds of the options that count something, and of those that are seconds: what loops and timers can take.
MOST, MOST_SECONDS = 1_000_000_000, 366 * 86_400
INPUT = Literal["posts", "sentences", "questions"]
STAGE = Literal["ner", "acronym", "relation", "normalization", "summarization"]
RESULTS = Annotated[
    Literal["events", "summaries"] | None,
    typer.Option(help="of questions the events or, by default, the short questions (summaries)"),
]


def check_task(task: str, tasks: Sequence[str] = TASKS) -> None:
    if task not in tasks:
        raise typer.BadParameter(f"{task!r} is none of {', '.join(tasks)}", param_hint="TASK")


def known_topic(name: str) -> Topic[Any]:
    """The topic of that name."""
    from streams.topics import TopicsError, by_name

    try:
        return by_name(name)
    except TopicsError as error:
        raise typer.BadParameter(str(error), param_hint="TOPIC") from None


def stages_of(topic: str, results: str | None) -> Sequence[Stage[Any, Any]]:
    """The stages from a topic to that of the results that are asked for."""
    from streams.agents.pipeline import stages_from
    from streams.topics import TopicsError

    known_topic(topic)
    try:
        return stages_from(topic, results)
    except TopicsError as error:
        raise typer.BadParameter(str(error), param_hint="TOPIC" if results is None else "--results") from None


def check_dead_topic(name: str) -> None:
    """Refuses what is no topic of dead letters."""
    from streams.dead_letters.redrive import source_topic
    from streams.topics import TopicsError

    try:
        source_topic(name)
    except TopicsError as error:
        raise typer.BadParameter(str(error), param_hint="TOPIC") from None


def check_workers(addresses: Iterable[str]) -> None:
    """Refuses addresses of workers that are not `host:port`, which may stand in a URL."""
    for address in addresses:
        _, _, port = address.rstrip("/").rpartition(":")
        if not re.fullmatch(r"(?:https?://)?[^\s/@?#]+:\d{1,5}/?", address) or not 0 < int(port) < 1 << 16:
            raise typer.BadParameter(f"{address!r} is not host:port", param_hint="--worker")


def input_files(items: Iterable[str]) -> dict[str, Path]:
    """TOPIC=FILE items as a dictionary from input topic to file, one for each topic."""
    from streams.topics import INPUTS

    files = named_values(items, "TOPIC=FILE", [t.name for t in INPUTS])
    for path in files.values():
        if not Path(path).is_file():
            raise typer.BadParameter(f"no file {path!r}")
    return {topic: Path(path) for topic, path in files.items()}


def chosen_releases(items: Iterable[str]) -> dict[str, str | Path]:
    """TASK=RELEASE items as a dictionary from task to version or directory, one for each task."""
    releases = named_values(items, "TASK=RELEASE", RELEASED)
    return {task: version_or_path(name) for task, name in releases.items()}


def named_values(
    items: Iterable[str], form: str, names: Collection[str], hint: str | None = None
) -> dict[str, str]:
    """Items of a form such as TOPIC=FILE as a dictionary, each of the `names` once."""
    kind, value = form.lower().split("=")
    found: dict[str, str] = {}
    for item in items:
        name, _, given = item.partition("=")
        if name not in names or not given:
            said = f"{item!r}: expected {form} with a {kind} of {', '.join(names)}"
            raise typer.BadParameter(said, param_hint=hint)
        if name in found:
            raise typer.BadParameter(f"{item!r}: {name} has a {value} already", param_hint=hint)
        found[name] = given
    return found


def version_or_path(name: str) -> str | Path:
    """A string of twelve hexadecimal digits is a version, unless a file or directory has that name."""
    from models.releases.remote import VERSION

    if VERSION.fullmatch(name) and not Path(name).exists():
        return name
    if not Path(name).is_dir():
        raise typer.BadParameter(f"{name!r} is neither a version, of 12 hexadecimal digits, nor a directory")
    return Path(name)
