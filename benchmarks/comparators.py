"""How do releases score that were trained only for comparison and are not shipped?

    python -m benchmarks.comparators --score macro_f1 --json FILE triplet=runs/acronym/VERSION ours=...

Reads the scores in each manifest, and with them the settings of the training.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import provenance
from models.releases.manifest import Release
from models.releases.store import open_release
from training.common.program_help import run_program


def scores_of(release: Release, names: list[str]) -> dict[str, float]:
    """The scores with these names, keyed by name and data; all scores if no name is given."""
    scores = release.manifest.scores
    return {f"{s.name}, {s.data}": s.value for s in scores if not names or s.name in names}


def main(
    releases: Annotated[list[str], typer.Argument(help="NAME=FOLDER of each release, all of one task")],
    result: Annotated[Path, typer.Option("--json", help="write the figures here")],
    score: Annotated[list[str] | None, typer.Option(help="only scores of this name; repeatable")] = None,
) -> None:
    named = {}
    for release in releases:
        name, separator, folder = release.partition("=")
        if not separator or name in named:
            raise typer.BadParameter(f"{release!r} is not NAME=FOLDER with a unique name")
        named[name] = open_release(Path(folder))
    if len({r.task for r in named.values()}) > 1:
        raise typer.BadParameter("releases of different tasks have no scores in common")
    scores = {name: scores_of(r, score or []) for name, r in named.items()}
    first = next(iter(named.values())).manifest
    if len({frozenset(row) for row in scores.values()}) > 1:
        raise typer.BadParameter("the releases are not scored on the same data")
    definitions = {s.name: s.definition for s in first.scores if not score or s.name in score}
    settings = {name: _settings(r.manifest.configuration) for name, r in named.items()}
    rows = {name: {"trained with": in_words(settings[name])} | row for name, row in scores.items()}
    versions = {name: r.version for name, r in named.items()}
    content: dict[str, Any] = {"task": first.task, "rows": rows}
    content |= {"definitions": definitions, "settings": settings, "releases": versions}
    content |= provenance("comparators")
    # Folders differ between machines; the version identifies the release.
    content["command"] = "python -m benchmarks.comparators --json FILE " + " ".join(
        f"{n}=FOLDER" for n in named
    )
    result.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for name, row in rows.items():
        typer.echo(f"{name}: {row}")


def in_words(settings: Any) -> str:
    """The settings of a training in one line; what is switched off, or a number that is 0, is named too."""
    if not isinstance(settings, dict):
        return str(settings)
    return ", ".join(f"{name} {_plain(value)}" for name, value in settings.items())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _settings(configuration: dict[str, Any]) -> Any:
    return configuration.get("training", "nothing was trained")


if __name__ == "__main__":
    run_program(main)
