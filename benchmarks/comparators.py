"""How did releases score that were made to be compared with, and are not shipped?

    python -m benchmarks.comparators --score macro_f1 --json FILE triplet=runs/acronym/VERSION ours=...

Reads what each manifest says of the model as it was served; the settings of its training stand beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import described
from models.releases.manifest import Release
from models.releases.store import open_release


def rows_of(release: Release, wanted: list[str]) -> dict[str, float]:
    """Scores by name and data; all where none is named."""
    scores = release.manifest.scores
    return {f"{s.name}, {s.data}": s.value for s in scores if not wanted or s.name in wanted}


def main(
    releases: Annotated[list[str], typer.Argument(help="NAME=FOLDER of each release, of one task")],
    result: Annotated[Path, typer.Option("--json", help="where the figures are written")],
    score: Annotated[list[str] | None, typer.Option(help="only this one, or these")] = None,
) -> None:
    named = {}
    for release in releases:
        name, found, folder = release.partition("=")
        if not found or name in named:
            raise typer.BadParameter(f"{release!r} is not NAME=FOLDER with a name of its own")
        named[name] = open_release(Path(folder))
    if len({r.task for r in named.values()}) > 1:
        raise typer.BadParameter("releases of different tasks have no scores in common")
    rows = {name: rows_of(r, score or []) for name, r in named.items()}
    first = next(iter(named.values())).manifest
    if any(row.keys() != rows[next(iter(rows))].keys() for row in rows.values()):
        raise typer.BadParameter("the releases are not scored on the same data")
    definitions = {s.name: s.definition for s in first.scores if not score or s.name in score}
    settings = {name: _settings(r.manifest.configuration) for name, r in named.items()}
    versions = {name: r.version for name, r in named.items()}
    content: dict[str, Any] = {"task": first.task, "rows": rows}
    content |= {"definitions": definitions, "settings": settings, "releases": versions}
    content |= described("comparators")
    # A folder means nothing elsewhere; the version names the release.
    content["command"] = "python -m benchmarks.comparators --json FILE " + " ".join(
        f"{n}=FOLDER" for n in named
    )
    result.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for name, row in rows.items():
        typer.echo(f"{name}: {row}")


def _settings(configuration: dict[str, Any]) -> Any:
    return configuration.get("training", "nothing was trained")


if __name__ == "__main__":
    typer.run(main)
