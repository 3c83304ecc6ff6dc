"""Commands that read what topics hold: replay, redrive, and the difference that a terminology makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from streams.cli.release_commands import version_or_path
from streams.cli.terminal import err, out, real_broker

if TYPE_CHECKING:
    from models.releases.loading import Loaded
    from streams.records import Inbound
    from streams.replay.comparison import Comparison
    from streams.replay.run import Replayed

app = typer.Typer()
terminology = typer.Typer(help="What another terminology changes.", no_args_is_help=True)
app.add_typer(terminology, name="terminology")

FROM = Annotated[str, typer.Option("--from", help="beginning, end, an offset or an ISO 8601 time")]
TO = Annotated[str, typer.Option("--to", help="as --from; what comes later is left out")]
JSON = Annotated[Path | None, typer.Option("--json", help="write the figures here")]


@app.command()
def replay(
    topic: Annotated[str, typer.Argument(help="a topic that a stage reads")],
    start: FROM = "beginning",
    stop: TO = "end",
    release: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=RELEASE", help="instead of the live release; a version or a directory"),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=RELEASE", help="a second replay with this release, compared with the first"
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="gold, JSON Lines: id, mentions, relations, ...")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="write the records here, JSON Lines")] = None,
    into: Annotated[str | None, typer.Option(help="send the records to this topic, which must exist")] = None,
    html: Annotated[Path | None, typer.Option(help="write a report to read; it quotes the texts")] = None,
    json: JSON = None,
) -> None:
    """Runs a range of a topic through chosen releases, outside of the live consumer groups.

    The same range through the same releases gives the same bytes.
    """
    from streams.codec import encode  # noqa: PLC0415
    from streams.replay import report  # noqa: PLC0415
    from streams.replay.comparison import as_json  # noqa: PLC0415

    gold = _gold(against) if against else None
    found = asyncio.run(_replayed(topic, (start, stop), _chosen(release), _chosen(compare), gold))
    records = found.base.replayed.outputs
    if output is not None:
        output.write_bytes(b"".join(encode(r) + b"\n" for r in records))
    if into is not None:
        asyncio.run(_send(into, records))
    if html is not None:
        html.write_text(report.html(found), encoding="utf-8")
    if json is not None:
        json.write_bytes(orjson.dumps(as_json(found), option=orjson.OPT_INDENT_2))
    out.print(report.table(found))


@app.command()
def redrive(
    topic: Annotated[str, typer.Argument(help="a topic of dead letters, `posts.dead` for example")],
    reason: Annotated[str | None, typer.Option(help="only letters of this reason")] = None,
    limit: Annotated[int, typer.Option(min=0, help="letters at most; 0: all")] = 0,
    max_attempts: Annotated[int, typer.Option(min=1, help="times that a letter is sent back at most")] = 3,
) -> None:
    """Sends dead letters back to the topic they died in, each once, and none for ever."""
    from streams.dead_letters.redrive import redrive as send_back  # noqa: PLC0415

    with _progress(f"redriving {topic}") as progress:
        try:
            done = asyncio.run(
                send_back(
                    real_broker(),
                    topic,
                    reason=reason,
                    limit=limit,
                    max_attempts=max_attempts,
                    progress=progress,
                )
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    out.print(
        f"{topic}: {done.sent} sent back, {done.skipped} passed over (another reason, or sent back before), "
        f"{done.exhausted} sent back {max_attempts} times already, {done.too_large} too large",
        highlight=False,
    )


@terminology.command()
def diff(
    old: Annotated[str, typer.Argument(help="a normalization release: a version or a directory")],
    new: Annotated[str, typer.Argument(help="another one")],
    start: FROM = "beginning",
    stop: TO = "end",
    json: JSON = None,
    show: Annotated[int, typer.Option(min=0, help="changes to print")] = 50,
) -> None:
    """Lists the mentions of a range of `mentions` whose code changes from one release to the other."""
    found = asyncio.run(
        _replayed(
            "mentions",
            (start, stop),
            {"normalization": version_or_path(old)},
            {"normalization": version_or_path(new)},
            None,
        )
    )
    table = Table("mention", "times", "before", "after", "for example")
    for change in found.coding[:show]:
        before, after = _term(change.old_pt, change.old_llt), _term(change.new_pt, change.new_llt)
        table.add_row(change.text, str(change.count), before, after, ", ".join(change.examples))
    out.print(table)
    total = sum(c.count for c in found.coding)
    out.print(
        f"{total} mentions in {len(found.differences)} of {found.compared} reports are coded otherwise; "
        f"{len(found.coding)} different changes",
        highlight=False,
    )
    if json is not None:
        from dataclasses import asdict  # noqa: PLC0415

        rows = [asdict(c) for c in found.coding]
        json.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2))


async def _replayed(
    topic: str,
    between: tuple[str, str],
    first: Mapping[str, str | Path],
    second: Mapping[str, str | Path],
    gold: Any,
) -> Comparison:
    """Reads the range once and runs it through one chain, and through a second one where it differs."""
    from streams import topics  # noqa: PLC0415
    from streams.broker.ranges import parse_bound, read_range  # noqa: PLC0415
    from streams.replay.comparison import Chain, Source, compare  # noqa: PLC0415
    from streams.replay.run import stages_from  # noqa: PLC0415

    settings = real_broker()
    table = topics.by_name(topic)
    tasks = [s.name for s in stages_from(table)]
    if unused := sorted((first.keys() | second.keys()) - set(tasks)):
        raise typer.BadParameter(
            f"no record of {topic} reaches {', '.join(unused)}; tasks: {', '.join(tasks)}"
        )
    try:
        start, stop = parse_bound(between[0]), parse_bound(between[1])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with _progress(f"reading {topic}") as progress:
        records = await read_range(settings, table, start, stop, progress)
    models = await _models(tasks, first, settings)
    base = Chain(
        {t: m.version for t, m in models.items()}, await _run(records, table, models, settings, "replaying")
    )
    other = None
    if second:
        models |= await _models(list(second), second, settings)
        other = Chain(
            {t: m.version for t, m in models.items()},
            await _run(records, table, models, settings, "comparing"),
        )
    return compare(Source(topic, *between, len(records)), base, other, gold)


async def _models(tasks: list[str], chosen: Mapping[str, str | Path], settings: Any) -> dict[str, Loaded]:
    """The chosen releases, and the live ones of the other tasks."""
    from streams.releases.announcements import read_announcements  # noqa: PLC0415
    from streams.releases.opening import load_release  # noqa: PLC0415

    live = await read_announcements(settings)
    found = {}
    for task in tasks:
        name = chosen.get(task) or (live[task].version if task in live else None)
        with err.status(f"loading {task}"):
            found[task] = load_release(task, name, settings)
    return found


async def _run(records: list[Inbound], topic: Any, models: Any, settings: Any, what: str) -> Replayed:
    from streams.replay.run import run_chain  # noqa: PLC0415

    with _progress(what) as progress:
        return await run_chain(
            records, topic, models, settings.batch, progress, max_output_bytes=settings.max_output_bytes
        )


async def _send(name: str, records: list[Any]) -> None:
    """Sends records to a topic that is none of the pipeline's own, and waits for the broker."""
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415

    from streams import topics  # noqa: PLC0415
    from streams.codec import encode  # noqa: PLC0415

    settings = real_broker()
    if name in {t.name for t in topics.TOPICS}:
        raise typer.BadParameter(f"{name} is a topic of the pipeline", param_hint="--into")
    await topics.require_named(settings, name)
    async with AIOKafkaProducer(**settings.client(), acks="all", enable_idempotence=True) as producer:
        for at in range(0, len(records), 500):
            sends = [
                await producer.send(name, key=r.id.encode(), value=encode(r)) for r in records[at : at + 500]
            ]
            await asyncio.gather(*sends)


def _chosen(given: list[str] | None) -> dict[str, str | Path]:
    from models.types import TASKS  # noqa: PLC0415

    found = {}
    for item in given or ():
        task, _, name = item.partition("=")
        if task not in TASKS or not name:
            raise typer.BadParameter(f"{item!r}: wanted is TASK=RELEASE with a task of {', '.join(TASKS)}")
        found[task] = version_or_path(name)
    return found


def _gold(path: Path) -> Any:
    from streams.replay.gold import GoldError, read_gold  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            return read_gold(file)
    except GoldError as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--against") from None


def _term(pt: str | None, llt: str | None) -> str:
    return f"{pt} ({llt})" if pt else "NIL"


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as shown:
        bar = shown.add_task(what, total=None)

        def told(done: int, total: int) -> None:
            shown.update(bar, completed=done, total=total)

        yield told
