"""Makes a zero-shot normalization release: a terminology and its vectors from a plain sentence encoder.

Nothing is trained. The NIL threshold is the one with the most right decisions on half of PsyTAR's mentions
(split by drug); without that data it keeps its default. The other half is scored.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from safetensors.torch import save_file

from models import terminology
from models.encoder import Encoder, base_digest
from models.normalization import NormalizationModel
from models.release import Score, TrainingData
from models.types import Query
from training.evaluate import manifest_scores
from training.evaluations.normalization import SIDER, halves, pts_by_term, query, right_terms
from training.publish import OFFERED, offer, print_scores, publish_release
from training.readers import GoldCoding, read_psytar_codes

console = Console()
CANARY = [
    Query(text=t, start=0, end=len(t), surface=t)
    for t in (
        "couldn't sleep a wink",
        "head is killing me",
        "raised liver enzymes",
        "Stevens-Johnson syndrome",
        "purple bicycle",
    )
]
DEFAULT_NIL = 0.45
CALIBRATION = TrainingData(
    name="PsyTAR (Zolnoori et al. 2019), mentions of half of the drugs, for the NIL threshold only",
    licence="CC BY 4.0",
)


def best_threshold(
    model: NormalizationModel, golds: Sequence[GoldCoding], terms: dict[str, set[str]]
) -> float:
    """Most right decisions: coded to a gold term that the terminology has, or NIL for one that it lacks."""
    codings = model.predict([query(g) for g in golds])
    rows = []
    for coding, gold in zip(codings, golds, strict=True):
        right = right_terms(gold, terms)
        rows.append((coding.candidates[0].score, coding.candidates[0].pt in right, not right))
    grid = [x / 100 for x in range(20, 91)]
    return max(grid, key=lambda t: sum(hit if score >= t else nil for score, hit, nil in rows))


def scores(model: NormalizationModel, data: Path) -> list[Score]:
    """With the shipped vectors on the half that the threshold has not seen, and where SIDER's names are there
    on everything against those, which is the figure that is known from elsewhere.
    """
    splits = ("heldout", "sider") if (data / SIDER).exists() else ("heldout",)
    return manifest_scores("normalization", model, data, splits)


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with psytar/ and terminology/; without it nothing is scored")
    ] = None,
    terms: Annotated[
        Path, typer.Option(help="a .tsv with llt, pt, soc, or a folder with MedDRA's .asc files")
    ] = terminology.BUNDLED,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    k: Annotated[int, typer.Option(help="candidates kept with each event")] = 5,
    nil_below: Annotated[float | None, typer.Option(help="NIL threshold; without it, by --data")] = None,
    offered: OFFERED = False,
) -> None:
    table = terminology.load(terms)
    encoder = Encoder.load(base, max_pieces=64)
    vectors = encoder.embed([t.llt for t in table])
    model = NormalizationModel(encoder, table, vectors, k, 0.0)
    golds = list(read_psytar_codes(data / "psytar/normalization.csv")) if data else []
    if nil_below is None:
        nil_below = best_threshold(model, halves(golds)[0], pts_by_term(table)) if golds else DEFAULT_NIL

    folder = Path(tempfile.mkdtemp(prefix="normalization-"))
    rows = "".join(f"{t.llt}\t{t.pt}\t{t.soc or '-'}\n" for t in table)
    (folder / "terminology.tsv").write_text("llt\tpt\tsoc\n" + rows, encoding="utf-8")
    save_file(NormalizationModel.pack(vectors), folder / "vectors.safetensors")
    release = publish_release(
        folder,
        task="normalization",
        kind="zero-shot sentence encoder over a terminology",
        base=base,
        base_sha256=base_digest(base),
        configuration={"max_pieces": encoder.max_pieces, "k": k, "nil_below": nil_below, "terms": len(table)},
        training_data=[CALIBRATION] if golds else [],
        canary=CANARY,
        scores=lambda m: scores(m, data) if data else [],
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)
    if offered:
        offer(release, data)
    console.print(f"{len(table)} terms, NIL below {nil_below}")


if __name__ == "__main__":
    typer.run(main)
