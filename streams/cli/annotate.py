"""The command annotate: the models over a file, without a broker and without topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streams.cli.arguments import INPUT, RESULTS, chosen_releases, stages_of
from streams.cli.files import check_writable
from streams.cli.groups import RUN, example
from streams.cli.input import COLUMN, DAY_FIRST, ENCODING, FORMATS, REJECTED, HowToRead, how_to_read, notes
from streams.cli.terminal import err, progress_bar, read_settings, say

if TYPE_CHECKING:
    from models.files.row import Row
    from streams.library import Annotator
    from streams.records import Report

app = typer.Typer()


@app.command(rich_help_panel=RUN, epilog=example("annotate posts.csv --format csv --output events.csv"))
def annotate(
    file: Annotated[str, typer.Argument(help=f"{FORMATS}, with text; - for standard input")],
    topic: Annotated[INPUT, typer.Option(help="what the texts are")] = "posts",
    results: RESULTS = None,
    form: Annotated[
        Literal["jsonl", "csv", "parquet"],
        typer.Option("--format", help="jsonl: a record for each text; csv, parquet: a row for each event"),
    ] = "jsonl",
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="by default standard output")] = None,
    release: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=RELEASE", help="version or folder instead of the bundled one; repeatable"),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="most texts; 0: all")] = 0,
    column: COLUMN = None,
    encoding: ENCODING = None,
    day_first: DAY_FIRST = None,
    rejected: REJECTED = None,
) -> None:
    """Finds in the texts of a file what the stages find in a topic, without a broker.

    A text that cannot be read, or that a model fails on, is refused and counted; the exit code is then 1.
    """
    _check(file, form, output)
    chosen = chosen_releases(release or ())
    reading = how_to_read(column, encoding, day_first, rejected)
    settings = read_settings()
    from streams.cli.annotated_output import writing
    from streams.library import load, tasks_of

    stages = stages_of(topic, results)
    if unread := chosen.keys() - set(tasks_of(stages)):
        raise typer.BadParameter(f"{min(unread)} does not read {topic}", param_hint="--release")
    run = _Run(load(topic, results=results, releases=chosen, settings=settings), reading, limit)
    with writing(output, form, stages[-1].sink.name) as write:
        for records in run.records(file):
            write(records)
    raise typer.Exit(run.summarize())


def _check(file: str, form: str, output: Path | None) -> None:
    """Raises typer.BadParameter."""
    if form == "parquet" and output is None:
        raise typer.BadParameter("parquet needs --output", param_hint="--format")
    if file != "-" and not Path(file).is_file():
        raise typer.BadParameter(f"no file {file}", param_hint="FILE")
    check_writable(output=output)


class _Run:
    """A file on its way through the models."""

    def __init__(self, annotator: Annotator, reading: HowToRead, limit: int) -> None:
        self._annotator = annotator
        self._reading = reading
        self._limit = limit
        self._texts = 0

    def records(self, file: str) -> Iterator[Sequence[Report]]:
        """The records of a batch at a time; raises UnreadableFile."""
        from streams.agents.annotator import BATCH
        from streams.cli.refusals import Refusals, RejectedFile
        from streams.input_rows import Refusal, RowReader
        from streams.pipe import standard_input

        topic = self._annotator.topic
        source = standard_input() if file == "-" else Path(file)
        reader = RowReader("stdin" if file == "-" else Path(file).name, day_first=self._reading.day_first)
        with (
            self._reading.open(source) as opened,
            RejectedFile(self._reading.rejected) as rejected,
            progress_bar(topic) as progress,
        ):
            self._refusals = Refusals(topic, rejected, "line" if opened.has_lines else "row", err)
            rows = islice(opened.rows, self._limit or None)
            while batch := list(islice(rows, BATCH)):
                read: list[tuple[Row, Report]] = []
                for row in batch:
                    item = reader.read(row)
                    if isinstance(item, Refusal):
                        self._refusals.add(item)
                    else:
                        read.append((row, item))
                yield list(self._annotated(read))
                self._texts += len(batch)
                progress(self._texts, None)
            self._refusals.summarize()
            for note in notes(opened, reader):
                say(note, err)

    def _annotated(self, read: Sequence[tuple[Row, Report]]) -> Iterator[Report]:
        """Yields what `Annotator.predict` returns, but refuses a text that a model fails on."""
        from streams.dead_letters.headers import describe_error
        from streams.input_rows import Refusal

        try:
            yield from self._annotator.predict([report for _, report in read])
        except Exception as error:
            if len(read) > 1:
                for part in (read[: len(read) // 2], read[len(read) // 2 :]):
                    yield from self._annotated(part)
                return
            ((row, _),) = read
            self._refusals.add(Refusal(row.number, describe_error(error), row.original))

    def summarize(self) -> int:
        """Prints how many texts were read; returns the exit code."""
        refused = self._refusals.total
        say(f"{self._texts - refused} {self._annotator.topic} read, {refused} refused", err)
        return 1 if refused else 0
