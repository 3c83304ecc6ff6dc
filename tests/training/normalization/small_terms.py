"""Seven terms, a few mentions of patients, and an untrained network over a tiny base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.encoder.model import Encoder
from models.terminology import Term
from training.common.codings.split import Split, pts_by_term
from training.common.corpora import GoldCoding
from training.normalization.settings import Settings
from training.normalization.train import RefiningTrainee

NAMES = {"Insomnia": ("insomnia", "no sleep"), "Nausea": ("nausea", "sick"), "Pain": ("pain", "aches")}
TERMS = [Term(name, pt, "-") for pt, names in (NAMES | {"Rash": ("rash",)}).items() for name in names]
BY_TERM = pts_by_term(TERMS)
LAY = {"awake": "insomnia", "queasy": "nausea", "hurts": "pain", "spots": "rash"}


def gold(mention: str, term: str, drug: str = "a", sentence: str = "") -> GoldCoding:
    return GoldCoding(mention, sentence or f"the drug gave me {mention} all day", drug, (term,))


GOLDS = [
    gold(f"{word} {n}", term, drug)
    for n, drug in enumerate(["a", "a", "b", "c", "d", "e"])
    for word, term in LAY.items()
]


def settings(**changes: Any) -> Settings:
    small: dict[str, Any] = {
        "trained": "context",
        "epochs": 2,
        "lr": 3e-3,
        "batch": 4,
        "window": 40,
        "search": "paper",
    }
    return Settings(**small | {"precision": "float32"} | changes)


def trainee_of(base: str, valid: list[GoldCoding] | None = None, **changes: Any) -> RefiningTrainee:
    isolated = Encoder.load(base, max_pieces=32)
    split = Split(GOLDS, GOLDS[:8] if valid is None else valid, [])
    return RefiningTrainee(settings(base=base, **changes), isolated, TERMS, split)


def write_corpus(folder: Path) -> Path:
    """Writes the mentions below data/, and the terms."""
    (folder / "data/psytar").mkdir(parents=True)
    lines = [f'{g.drug}.1,{g.mention},"{g.sentence}",{g.terms[0]}' for g in GOLDS]
    (folder / "data/psytar/normalization.csv").write_text(
        "\n".join(["drug_id,mention,sentence,sider_meddra_terms", *lines]) + "\n", encoding="utf-8"
    )
    (folder / "data/psytar/ner_train.conll").write_text("pain\tB-ADR\n", encoding="utf-8")
    table = "".join(f"{t.llt}\t{t.pt}\t{t.soc}\n" for t in TERMS)
    (folder / "terms.tsv").write_text("llt\tpt\tsoc\n" + table, encoding="utf-8")
    return folder
