"""How many gold adverse events do the rules of assertion flag?

Nearly all gold effects of the ADE corpus happened to the patient of the sentence, and nearly all of PsyTAR to
the writer of the post: a flag on them is mostly a false one. The baseline reads clinical sentences as if the
patient had written them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.assertion.rules import assertion
from models.types import ADE
from training.common.corpora import GoldText, read_ade, read_psytar
from training.common.program_help import run_program

FLAGS = ("negated", "hypothetical", "other_experiencer")


def flagged(texts: Sequence[GoldText], *, clinical: bool) -> dict[str, Any]:
    """The number of gold effects, and the share with each flag and with any."""
    found = [
        assertion(t.text, m.start, m.end, clinical=clinical)
        for t in texts
        for m in t.mentions
        if m.label == ADE
    ]
    shares = {flag: sum(getattr(a, flag) for a in found) for flag in FLAGS}
    shares["any flag"] = sum(any(getattr(a, flag) for flag in FLAGS) for a in found)
    return {"effects": len(found)} | {name: round(n / len(found), 4) for name, n in shares.items()}


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/ and psytar/")],
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    sentences = list(read_ade(data / "ade").values())
    posts = [t for part in ("train", "dev", "test") for t in read_psytar(data / f"psytar/ner_{part}.conll")]
    rows = {
        "ADE corpus": flagged(sentences, clinical=True),
        "ADE corpus, read as posts": flagged(sentences, clinical=False),
        "PsyTAR": flagged(posts, clinical=False),
    }
    print_and_write({"rows": rows} | provenance("events.assertion"), result)


if __name__ == "__main__":
    run_program(main)
