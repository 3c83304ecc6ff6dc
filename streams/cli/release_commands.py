"""Commands about releases: evaluate, releases, announce, rollback, verify, sign, export-model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.padding import Padding
from rich.text import Text

from models.types import RELEASED
from streams.cli.arguments import MOST, check_task, check_workers, chosen_releases, version_or_path
from streams.cli.files import check_writable, write_json
from streams.cli.groups import MODELS, example
from streams.cli.input import COLUMN, ENCODING, FORMATS, REJECTED, HowToRead, how_to_read
from streams.cli.terminal import Table, broker_settings, err, out, print_json, read_settings, say

if TYPE_CHECKING:
    from models.scores import Comparison
    from streams.rollout.announcing import ListedRelease
    from training.evaluation.evaluate import Evaluation

app = typer.Typer()
DIRECTORY = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="a release directory")]
TASK = Annotated[str, typer.Argument(help="ner, acronym, relation, normalization or summarization")]
DATA = Annotated[
    Path | None, typer.Option(exists=True, file_okay=False, help="folder with the public corpora")
]
KEY = Annotated[
    Path | None,
    typer.Option(
        "--key",
        exists=True,
        dir_okay=False,
        help="PEM file of the private key that signs; required if PV_RELEASE_KEY is set",
    ),
]


SCORED = Annotated[
    str, typer.Argument(help="the task of a stage, posts (tagging and normalization), judge or idiom")
]
MARKED = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        help="folder with the public corpora; or a file of texts with what is right, "
        f"{FORMATS}: terms (posts, normalization) or summary (summarization)",
    ),
]
SPLIT = Annotated[str | None, typer.Option(help="part of the data; by default the held-out set of the task")]
RELEASE = Annotated[
    list[str] | None,
    typer.Option(
        help="a version or a directory; by default the bundled one; for posts TASK=RELEASE, repeatable"
    ),
]


@app.command(rich_help_panel=MODELS, epilog=example("evaluate posts --limit 100"))
def evaluate(
    task: SCORED,
    data: MARKED = None,
    split: SPLIT = None,
    release: RELEASE = None,
    json: Annotated[Path | None, typer.Option("--json", help="write the evaluation here, as JSON")] = None,
    limit: Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of records; 0: all")] = 0,
    column: COLUMN = None,
    encoding: ENCODING = None,
    rejected: REJECTED = None,
) -> None:
    """Scores a release on a public corpus, or on a file; prints scores, intervals, baselines, definitions.

    Posts are scored on held-out posts that come with pvstream; all else requires --data.
    """
    from streams.rollout.scoring import score
    from training.evaluation.evaluate import FILE_FIELDS, POSTS, SPLITS, EvaluationError

    check_task(task, tuple(SPLITS))
    check_writable(json=json)
    chosen = chosen_releases(release or ()) if task == POSTS else _only(task, release or ())
    rows, refused = None, 0
    if data is not None and data.is_file():
        reading = how_to_read(column, encoding, None, rejected, FILE_FIELDS.get(task, ()))
        rows, refused = _rows(task, data, split, reading, limit)
    with err.status(task):
        try:
            evaluation = score(task, chosen, data, read_settings(), split=split, limit=limit, rows=rows)
        except EvaluationError as error:
            raise typer.BadParameter(str(error)) from None
    out.print(_score_table(evaluation))
    said = f"{evaluation.task} {evaluation.release} on {evaluation.data} ({evaluation.split}): "
    say(f"{said}{evaluation.records} records, {evaluation.seconds:.1f} s")
    if json is not None:
        write_json(json, evaluation.as_dict())
    if refused:
        raise typer.Exit(1)


def _rows(
    task: str, path: Path, split: str | None, reading: HowToRead, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """The rows of a user's file for a task, and how many are refused."""
    from streams.cli.evaluation_file import marked_rows
    from training.evaluation.evaluate import FILE_FIELDS, gold_of

    if task not in FILE_FIELDS or split:
        known = ", ".join(FILE_FIELDS)
        raise typer.BadParameter(
            f"{path} is a file: it has no --split, and is read for {known}; others take a folder of corpora",
            param_hint="--data",
        )
    return marked_rows(path, reading, FILE_FIELDS[task], partial(gold_of, task), limit)


def _only(task: str, releases: Sequence[str]) -> dict[str, str | Path]:
    if len(releases) > 1:
        raise typer.BadParameter(f"{task} is evaluated with one release")
    return {task: version_or_path(releases[0])} if releases else {}


def _score_table(evaluation: Evaluation) -> Table:
    table = Table("score", "value", "95 % interval", "baseline", "what is counted")
    for name, value in evaluation.scores.items():
        low, high = evaluation.intervals.get(name, (None, None))
        interval = "" if low is None else f"{low:.4f} to {high:.4f}"
        base = evaluation.baselines.get(name)
        baseline = "" if base is None else f"{base:.4f} ({evaluation.baseline_definitions[name]})"
        table.add_row(name, f"{value:.4f}", interval, baseline, evaluation.definitions[name])
    return table


@app.command(rich_help_panel=MODELS, epilog=example("releases --worker 127.0.0.1:8000"))
def releases(
    worker: Annotated[
        list[str] | None,
        typer.Option(help="host:port of the HTTP server of a worker, to list what it runs; repeatable"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Lists the releases: where each is stored, its state, its first score and its training data.

    The training data are printed with their licences.
    """
    from streams.rollout import announcements, announcing
    from streams.settings import EMBEDDED

    check_workers(worker or ())
    settings = read_settings()
    embedded = settings.broker == EMBEDDED
    announced = {} if embedded else asyncio.run(announcements.read_announcements(settings))
    rows = announcing.list_releases(settings, announced)
    _add_workers(rows, worker or ())
    if json:
        listed = [_as_json(row) for row in rows]
        print_json(listed)
        return
    for row in rows:
        _print_release(row)
    if embedded:
        out.print("PV_BROKER is not set: no announcements were read, bundled releases are listed as live")


def _add_workers(rows: Sequence[ListedRelease], addresses: Sequence[str]) -> None:
    """Adds each worker's address to the releases that it runs; raises OSError."""
    from streams.monitoring.workers import ask_workers

    for worker in asyncio.run(ask_workers(addresses)):
        if worker.error:
            raise OSError(f"no worker answers at {worker.address}: {worker.error}")
        for row in rows:
            if row.version == worker.releases.get(row.task):
                row.workers.append(worker.address)


def _as_json(row: ListedRelease) -> dict[str, Any]:
    names = ("task", "version", "where", "live", "workers")
    return {
        **{name: getattr(row, name) for name in names},
        "kind": row.manifest.kind,
        "scores": [s.model_dump() for s in row.manifest.scores],
        "training_data": [source.model_dump() for source in row.manifest.training_data],
    }


def _print_release(row: ListedRelease) -> None:
    state = [*(["live"] if row.live else []), row.where]
    out.print(Text.assemble((row.task, "bold"), f" {row.version}  ", "  ".join(state)))
    lines = [row.manifest.kind]
    lines += [f"{s.name} {s.value:g} ({s.data})" for s in row.manifest.scores[:1]]
    lines += [f"learned from {d.name} ({d.licence})" for d in dict.fromkeys(row.manifest.training_data)]
    lines += ["run by " + ", ".join(row.workers)] if row.workers else []
    out.print(*(Padding.indent(Text(line), 4) for line in lines), sep="")


@app.command(rich_help_panel=MODELS, epilog=example("announce runs/ner/3f6c0a5e9b21 --data corpora"))
def announce(
    path: DIRECTORY,
    data: DATA = None,
    force: Annotated[
        bool, typer.Option(help="announce it even if it is worse; without --data it is not compared")
    ] = False,
    key: KEY = None,
) -> None:
    """Announces a release to every worker, unless it is worse than the live one.

    Releases of ner and normalization are compared on bundled posts; all others require --data.
    """
    from streams.rollout import announcing
    from streams.rollout.scoring import Comparing

    settings = broker_settings()
    comparing = None if force and data is None else Comparing(data)
    with err.status("verifying and comparing"):
        announcement = asyncio.run(
            announcing.announce(path, settings, comparing, force=force, signing_key=key)
        )
    _print_comparison(announcement.compared)
    if comparing is not None:
        _print_comparison(comparing.further, "decides nothing: ")
    say(
        f"{announcement.task} {announcement.version} is announced in place of "
        f"{announcement.previous or 'none'}" + (", forced" if announcement.forced else "")
    )


def _print_comparison(compared: Comparison | None, note: str = "") -> None:
    if compared is not None:
        say(
            f"{note}{compared.score} on {compared.data}, {compared.records} records: "
            f"{compared.candidate:.4f}, live {compared.live:.4f}, difference {compared.difference:+.4f} "
            f"(95 % {compared.low:+.4f} to {compared.high:+.4f})"
        )


@app.command(rich_help_panel=MODELS, epilog=example("rollback ner 3f6c0a5e9b21"))
def rollback(
    task: TASK,
    version: Annotated[str, typer.Argument(help="a version in the store, or the bundled one")],
    key: KEY = None,
) -> None:
    """Announces an older release, which workers load as they load a new one."""
    from models.releases.remote import VERSION
    from streams.rollout.announcing import roll_back

    check_task(task, RELEASED)
    if not VERSION.fullmatch(version):
        raise typer.BadParameter(f"{version!r} is no version: 12 hexadecimal digits", param_hint="VERSION")
    announcement = asyncio.run(roll_back(task, version, broker_settings(), key))
    say(f"{task} {announcement.version} is announced in place of {announcement.previous}")


@app.command(rich_help_panel=MODELS, epilog=example("verify runs/ner/3f6c0a5e9b21"))
def verify(path: DIRECTORY) -> None:
    """Runs the checks that a worker runs before it loads a release: files, signature and canary check."""
    from streams.rollout.announcing import verified

    with verified(path, read_settings()) as (release, _):
        files = len(release.manifest.files)
    say(f"{release.task} {release.version}: valid, {files} files")


@app.command(rich_help_panel=MODELS, epilog=example("sign runs/ner/3f6c0a5e9b21 --key release.pem"))
def sign(
    path: DIRECTORY,
    key: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="PEM file with an Ed25519 private key")
    ],
) -> None:
    """Writes an Ed25519 signature next to the manifest of a release."""
    from models.releases.signature import read_private_key
    from models.releases.store import open_release
    from models.releases.store import sign as write_signature

    release = open_release(path)
    write_signature(release, read_private_key(key))
    say(f"{release.task} {release.version} is signed")


@app.command(
    "export-model", rich_help_panel=MODELS, epilog=example("export-model ner tagger --format transformers")
)
def export_model(
    release: Annotated[
        str, typer.Argument(help="a task, for its bundled release, or a version or a directory")
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="folder to write, new or empty")],
    form: Annotated[
        Literal["sentence-transformers", "transformers", "onnx"],
        typer.Option("--format", help="the library that is to load it; onnx requires the extra `onnx`"),
    ],
) -> None:
    """Writes the network of a release as other libraries load it, with a model card.

    The tagger (ner) goes to transformers or onnx, the encoders of normalization and idiom to
    sentence-transformers or onnx. The card says what a stage has beside the network.
    """
    from models.export.folders import FORMS, export
    from streams.rollout.loading import open_named

    tasks = (*RELEASED, *(task for task in FORMS if task not in RELEASED))
    with open_named(release if release in tasks else version_or_path(release), tasks, read_settings()) as own:
        export(own, directory, form)
        say(f"{own.task} {own.version} is exported to {directory}")
