"""The command `signals`."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
import typer

from models.redaction import redact
from streams.cli.arguments import INPUT, MOST, MOST_SECONDS
from streams.cli.files import check_writable, write_whole
from streams.cli.groups import RESULTS, example
from streams.cli.store.commands import reading
from streams.cli.terminal import Table, broker_settings, err, out, read_settings, say
from streams.stopping import end_at_sigterm

if TYPE_CHECKING:
    from streams.records import Signal
    from streams.settings import Settings
    from streams.signals.surveillance import Options, Outcome

app = typer.Typer()
#: Seconds until the next attempt where the database or the broker is away, with --every.
RETRY_SECONDS = 10.0
#: Seconds after which --every --publish writes also the pairs whose number of reports is as before.
WHOLE_SECONDS = 3600.0
LEVEL = Annotated[Literal["pt", "soc"], typer.Option(help="preferred terms or system organ classes")]
UNTIL = Annotated[str | None, typer.Option(help="ISO 8601 time at which all windows end; by default now")]
SOURCE = Annotated[INPUT | None, typer.Option(help="only reports of this input topic")]
LANGUAGE = Annotated[str | None, typer.Option(help="only reports of which the source states this language")]
SERIOUS = Annotated[bool, typer.Option("--serious", help="only serious events")]
OTHERS = Annotated[bool, typer.Option("--others", help="also events of other people than the writer")]
ALL = Annotated[bool, typer.Option("--all-reports", help="count every report, also repeats of a case")]
STRATIFIED = Annotated[
    bool, typer.Option("--stratified", help="sum the expected counts over strata by source and language")
]
LEAST = Annotated[int, typer.Option(min=1, max=MOST, help="minimum number of reports of a listed pair")]
DISCOVERY = Annotated[
    float | None, typer.Option(min=0, max=1, help="false discovery rate; adds the criterion fdr")
]
CRITERION = Annotated[
    Literal["evans", "ror025", "ic025", "eb05", "fdr"] | None, typer.Option(help="only pairs that meet it")
]
SHOW = Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of pairs printed")]
HTML = Annotated[Path | None, typer.Option(help="write an HTML report here")]
JSON = Annotated[Path | None, typer.Option("--json", help="write the signals here, as JSON Lines")]
PUBLISH = Annotated[bool, typer.Option("--publish", help="write the signals to the topic `signals`")]
EVERY = Annotated[
    float,
    typer.Option(
        min=0, max=MOST_SECONDS, help="compute again after this many seconds, until Ctrl-C; 0: once"
    ),
]


@app.command(rich_help_panel=RESULTS, epilog=example("signals --criterion ic025 --html signals.html"))
def signals(
    level: LEVEL = "pt",
    until: UNTIL = None,
    source: SOURCE = None,
    language: LANGUAGE = None,
    serious: SERIOUS = False,
    others: OTHERS = False,
    all_reports: ALL = False,
    stratified: STRATIFIED = False,
    least: LEAST = 3,
    fdr: DISCOVERY = None,
    criterion: CRITERION = None,
    show: SHOW = 25,
    html: HTML = None,
    json: JSON = None,
    publish: PUBLISH = False,
    every: EVERY = 0,
) -> None:
    """Computes disproportionality and the weekly watch from the database of PV_DATABASE.

    A disproportionality is no evidence that a drug causes an event.
    """
    from streams.signals.population import Population
    from streams.signals.surveillance import Options

    if every:
        end_at_sigterm()
    if criterion == "fdr" and fdr is None:
        raise typer.BadParameter("it needs --fdr", param_hint="--criterion")
    check_writable(html=html, json=json)
    population = Population(level, None, None, source, language, serious, others, all_reports=all_reports)
    settings = broker_settings() if publish else read_settings()
    run = _Run(settings, Options(population, stratified, least, fdr, criterion=criterion), _parsed(until))
    outputs = _Outputs(show, html, json, publish)
    if every and publish:
        run.wait_for_broker()
    run.once(outputs)
    if every:
        run.repeat(outputs, every)


class _Outputs:
    """Where the signals go."""

    def __init__(self, show: int, html: Path | None, json: Path | None, publish: bool) -> None:
        self.show, self.html, self.json, self.publish = show, html, json, publish


class _Run:
    """The computations of one command."""

    def __init__(self, settings: Settings, options: Options, until: datetime | None) -> None:
        self.settings = settings
        self._options = options
        self._until = until
        self._surveillance: Any = None
        self._began = 0.0
        self._published: set[str] | None = None

    def wait_for_broker(self) -> None:
        """Raises TopicsError, and the error of a broker that refuses the connection or the login."""
        from streams.broker.watch import BrokerWatch
        from streams.topics import SIGNALS, require

        asyncio.run(BrokerWatch(self.settings).until_answered(partial(require, self.settings, (SIGNALS,))))

    def repeat(self, outputs: _Outputs, every: float) -> None:
        was_done = True
        while True:
            time.sleep(every if was_done else min(every, RETRY_SECONDS))
            was_done = self.again(outputs)

    def again(self, outputs: _Outputs) -> bool:
        """Does what `once` does; returns whether it could. If not, the next time publishes
        everything, since what was found to have changed may not have been written.
        """
        from aiokafka.errors import KafkaError

        from streams.store.database import DatabaseError
        from streams.topics import TopicsError

        try:
            self.once(outputs)
            return True
        except (DatabaseError, KafkaError, TopicsError, TimeoutError) as error:
            message = redact(str(error)) or type(error).__name__
            say(f"tried again soon: {message}", err)
            self._surveillance, self._published = None, None
            return False

    def once(self, outputs: _Outputs) -> None:
        from streams.signals.surveillance import Surveillance
        from streams.web.reports import releases as releases_of

        with reading(self.settings) as database:
            if self._surveillance is None or time.monotonic() - self._began > WHOLE_SECONDS:
                self._surveillance, self._began = Surveillance(database, self._options), time.monotonic()
            self._surveillance.database = database
            outcome = self._surveillance.compute(self._until or datetime.now(UTC))
            releases = releases_of(database) if outputs.html else []
        self._write(outputs, outcome, releases)

    def _write(self, outputs: _Outputs, outcome: Outcome, releases: list[str]) -> None:
        _print(outcome, outcome.signals[: outputs.show], len(outcome.signals))
        if outputs.json is not None:
            write_whole(outputs.json, b"".join(orjson.dumps(s) + b"\n" for s in outcome.signals))
        if outputs.html is not None:
            from streams import __version__
            from streams.signals.report import html

            write_whole(outputs.html, html(outcome, releases, __version__).encode())
        if outputs.publish:
            asyncio.run(self._publish(outcome))

    async def _publish(self, outcome: Outcome) -> None:
        """Writes what changed since the last time; the first time, everything."""
        from streams.signals.publishing import publish, published_keys

        first = self._published is None
        before = self._published
        if before is None:
            before = await published_keys(self.settings, outcome.options.population.level)
        keys = {s.key for s in outcome.signals}
        # A pair may meet a criterion again though its own number of reports is the same.
        due = [
            s for s in outcome.signals if first or (s.drug, s.term) in outcome.changed or s.key not in before
        ]
        await publish(self.settings, due, before - keys)
        self._published = keys
        say(f"{len(due)} signals published, {len(before - keys)} withdrawn", err)


def _parsed(until: str | None) -> datetime | None:
    from streams.broker.ranges import parse_bound

    if until is None:
        return None
    try:
        moment = parse_bound(until)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--until") from None
    if not isinstance(moment, datetime):
        raise typer.BadParameter(f"{until!r} is no time", param_hint="--until")
    return moment


def _print(outcome: Outcome, shown: list[Signal], pairs: int) -> None:
    from streams.cli.display import plain_text
    from streams.signals.surveillance import CAVEAT

    table = Table("drug", "term", "n", "expected", "PRR", "ROR", "IC025", "EB05", "7 days", "criteria")
    for signal in shown:
        s, week = signal.windows["all"], signal.windows.get("7d")
        numbers = (f"{v:.2f}" for v in (s.expected, s.prr.value, s.ror.value, s.ic.low, s.ebgm.low))
        recent = f"{week.n if week else 0}{' *' if signal.watch and signal.watch.signalled else ''}"
        # As texts, because a drug that no lexicon has may look like markup.
        pair = (plain_text(signal.drug), plain_text(signal.term))
        repeats = f" ({s.all_reports})" if s.all_reports != s.unique_reports else ""
        table.add_row(*pair, f"{s.unique_reports}{repeats}", *numbers, recent, " ".join(s.criteria))
    out.print(table)
    whole = outcome.windows["all"]
    unit = outcome.options.population.counted
    say(
        f"{len(shown)} of {pairs} pairs; {whole.reports} {unit} with {whole.pairs} pairs. "
        "n: unique (all) reports; * signal of the weekly watch."
    )
    if whole.prior_note:
        say(whole.prior_note, err)
    if n := outcome.without_language:
        say(f"--language leaves out {n} more reports: their source states no language.", err)
    say(CAVEAT, err)
