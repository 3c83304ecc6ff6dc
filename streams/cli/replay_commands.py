"""Commands that read the records of topics: replay, redrive and terminology diff."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.arguments import (
    MOST,
    RESULTS,
    check_dead_topic,
    chosen_releases,
    known_topic,
    stages_of,
    version_or_path,
)
from streams.cli.files import check_writable, write_json, write_whole
from streams.cli.groups import MODELS, OPERATE, example
from streams.cli.terminal import Table, broker_settings, out, progress_bar, say

if TYPE_CHECKING:
    from streams.replay.comparison import Comparison
    from streams.replay.gold import Gold

app = typer.Typer()
terminology = typer.Typer(help="Compares terminologies.", no_args_is_help=True)
app.add_typer(terminology, name="terminology", rich_help_panel=MODELS)

FROM = Annotated[str, typer.Option("--from", help="beginning, end, an offset or an ISO 8601 time")]
TO = Annotated[str, typer.Option("--to", help="like --from; the range ends before it")]
RELEASES = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TASK=RELEASE",
        help="use this release, a version or a directory, instead of the live one; repeatable",
    ),
]
COMPARED = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TASK=RELEASE",
        help="run a second replay with this release and compare it with the first; repeatable",
    ),
]
GOLD = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="gold file, JSON Lines: id, mentions, relations, ..."),
]
JSON = Annotated[Path | None, typer.Option("--json", help="write the figures here, as JSON")]
REASON = Annotated[str | None, typer.Option(help="only letters with this reason")]
LIMIT = Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of letters sent back; 0: all")]
ATTEMPTS = Annotated[int, typer.Option(min=1, help="maximum number of times a record is sent back")]
OUTDATED = Annotated[
    bool,
    typer.Option(
        "--outdated",
        help="also letters of which a later version was sent, or whose source record has expired, perhaps "
        "with its deletion",
    ),
]


@app.command(
    rich_help_panel=MODELS,
    epilog=example("replay posts --compare ner=runs/ner/3f6c0a5e9b21 --html report.html"),
)
def replay(
    topic: Annotated[str, typer.Argument(help="a topic that a stage reads")],
    start: FROM = "beginning",
    stop: TO = "end",
    results: RESULTS = None,
    release: RELEASES = None,
    compare: COMPARED = None,
    against: GOLD = None,
    output: Annotated[Path | None, typer.Option(help="write the records here, as JSON Lines")] = None,
    into: Annotated[str | None, typer.Option(help="send the records to this topic, which must exist")] = None,
    html: Annotated[Path | None, typer.Option(help="write an HTML report here; it quotes the texts")] = None,
    json: JSON = None,
) -> None:
    """Runs a range of a topic through chosen releases, without joining the live consumer groups.

    The same range through the same releases gives the same bytes.
    """
    from streams.cli.replay_runs import Range, check_target, run_replays, send_to
    from streams.codec import encode
    from streams.replay.report import facts, table

    stages_of(topic, results)
    check_writable(output=output, html=html, json=json)
    if into is not None:
        asyncio.run(check_target(into))
    gold = _read_gold(against) if against else None
    first, second = chosen_releases(release or ()), chosen_releases(compare or ())
    comparison = asyncio.run(run_replays(Range(topic, start, stop, results), first, second, gold))
    records = comparison.base.result.outputs
    if output is not None:
        write_whole(output, b"".join(encode(r) + b"\n" for r in records))
    if into is not None:
        asyncio.run(send_to(into, records))
    _write_reports(comparison, html, json)
    for name, value in facts(comparison):
        say(f"{name}: {value}")
    if comparison.scores:
        out.print(table(comparison))


def _write_reports(comparison: Comparison, html: Path | None, json: Path | None) -> None:
    from streams.replay import report
    from streams.replay.comparison import as_json

    if html is not None:
        write_whole(html, report.html(comparison).encode())
    if json is not None:
        write_json(json, as_json(comparison))


def _read_gold(path: Path) -> Gold:
    from streams.replay.gold import GoldError, read_gold

    try:
        with path.open("rb") as file:
            return read_gold(file)
    except GoldError as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--against") from None


@app.command(rich_help_panel=OPERATE, epilog=example("redrive posts.dead --reason poison"))
def redrive(
    topic: Annotated[str, typer.Argument(help="a topic of dead letters, for example `posts.dead`")],
    reason: REASON = None,
    limit: LIMIT = 0,
    max_attempts: ATTEMPTS = 3,
    outdated: OUTDATED = False,
) -> None:
    """Sends dead letters back to the topic that they were read from.

    Each letter is sent back once, and a record that fails again at most --max-attempts times.
    """
    from streams.dead_letters.redrive import redrive as send_back

    check_dead_topic(topic)
    with progress_bar(f"redriving {topic}") as progress:
        try:
            done = asyncio.run(
                send_back(
                    broker_settings(),
                    topic,
                    reason=reason,
                    limit=limit,
                    max_attempts=max_attempts,
                    outdated=outdated,
                    progress=progress,
                )
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    say(
        f"{topic}: {done.sent} sent back, {done.skipped} skipped (another reason, or sent back before), "
        f"{done.exhausted} already sent back {max_attempts} times, {done.too_large} too large, "
        f"{done.deleted} deleted, {done.outdated} replaced or older than their topic"
    )


@app.command(rich_help_panel=OPERATE, epilog=example("skip posts 0 4711 --group ner"))
def skip(
    topic: Annotated[str, typer.Argument(help="a topic that a stage reads, for example `posts`")],
    partition: Annotated[int, typer.Argument(min=0, help="partition of the record")],
    offset: Annotated[int, typer.Argument(min=0, help="offset of the record")],
    group: Annotated[str, typer.Option(help="the stage, for example `ner`")],
) -> None:
    """Moves one record that stops a stage to the dead letters, and lets the stage continue behind it.

    The workers of the stage must be stopped. Their log names the topic, the partition and the offset.
    """
    from streams.agents.pipeline import stage_named
    from streams.dead_letters.skip import skip as step_over

    source, settings = known_topic(topic), broker_settings()
    try:
        stage = stage_named(group)
    except KeyError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--group") from None
    if source not in stage.sources:
        names = ", ".join(read.name for read in stage.sources)
        raise typer.BadParameter(f"the stage {group} reads {names}, not {topic}")
    was_read = asyncio.run(step_over(settings, source, partition, offset, group))
    how = "" if was_read else ", without key and value: it could not be read"
    say(f"{topic}/{partition}@{offset} moved to {source.dead_letters.name}{how}")


@terminology.command(epilog=example("terminology diff 3f6c0a5e9b21 8d2b7c41f0aa"))
def diff(
    old: Annotated[str, typer.Argument(help="a normalization release: a version or a directory")],
    new: Annotated[str, typer.Argument(help="another normalization release")],
    start: FROM = "beginning",
    stop: TO = "end",
    json: JSON = None,
    show: Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of changes printed")] = 50,
) -> None:
    """Lists the mentions in a range of `mentions` that the two releases code differently."""
    from streams.cli.display import plain_text
    from streams.cli.replay_runs import Range, run_replays
    from streams.replay.diff import recoded
    from streams.replay.markup import terms

    check_writable(json=json)
    first, second = ({"normalization": version_or_path(name)} for name in (old, new))
    comparison = asyncio.run(run_replays(Range("mentions", start, stop), first, second, None))
    table = Table("mention", "times", "before", "after", "for example")
    for change in comparison.coding[:show]:
        before, after = terms(change.old_pt, change.old_llt), terms(change.new_pt, change.new_llt)
        cells = (change.text, str(change.count), before, after, ", ".join(change.examples))
        table.add_row(*map(plain_text, cells))
    out.print(table)
    total = sum(c.count for c in comparison.coding)
    reports = f"{recoded(comparison.differences)} of {comparison.compared} reports"
    say(f"{total} mentions in {reports} are coded differently; {len(comparison.coding)} different changes")
    if json is not None:
        rows = [asdict(c) for c in comparison.coding]
        write_json(json, rows)
