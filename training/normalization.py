"""Makes a zero-shot normalization release: a terminology and its vectors from a plain sentence encoder.

Nothing is trained. The NIL threshold is the one with the most right decisions on half of PsyTAR's mentions
(split by drug); without that data it keeps its default. The other half is scored.
"""

from __future__ import annotations

import csv
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
from models.index import CosineIndex
from models.normalization import NormalizationModel
from models.release import Score, TrainingData
from models.terminology import Term
from models.types import Query
from training.publish import print_scores, publish_release
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
DATA = "PsyTAR, mentions with a mapped term"


def query(gold: GoldCoding) -> Query:
    """The mention alone; its place in the sentence does not matter to a zero-shot model."""
    return Query(gold.mention, 0, len(gold.mention), gold.mention)


def hits(
    model: NormalizationModel, golds: Sequence[GoldCoding], term_to_pts: dict[str, set[str]], k: int
) -> list[bool]:
    """Whether one of the k best preferred terms is a gold term's preferred term."""
    codings = model.predict([query(g) for g in golds])
    return [
        bool(
            {c.pt for c in coding.candidates[:k]}
            & {pt for t in gold.terms for pt in term_to_pts.get(t.lower(), ())}
        )
        for coding, gold in zip(codings, golds, strict=True)
    ]


def pts_by_term(terms: Sequence[Term]) -> dict[str, set[str]]:
    """Lowest-level term, lower case, to its preferred terms."""
    found: dict[str, set[str]] = {}
    for term in terms:
        found.setdefault(term.llt.lower(), set()).add(term.pt)
    return found


def best_threshold(
    model: NormalizationModel, golds: Sequence[GoldCoding], terms: dict[str, set[str]]
) -> float:
    """Most right decisions: coded to a gold term that the terminology has, or NIL for one that it lacks."""
    codings = model.predict([query(g) for g in golds])
    rows = []
    for coding, gold in zip(codings, golds, strict=True):
        right = {pt for t in gold.terms for pt in terms.get(t.lower(), ())}
        rows.append((coding.candidates[0].score, coding.candidates[0].pt in right, not right))
    grid = [x / 100 for x in range(20, 91)]
    return max(grid, key=lambda t: sum(hit if score >= t else nil for score, hit, nil in rows))


def scores(
    model: NormalizationModel, golds: Sequence[GoldCoding], sider: Sequence[Term] | None
) -> list[Score]:
    """acc@k with gold mentions, beside exact look-up of the mention among the lowest-level terms."""
    own = "this release's terminology, gold terms that it knows by name"
    rows = _accuracies(
        model, golds, model.terms, own, f"{DATA}, the half of the drugs without influence on NIL"
    )
    if sider is not None:
        rows.append(_by_name(model.encoder, golds, sider))
        other = NormalizationModel(model.encoder, sider, model.encoder.embed([t.llt for t in sider]), 10, 0.0)
        rows += _accuracies(other, golds, sider, "SIDER 4.1 names (licensed, not shipped), every gold term")
    return rows


def _by_name(encoder: Encoder, golds: Sequence[GoldCoding], terms: Sequence[Term]) -> Score:
    """The figure by which this data is known: the best term or its preferred term is literally one of the
    gold names.
    """
    index = CosineIndex(encoder.embed([t.llt for t in terms]).numpy())
    _, best = index.search(encoder.embed([g.mention for g in golds]).numpy(), 1)
    right = [
        bool({terms[row].llt, terms[row].pt} & set(g.terms))
        for g, (row,) in zip(golds, best.tolist(), strict=True)
    ]
    literal = [g.mention.capitalize() in g.terms for g in golds]
    return Score(
        name="acc@1_by_name",
        value=round(sum(right) / len(golds), 4),
        definition="share of gold mentions whose best lowest-level term, or its preferred term, is literally "
        "a gold name; zero-shot, the mention alone, against SIDER 4.1 names (licensed, not shipped)",
        data=DATA,
        records=len(golds),
        baseline=round(sum(literal) / len(golds), 4),
        baseline_definition="the mention is itself a gold name, case ignored",
    )


def _accuracies(
    model: NormalizationModel,
    golds: Sequence[GoldCoding],
    terms: Sequence[Term],
    against: str,
    data: str = DATA,
) -> list[Score]:
    by_term = pts_by_term(terms)
    known = [g for g in golds if any(t.lower() in by_term for t in g.terms)]
    exact = [
        bool(
            by_term.get(g.mention.lower(), set()) & {pt for t in g.terms for pt in by_term.get(t.lower(), ())}
        )
        for g in known
    ]
    rows = []
    for k in (1, 5):
        found = hits(model, known, by_term, k)
        rows.append(
            Score(
                name=f"acc@{k}",
                value=round(sum(found) / len(found), 4),
                definition=f"share of gold mentions with a gold preferred term among the {k} best, NIL "
                f"ignored; zero-shot, the mention alone, against {against}",
                data=data,
                records=len(known),
                baseline=round(sum(exact) / len(exact), 4),
                baseline_definition="the mention is itself a lowest-level term (exact, case ignored)",
            )
        )
    return rows


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
) -> None:
    table = terminology.load(terms)
    encoder = Encoder.load(base, max_pieces=64)
    vectors = encoder.embed([t.llt for t in table])
    model = NormalizationModel(encoder, table, vectors, k, 0.0)
    golds = list(read_psytar_codes(data / "psytar/normalization.csv")) if data else []
    drugs = sorted({g.drug for g in golds})
    calibration = [g for g in golds if g.drug in drugs[::2]]
    held_out = [g for g in golds if g.drug not in drugs[::2]]
    if nil_below is None:
        nil_below = best_threshold(model, calibration, pts_by_term(table)) if golds else DEFAULT_NIL
    sider_file = data / "terminology/sider_llt_pt.csv" if data else None
    sider = read_sider(sider_file) if sider_file and sider_file.exists() else None

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
        # With the shipped vectors on the half that the threshold has not seen, and on everything against
        # SIDER's names, which is the figure that is known from elsewhere.
        scores=lambda m: (scores(m, held_out, None) + scores(m, golds, sider)[2:]) if golds else [],
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)
    console.print(f"{len(table)} terms, NIL below {nil_below}")


def read_sider(path: Path) -> list[Term]:
    """Lowest-level and preferred names of side effects (SIDER 4.1): for evaluation only, never shipped."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Term(row["llt"], row["pt"], "-") for row in csv.DictReader(file)]


if __name__ == "__main__":
    typer.run(main)
