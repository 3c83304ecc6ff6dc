"""Makes the extractive summarization release: a plain sentence encoder and a rule for what asks. Nothing is
trained.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from models.encoder import base_digest
from training.evaluate import manifest_scores
from training.publish import OFFERED, offer, print_scores, publish_release

console = Console()
CANARY = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?",
    "tell me about gout",
]


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with questions/; without it nothing is scored")
    ] = None,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    offered: OFFERED = False,
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="summarization-"))
    release = publish_release(
        folder,
        task="summarization",
        kind="extractive: the asking sentence nearest to the whole question",
        base=base,
        base_sha256=base_digest(base),
        configuration={"max_pieces": 256},
        training_data=[],
        canary=CANARY,
        scores=lambda model: manifest_scores("summarization", model, data, ("meqsum_test",)) if data else [],
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)
    if offered:
        offer(release, data)


if __name__ == "__main__":
    typer.run(main)
