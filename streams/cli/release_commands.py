"""Commands about releases: evaluate, list, publish, roll back, verify, sign, shadow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from models.types import TASKS
from streams.cli.terminal import err, out, real_broker, settings

if TYPE_CHECKING:
    from models.scores import Comparison

app = typer.Typer()
TASK = Annotated[str, typer.Argument(help="ner, acronym, relation, normalization or summarization")]
DATA = Annotated[Path | None, typer.Option(help="folder with the public corpora")]


@app.command()
def evaluate(
    task: Annotated[str, typer.Argument(help="a stage's task, or idiom")],
    data: Annotated[Path, typer.Option(help="folder with the public corpora")],
    split: Annotated[
        str | None, typer.Option(help="part of the data; without it the task's held-out set")
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="a version or a directory; without it the bundled one")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="write the evaluation here")] = None,
    limit: Annotated[int, typer.Option(min=0, help="records at most; 0: all")] = 0,
) -> None:
    """Scores a release on a public corpus, each score beside its baseline, interval and definition."""
    from streams.releases.opening import load_release  # noqa: PLC0415
    from training.evaluation.evaluate import SPLITS, EvaluationError  # noqa: PLC0415
    from training.evaluation.evaluate import evaluate as measure  # noqa: PLC0415

    _known_task(task, tuple(SPLITS))
    loaded = load_release(task, version_or_path(release) if release else None, settings())
    with err.status(f"{task} {loaded.version} on {split or 'the held-out set'}"):
        try:
            found = measure(task, loaded.model, loaded.version, data, split, limit)
        except EvaluationError as error:
            raise typer.BadParameter(str(error)) from None
    table = Table("score", "value", "95 % interval", "baseline", "what is counted")
    for name, value in found.scores.items():
        low, high = found.intervals.get(name, (None, None))
        between = "" if low is None else f"{low:.4f} to {high:.4f}"
        base = found.baselines.get(name)
        against = "" if base is None else f"{base:.4f} ({found.baseline_definitions[name]})"
        table.add_row(name, f"{value:.4f}", between, against, found.definitions[name])
    out.print(table)
    out.print(
        f"{found.task} {found.release} on {found.data} ({found.split}): {found.records} records, "
        f"{found.seconds:.1f} s",
        highlight=False,
    )
    if json is not None:
        json.write_bytes(orjson.dumps(found.as_dict(), option=orjson.OPT_INDENT_2))


@app.command()
def releases(
    worker: Annotated[
        list[str] | None, typer.Option(help="host:port of a worker's HTTP, to see what it runs; repeatable")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Lists releases with their first score, what is live, and where."""
    from streams.releases import announcements as topic  # noqa: PLC0415
    from streams.releases import publishing  # noqa: PLC0415

    chosen = settings()
    embedded = chosen.broker == "embedded"
    announced = {} if embedded else asyncio.run(topic.read_announcements(chosen))
    rows = publishing.list_releases(chosen, announced)
    for address in worker or ():
        for task, state in _running(address).items():
            for row in rows:
                if row.task == task and row.version == state["version"]:
                    row.workers.append(address)
    if json:
        found = [
            {
                **{
                    name: getattr(r, name)
                    for name in ("task", "version", "where", "live", "shadow", "workers")
                },
                "kind": r.manifest.kind,
                "scores": [s.model_dump() for s in r.manifest.scores],
            }
            for r in rows
        ]
        out.out(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode(), highlight=False)
        return
    for r in rows:
        state = [*(["live"] if r.live else []), *(["shadow"] if r.shadow else [])]
        out.print(Text.assemble((r.task, "bold"), f" {r.version}  ", "  ".join([*state, r.where])))
        told = [r.manifest.kind]
        told += [f"{s.name} {s.value:g} ({s.data})" for s in r.manifest.scores[:1]]
        told += ["run by " + ", ".join(r.workers)] if r.workers else []
        out.print(*(Padding.indent(Text(line), 4) for line in told), sep="")
    if embedded:
        out.print("without PV_BROKER nothing is known of announcements: bundled releases are shown as live")


@app.command()
def publish(
    path: Annotated[Path, typer.Argument(help="a release directory")],
    data: DATA = None,
    force: Annotated[bool, typer.Option(help="announce it also when it is worse, or without --data")] = False,
) -> None:
    """Announces a release to every worker, if it is not worse than the live one on the held-out set."""
    from streams.releases.publishing import publish as announce  # noqa: PLC0415

    with err.status("verifying and comparing"):
        made = asyncio.run(announce(path, real_broker(), _compare(data) if data else None, force=force))
    if made.compared is not None:
        c = made.compared
        out.print(
            f"{c.score} on {c.data}, {c.records} records: {c.candidate:.4f}, live {c.live:.4f}, difference "
            f"{c.difference:+.4f} (95 % {c.low:+.4f} to {c.high:+.4f})",
            highlight=False,
        )
    out.print(
        f"{made.task} {made.version} is announced in place of {made.previous}"
        + (", forced" if made.forced else ""),
        highlight=False,
    )


@app.command()
def rollback(
    task: TASK, version: Annotated[str, typer.Argument(help="of the store, or the bundled one")]
) -> None:
    """Announces an older release; workers take it as they take a new one."""
    from streams.releases.publishing import roll_back  # noqa: PLC0415

    _known_task(task)
    made = asyncio.run(roll_back(task, version, real_broker()))
    out.print(f"{task} {made.version} is announced in place of {made.previous}", highlight=False)


@app.command()
def verify(path: Annotated[Path, typer.Argument(help="a release directory")]) -> None:
    """Checks a release as a worker does before it loads one: every byte, the signature, the canary."""
    from streams.releases.publishing import verify as check  # noqa: PLC0415

    release, _ = check(path, settings())
    out.print(
        f"{release.task} {release.version}: sound, {len(release.manifest.files)} files", highlight=False
    )


@app.command()
def sign(
    path: Annotated[Path, typer.Argument(help="a release directory")],
    key: Annotated[Path, typer.Option(help="PEM file with an Ed25519 private key")],
) -> None:
    """Puts an Ed25519 signature beside the manifest of a release."""
    from models.releases.signature import read_private_key  # noqa: PLC0415
    from models.releases.store import open_release  # noqa: PLC0415
    from models.releases.store import sign as write  # noqa: PLC0415

    release = open_release(path)
    write(release, read_private_key(key))
    out.print(f"{release.task} {release.version} is signed", highlight=False)


@app.command()
def shadow(
    task: TASK,
    release: Annotated[str | None, typer.Argument(help="a version of the store, or a directory")] = None,
    share: Annotated[float, typer.Option(min=0.0001, max=1, help="of the records")] = 0.1,
    stop: Annotated[bool, typer.Option("--stop", help="end the shadow of this task")] = False,
) -> None:
    """Runs a release beside the live one on a share of the records; see `<sink>.shadow` and /releases."""
    from streams.releases.publishing import end_shadow, start_shadow  # noqa: PLC0415

    _known_task(task)
    if stop == (release is not None):
        raise typer.BadParameter("either a release or --stop")
    if release is None:
        asyncio.run(end_shadow(task, real_broker()))
        out.print(f"{task}: the shadow ends")
        return
    made = asyncio.run(start_shadow(task, version_or_path(release), share, real_broker()))
    out.print(
        f"{task} {made.version} runs beside the live release on {share:.2%} of the records", highlight=False
    )


def version_or_path(name: str) -> str | Path:
    """A version is twelve hexadecimal digits; what is there as a directory is a directory."""
    from models.releases.remote import VERSION  # noqa: PLC0415

    return name if VERSION.fullmatch(name) and not Path(name).exists() else Path(name)


def _compare(data: Path) -> Any:
    """Both releases on the task's held-out set, by its primary score."""
    from streams.releases.publishing import GateError  # noqa: PLC0415
    from training.evaluation import evaluate as evaluation  # noqa: PLC0415

    def compared(candidate: Any, live: Any) -> Comparison:
        try:
            ours, theirs = (
                evaluation.evaluate(one.task, one.model, one.version, data, None) for one in (candidate, live)
            )
            return evaluation.compare(ours, theirs)
        except evaluation.EvaluationError as error:
            raise GateError(str(error)) from None

    return compared


def _running(address: str) -> dict[str, Any]:
    """What a worker says of itself; raises OSError with its address."""
    import http.client  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    try:
        with urllib.request.urlopen(f"http://{address}/releases", timeout=5) as answer:
            found = orjson.loads(answer.read())
            return {task: dict(state) for task, state in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, http.client.HTTPException) as error:
        raise OSError(f"no worker answers at {address}: {error}") from None


def _known_task(task: str, tasks: Sequence[str] = TASKS) -> None:
    if task not in tasks:
        raise typer.BadParameter(f"{task!r} is none of {', '.join(tasks)}", param_hint="TASK")
