"""Makes releases by their recipes.

`python -m training TASK` makes a release from its base by the bundled recipe, training/recipes/TASK.toml.
`--recipe` names a file with what differs, such as training/recipes/papers/TASK.toml, and `--set KEY=VALUE`
changes a setting in every stage. `python -m training refresh RELEASE` makes a release again with today's
tables; nothing is trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from models.releases.manifest import Release
from training.common.program import RELEASES, Device, Output, Run, device_of
from training.common.program_help import help_text, reported
from training.evaluation.finish import OFFERED, finish
from training.recipes.recipe import RecipeError, changes_of, read_recipe, task_names
from training.recipes.stages import Place, run_recipe, task_of

app = typer.Typer(help=help_text(__doc__ or ""), no_args_is_help=True, add_completion=False)
Data = Annotated[Path, typer.Option(exists=True, help="folder of the corpora")]


def _add(name: str) -> None:
    @app.command(name, help=f"Make a release of {name}: training/recipes/{name}.toml.")
    def make(
        data: Data,
        recipe: Annotated[Path | None, typer.Option(exists=True, help="file with what differs")] = None,
        changes: Annotated[
            list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a setting of every stage")
        ] = None,
        reviews: Annotated[
            Path | None, typer.Option(exists=True, help="reviews of `pvstream reviews export --examples`")
        ] = None,
        output: Output = RELEASES,
        run: Run = None,
        device: Device = "auto",
        offered: OFFERED = False,
    ) -> None:
        task = task_of(name)
        read = read_recipe(name, task.settings, recipe, changes_of(changes or []))
        place = Place(data, output, device_of(device), reviews)
        finish(run_recipe(task, read, place, run), data, offered)


for _name in task_names():
    _add(_name)


@app.command()
def refresh(
    release: Annotated[Path, typer.Argument(exists=True, help="folder of a release")],
    data: Annotated[
        Path | None, typer.Option(exists=True, help="folder of the corpora; needed without --terms")
    ] = None,
    terms: Annotated[
        Path | None,
        typer.Option(exists=True, help="of normalization: another terminology, a table or MedDRA's folder"),
    ] = None,
    output: Output = RELEASES,
    device: Device = "auto",
    offered: OFFERED = False,
) -> None:
    """Make a release again with today's tables; nothing is trained."""
    from models.releases.store import open_release  # noqa: PLC0415  a command is named sooner

    old = open_release(release)
    if terms is not None:
        finish(_over(old, terms, data, output, device_of(device)), data, offered)
        return
    again = task_of(old.manifest.task).refresh
    if data is None and again is not None:
        raise RecipeError("without --terms --data is needed")
    new = again(old, Place(data, output, device_of(device))) if data and again else old
    if new is old:
        typer.echo(f"{old.version} has no table, so today's tables change nothing: it stays as it is")
    finish(new, data, offered)


def _over(old: Release, terms: Path, data: Path | None, output: Path, device: torch.device) -> Release:
    """The release over another terminology; scores and the rule for NIL need data."""
    from models import terminology  # noqa: PLC0415
    from training.normalization.parts import refreshed  # noqa: PLC0415  a command is named sooner

    if old.manifest.task != "normalization":
        raise RecipeError(f"--terms: a release of {old.manifest.task} has no terminology")
    return refreshed(old, terminology.load(terms), output, data, device)


if __name__ == "__main__":
    reported(app)
