"""Makes a zero-shot acronym release: a dictionary of clinical short forms over a plain sentence encoder.
Nothing is trained.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from models.acronym import AcronymModel, load_dictionary
from models.encoder import base_digest
from models.release import Score
from models.types import Span
from training.publish import print_scores, publish_release

console = Console()
DICTIONARY = Path(__file__).parent.parent / "models/acronyms/clinical.tsv"
CANARY = [
    "Toxic epidermal necrolysis (TEN) began on day 3; TEN resolved after MTX was stopped.",
    "A patient with MS and optic neuritis received interferon beta.",
    "The murmur of MS was louder after the mitral valve was examined.",
    "No acronym stands here.",
]


class Row(NamedTuple):
    """An acronym in a text, the long forms to choose from, and the right one."""

    text: str
    span: Span
    senses: tuple[str, ...]
    gold: str


def read_casi(path: Path) -> list[Row]:
    """CASI rows whose text holds the acronym; the senses of an acronym are those that its rows have."""
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    senses: dict[str, set[str]] = {}
    for row in found:
        senses.setdefault(row["acronym_"], set()).add(row["expansion"])
    rows = []
    for row in found:
        at = _whole_word(row["text"], row["acronym_"])
        if at is not None:
            rows.append(Row(row["text"], at, tuple(sorted(senses[row["acronym_"]])), row["expansion"]))
    return rows


def read_sdu(rows: Path, dictionary: Path) -> list[Row]:
    """SDU@AAAI-22 acronym disambiguation."""
    senses = json.loads(dictionary.read_text(encoding="utf-8"))
    out = []
    for row in json.loads(rows.read_text(encoding="utf-8")):
        at = _whole_word(row["sentence"], row["acronym"])
        if at is not None:
            out.append(Row(row["sentence"], at, tuple(senses[row["acronym"]]), row["label"]))
    return out


def _whole_word(text: str, short_form: str) -> Span | None:
    at = text.find(short_form)
    while at >= 0:
        end = at + len(short_form)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return Span(at, end)
        at = text.find(short_form, end)
    return None


def score(model: AcronymModel, rows: Sequence[Row], data: str) -> Score:
    """Accuracy of the nearest sense, beside the sense that is commonest in these very rows (an upper bound
    for majority).
    """
    right = 0
    for start in range(0, len(rows), 64):
        part = rows[start : start + 64]
        for row, cosines in zip(
            part, model.choose_many([(r.text, r.span, r.senses) for r in part]), strict=True
        ):
            right += row.senses[max(range(len(cosines)), key=cosines.__getitem__)] == row.gold
    by_acronym: dict[str, Counter[str]] = {}
    for row in rows:
        by_acronym.setdefault(row.text[row.span.start : row.span.end], Counter())[row.gold] += 1
    majority = sum(counts.most_common(1)[0][1] for counts in by_acronym.values())
    return Score(
        name="accuracy",
        value=round(right / len(rows), 4),
        definition="share of rows whose gold sense has the highest cosine of all in the dictionary; "
        "zero-shot",
        data=data,
        records=len(rows),
        baseline=round(majority / len(rows), 4),
        baseline_definition="always the acronym's commonest sense in these same rows",
    )


def scores(model: AcronymModel, data: Path, limit: int) -> list[Score]:
    folder = data / "acronyms"
    sdu = read_sdu(folder / "sdu22_scientific_dev.json", folder / "sdu22_scientific_dictionary.json")
    casi = read_casi(folder / "casi_dev.csv")
    if limit:
        sdu, casi = sdu[:limit], casi[:limit]
    return [
        score(model, casi, "CASI, dev rows whose text holds the acronym as a word"),
        score(model, sdu, "SDU@AAAI-22 scientific English dev, rows whose text holds the acronym as a word"),
    ]


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with acronyms/; without it nothing is scored")
    ] = None,
    dictionary: Annotated[Path, typer.Option(help="a .tsv with short_form, long_form")] = DICTIONARY,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    limit: Annotated[int, typer.Option(help="rows scored at most; 0: all")] = 0,
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
        scores=lambda model: scores(model, data, limit) if data else [],
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)


if __name__ == "__main__":
    typer.run(main)
