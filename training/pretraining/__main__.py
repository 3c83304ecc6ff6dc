"""Adapts the layers of a base to texts of the domain, before a task is trained: `python -m
training.pretraining` (Gururangan et al. 2020).

Hidden pieces of the public corpora's and the teaching corpus' training texts are predicted (Devlin et al.
2019, section 3.1). No text of a test part or of PsyTAR's development part is read, but those on which
training.ner and training.relation validate are, without their labels. `--texts` adds texts of your own, which
need no labels. The weights are written to a file, which `training.ner --pretrained` begins with. The
embeddings stay as they are, because the releases of a base share them.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from models.encoder.capabilities import Need
from training.common.loop import TrainingLoop
from training.common.precision import resolved
from training.common.pretrained import write_weights
from training.common.program import Device, Run, check_base, checked_folder, device_of, program
from training.common.program_help import run_program
from training.evaluation.relation import SPLITS
from training.pretraining.settings import Settings
from training.pretraining.trainer import MaskedTrainee
from training.unlabelled import read_unlabelled

console = Console()


@program
def main(
    settings: Settings,
    data: Annotated[Path, typer.Option(help="folder with psytar/, ade/ and questions/")],
    output: Annotated[Path, typer.Option(help="file of weights to write")],
    texts: Annotated[Path | None, typer.Option(help="JSON Lines with `text`, trained on as well")] = None,
    run: Run = None,
    device: Device = "auto",
) -> None:
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    if output.is_dir():
        raise typer.BadParameter(f"{output} is a folder; --output names a file")
    checked_folder(output.parent)
    place = device_of(device)
    check_base(settings.base, Need())
    settings = replace(settings, precision=resolved(settings.precision, place))
    found = read_unlabelled(data, settings.split, texts)
    trainee = MaskedTrainee(settings, found.texts, place)
    console.print(f"{len(trainee.data)} texts, {settings.held_out} more for validation")
    TrainingLoop(trainee, asdict(settings) | {"texts": found.sha256}, run).run()
    write_weights(output, trainee.weights_file(), settings.base, settings.split, found.sources)
    console.print(f"weights in {output}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    run_program(main)
