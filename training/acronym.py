"""Makes a zero-shot acronym release: a dictionary of clinical short forms over a plain sentence encoder.
Nothing is trained.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from models.acronym import load_dictionary
from models.encoder import base_digest
from training.evaluate import manifest_scores
from training.publish import OFFERED, offer, print_scores, publish_release

console = Console()
DICTIONARY = Path(__file__).parent.parent / "models/acronyms/clinical.tsv"
SCORED = ("casi", "sdu22_scientific")
CANARY = [
    "Toxic epidermal necrolysis (TEN) began on day 3; TEN resolved after MTX was stopped.",
    "A patient with MS and optic neuritis received interferon beta.",
    "The murmur of MS was louder after the mitral valve was examined.",
    "No acronym stands here.",
]


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with acronyms/; without it nothing is scored")
    ] = None,
    dictionary: Annotated[Path, typer.Option(help="a .tsv with short_form, long_form")] = DICTIONARY,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    limit: Annotated[int, typer.Option(help="rows scored at most; 0: all")] = 0,
    offered: OFFERED = False,
) -> None:
    n = len(load_dictionary(dictionary))
    folder = Path(tempfile.mkdtemp(prefix="acronym-"))
    shutil.copyfile(dictionary, folder / "dictionary.tsv")
    release = publish_release(
        folder,
        task="acronym",
        kind="definitions in the text, else zero-shot sentence distance over a dictionary",
        base=base,
        base_sha256=base_digest(base),
        configuration={"max_pieces": 192, "short_forms": n},
        training_data=[],
        canary=CANARY,
        scores=lambda model: manifest_scores("acronym", model, data, SCORED, limit) if data else [],
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)
    if offered:
        offer(release, data)


if __name__ == "__main__":
    typer.run(main)
