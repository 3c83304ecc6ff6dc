"""A small corpus in the forms in which the real ones are published, and an encoder that nothing changes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from models.encoder.model import Encoder


@pytest.fixture(scope="session")
def small(tiny_bert: str) -> Encoder:
    """The tiny BERT with windows of 30 pieces."""
    from models.encoder.model import Encoder  # noqa: PLC0415  a model library

    return Encoder.load(tiny_bert, max_pieces=32)


def public_corpora(name: str) -> Path:
    """The folder of the public corpora with the file `name`, without which the test is skipped. It is
    sought in PV_TEST_DATA, in `data`, and in `shared/data` next to the checkout.
    """
    root = Path(__file__).parents[1]
    named = os.environ.get("PV_TEST_DATA")
    folders = [Path(named)] if named else [root / "data", root.parent / "shared/data"]
    found = next((folder for folder in folders if (folder / name).is_file()), None)
    return found or pytest.skip(f"no {name} in {' or '.join(map(str, folders))}")


DRUGS = ("Zoloft", "Aspirin", "Clozapine", "Ibuprofen")
EFFECTS = (["rash"], ["horrid", "nausea"], ["insomnia"], ["liver", "pain"])


def ade_row(number: int, drug: str, effect: Sequence[str]) -> dict[str, Any]:
    """A sentence in the form of the ADE corpus as SpERT ships it: token positions, effect before drug."""
    tokens = [drug, "caused", *effect, "on", "day", str(number), "."]
    return {
        "orig_id": number,
        "tokens": tokens,
        "entities": [
            {"type": "Adverse-Effect", "start": 2, "end": 2 + len(effect)},
            {"type": "Drug", "start": 0, "end": 1},
        ],
        "relations": [{"type": "Adverse-Effect", "head": 0, "tail": 1}],
    }


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ade/ and psytar/, twenty sentences of the one and twelve of the other."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "ade").mkdir()
    rows = [ade_row(i, DRUGS[i % 4], EFFECTS[i // 4 % 4]) for i in range(20)]
    (folder / "ade/sentences.json").write_text(json.dumps(rows), encoding="utf-8")
    ids = [str(row["orig_id"]) for row in rows]
    folds = {"split_1": {"train set": ids[:16], "test set": ids[16:]}}
    (folder / "ade/folds.json").write_text(json.dumps(folds), encoding="utf-8")
    negatives = [f"{107 + i // 2} NEG {DRUGS[(i + 1) % 4]} was given on day {i} ." for i in range(10)]
    (folder / "ade/negatives.txt").write_text("\n".join(negatives) + "\n", encoding="utf-8")
    # Two sentences of the corpus, and two negatives, to an abstract.
    lines = [
        f"{100 + i // 2}|{' '.join(row['tokens'])}|an effect|0|1|a drug|0|1" for i, row in enumerate(rows)
    ]
    (folder / "ade/DRUG-AE.rel").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "psytar").mkdir()
    for name, numbers in (("train", range(12)), ("test", range(12, 16)), ("dev", range(16, 18))):
        sentences = [
            f"Since\tO\nday\tO\n{i}\tO\nof\tO\nzoloft\tO\nno\tB-ADR\nsleep\tI-ADR\n.\tO\n" for i in numbers
        ]
        (folder / f"psytar/ner_{name}.conll").write_text("\n".join(sentences), encoding="utf-8")
    return folder


CODES = """drug_id,mention,sentence,sider_meddra_terms
a.1,no sleep,No sleep.,Insomnia
b.1,Rash,Rash.,Rash
b.2,throwing up,throwing up.,Vomiting|Unknown term
b.3,odd,odd.,Unknown term
"""
CASI = """acronym_,expansion,text
MS,multiple sclerosis,seen with MS today
MS,morphine,MS was given
MS,morphine,more MS was given
MS,morphine,the MSG was eaten
RA,rheumatoid arthritis,her RA is old
RA,rheumatoid arthritis,RA for years
RA,rheumatoid arthritis,with RA and pain
RA,rheumatoid arthritis,known RA
"""
QUESTIONS = [
    {"split": "test", "question": "I take tea. Is tea fine?", "summary": "Is tea fine?"},
    {"split": "test", "question": "Can it hurt? I fear so.", "summary": "Can it hurt?"},
    {"split": "train", "question": "unused", "summary": "unused"},
]


@pytest.fixture(scope="session")
def data(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few records for every split that is measured here."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("acronyms", "psytar", "questions", "terminology"):
        (folder / name).mkdir()
    (folder / "ade").symlink_to(corpus / "ade")
    (folder / "psytar/ner_train.conll").write_text(
        "no\tB-ADR\nsleep\tI-ADR\n\nsad\tB-SSI\nmood\tI-SSI\n\nmy\tO\nzaps\tB-WD\n", encoding="utf-8"
    )
    (folder / "psytar/ner_test.conll").write_text(
        "no\tB-ADR\nsleep\tI-ADR\nfor\tO\nsad\tB-SSI\nmood\tI-SSI\n\nmy\tO\nzaps\tB-WD\n", encoding="utf-8"
    )
    (folder / "psytar/normalization.csv").write_text(CODES, encoding="utf-8")
    (folder / "acronyms/casi_dev.csv").write_text(CASI, encoding="utf-8")
    row = {"sentence": "a CNN was trained", "acronym": "CNN", "label": "cable news network"}
    (folder / "acronyms/sdu22_legal_dev.json").write_text(json.dumps([row]), encoding="utf-8")
    (folder / "acronyms/sdu22_legal_dictionary.json").write_text(
        json.dumps({"CNN": ["cable news network"]}), encoding="utf-8"
    )
    lines = "\n".join(json.dumps(row) for row in QUESTIONS)
    (folder / "questions/meqsum.jsonl").write_text(lines, encoding="utf-8")
    return folder
