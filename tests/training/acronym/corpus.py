"""A small corpus of acronyms in the file formats of the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from models.types import Span
from training.acronym.settings import Settings
from training.acronym.train import AcronymTrainee
from training.evaluation.acronym import Row

DICTIONARY = {
    "PD": ["pain drug", "plain dose", "pilot day"],
    "TP": ["the pain", "top pick"],
    "DD": ["drug day", "dull dose"],
    "PT": ["pain the", "pick test"],
    "ONE": ["only this"],
}


def sdu_rows() -> list[dict[str, str]]:
    rows = []
    for short, forms in DICTIONARY.items():
        for i, form in enumerate(forms):
            rows += [
                {"sentence": f"case {n}: {short} near {form[0]}{i}", "acronym": short, "label": form}
                for n in range(3)
            ]
    return rows


def rows() -> list[Row]:
    """The rows of `sdu_rows` with several long forms."""
    made = []
    for row in sdu_rows():
        text, short, forms = row["sentence"], row["acronym"], tuple(DICTIONARY[row["acronym"]])
        at = text.index(short)
        made += [Row(text, Span(at, at + len(short)), forms, row["label"])] if len(forms) > 1 else []
    return made


def trainee_of(base: str, **changes: Any) -> AcronymTrainee:
    """Of a run on the small corpus that validates on the rows of PT."""
    values: dict[str, Any] = {"objective": "m", "pieces": 64, "precision": "float32"}
    training, validation = ([r for r in rows() if (r.short_form == "PT") == held] for held in (False, True))
    return AcronymTrainee(Settings(base=base, **values | changes), training, validation)


def write_dictionary(path: Path) -> Path:
    """Writes the dictionary in the form of a release's."""
    lines = [f"{short}\t{form}" for short, forms in DICTIONARY.items() for form in forms]
    path.write_text("\n".join(["short_form\tlong_form", *lines]) + "\n", encoding="utf-8")
    return path


def write_corpus(data: Path) -> Path:
    """Writes every file that a run reads to the empty folder `data`."""
    (data / "acronyms").mkdir()
    (data / "ade").mkdir()
    for name in ("sdu22_scientific", "sdu22_legal"):
        for part in ("train", "dev"):
            (data / f"acronyms/{name}_{part}.json").write_text(json.dumps(sdu_rows()), encoding="utf-8")
        (data / f"acronyms/{name}_dictionary.json").write_text(json.dumps(DICTIONARY), encoding="utf-8")
    lines = ["acronym_,expansion,text"]
    for n in range(10):
        lines += [f"PD,pain drug,a pain with PD {n}", f"PD,UNSURED SENSE,what is PD {n}"]
        lines += [f"TP,thepain,more TP came {n}"]
        lines += [f"DD,drug day,a day with DD {n}", f"DD,dull dose,the dose of DD {n}"]
    (data / "acronyms/casi_dev.csv").write_text("\n".join(lines), encoding="utf-8")
    (data / "ade/sentences.json").write_text("[]", encoding="utf-8")
    (data / "ade/DRUG-AE.rel").write_text("", encoding="utf-8")
    texts = [
        f"{n} NEG {text}."
        for n in range(20)
        for text in (
            f"A pain drug (PD) helped {n}",
            f"Day {n} had a plain dose",
            f"Dull dose (DD), {n} times",
        )
    ]
    (data / "ade/negatives.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return data
