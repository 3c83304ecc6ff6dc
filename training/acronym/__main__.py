"""Trains an m-network (Seneviratne et al. 2022) that scores how well a long form replaces an acronym, builds
prototypes of known long forms, and writes a release: `python -m training.acronym`.

The paper's network is `--objective m` (or triplet) `--no-usage-examples --layers 1 --rank 0`. The default did
better on acronyms, or rows, that are not in training: the sentence is compared with each long form alone,
letters and case are scored too, and the loss is softmax over the long forms. The epoch with the best macro F1
on held-out acronyms is kept.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.encoder.capabilities import Need
from training.acronym.assemble import ZERO_SHOT_PIECES, make, make_zero_shot
from training.acronym.data import MADE_OF
from training.acronym.settings import ReleaseOptions, Settings
from training.common.precision import resolved
from training.common.program import RELEASES, Device, Output, Run, check_base, device_of, program
from training.common.program_help import run_program
from training.evaluation.finish import OFFERED, finish


@program
def main(
    settings: Settings,
    options: ReleaseOptions,
    data: Annotated[
        Path | None, typer.Option(exists=True, help="folder with acronyms/ and ade/; required for training")
    ] = None,
    output: Output = RELEASES,
    run: Run = None,
    device: Device = "auto",
    offered: OFFERED = False,
) -> None:
    place = device_of(device)
    _check(settings, options)
    if options.zero_shot:
        check_base(settings.base, Need(pieces=ZERO_SHOT_PIECES))
        release = make_zero_shot(settings, options, data, output, place)
    elif data is None:
        raise typer.BadParameter("training needs --data; --zero-shot does not")
    else:
        check_base(settings.base, Need(pieces=settings.max_pieces, above=settings.layers or None))
        settings = replace(settings, precision=resolved(settings.precision, place))
        release = make(settings, options, data=data, output=output, run=run, device=place)
    finish(release, data, offered)


def _check(settings: Settings, options: ReleaseOptions) -> None:
    """Raises typer.BadParameter for --without that does not fit."""
    read = () if options.like else (*settings.corpus_names, *settings.validated_names)
    for corpus in options.left_out:
        if corpus not in ("casi", "ade"):
            raise typer.BadParameter(f"--without takes casi and ade, not {corpus!r}")
        if corpus in {MADE_OF.get(name, name) for name in read}:
            raise typer.BadParameter(f"--without {corpus}: it is among the training corpora")


if __name__ == "__main__":
    run_program(main)
