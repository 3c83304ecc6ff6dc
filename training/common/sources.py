"""Public corpora, as the manifests of releases name them."""

from __future__ import annotations

from models.releases.manifest import TrainingData

CITATION = "none stated, citation asked"
ADE_NEGATIVES = TrainingData(
    name="ADE corpus v2, sentences without an adverse event, of four fifths of the abstracts",
    licence=CITATION,
)
PSYTAR = TrainingData(name="PsyTAR (Zolnoori et al. 2019), training part", licence="CC BY 4.0")
RQE = TrainingData(name="RQE (Ben Abacha and Demner-Fushman 2016), training part", licence="CC BY 4.0")


def ade_part(split: str) -> str:
    """`fold 1` of `ade_fold_1`."""
    return split.removeprefix("ade_").replace("_", " ")


def ade_corpus(split: str) -> TrainingData:
    """The training part of a split of the ADE corpus."""
    name = f"ADE corpus v2 (Gurulingappa et al. 2012), {ade_part(split)} training part"
    return TrainingData(name=name, licence=CITATION)
