"""What share of the names of adverse events elsewhere does the bundled terminology have?

Names count as the same if they are written with the same letters, case ignored. The terminology was written
without these lists; SIDER's names may not be shipped, and are for evaluation only.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models import terminology
from models.types import ADE
from training.common.codings.split import SPLIT_TERMS
from training.common.corpora import read_ade
from training.common.program_help import run_program

#: Rows of the bundled terminology before the last additions.
EARLIER = 15_060


def column(path: Path, name: str) -> list[str]:
    """A column of a table in lower case, an OAE label without its suffix AE."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row[name].strip().lower().removesuffix(" ae") for row in csv.DictReader(file)]


def share(names: Iterable[str], known: Set[str]) -> float:
    """The share of the names that are known; each one counts as often as it occurs."""
    found = [name in known for name in names]
    return round(sum(found) / len(found), 4)


def main(
    data: Annotated[Path, typer.Option(help="folder with terminology/ and ade/")],
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    terms = terminology.load()
    folder = data / "terminology"
    lists: dict[str, Iterable[str]] = {
        "SIDER 4.1, lowest-level names": set(column(folder / "sider_llt_pt.csv", "llt")),
        "SIDER 4.1, preferred names": set(column(folder / "sider_llt_pt.csv", "pt")),
        "CTCAE 5": set(column(folder / "ctcae5.csv", "CTCAE.Term")),
        "OAE": set(column(folder / "oae_terms.csv", "label")),
        "ADE corpus, effects as they are written": [
            text.text[m.start : m.end].lower()
            for text in read_ade(data / "ade").values()
            for m in text.mentions
            if m.label == ADE
        ],
    }
    rows: dict[str, Any] = {}
    for name, names in lists.items():
        own = list(names)
        rows[name] = {"names": len(own)} | {
            f"of the first {n} rows": share(own, {t.llt.lower() for t in terms[:n]})
            for n in (SPLIT_TERMS, EARLIER, len(terms))
        }
    what = "share of the names that the bundled terminology has, case ignored, by its number of rows"
    print_and_write({"what": what, "rows": rows} | provenance("normalization.names"), result)


if __name__ == "__main__":
    run_program(main)
