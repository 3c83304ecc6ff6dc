"""Which long forms does a release write into a text of CASI, with nothing but its own dictionary to choose
from?

`evaluate acronym` offers the senses of the corpus too. Here a release reads the held-out texts as it reads a
record. A row is right if what it writes at the acronym is the row's sense, or if it writes nothing where the
sense is no long form (a word in capitals, a stage, a name of a place).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.acronym.rare_senses import read_sentences, sentences_of
from benchmarks.machine import print_and_write, provenance
from models.acronym.model import AcronymModel
from models.acronym.surface_features import undotted
from models.releases.store import bundled, open_release
from models.scores import Measure, bootstrap
from training.common.long_forms import key
from training.common.program_help import run_program
from training.evaluation.acronym import Row, casi_parts, majority

#: Sentences written for this measurement, before the bundled release was made.
NOTES = Path(__file__).with_name("notes.tsv")
BATCH = 64
RIGHT, WRONG, NOTHING = "right", "wrong", "nothing"
ACCURACY = Measure("accuracy", "share of right rows", lambda sums: sums[:, 0] / sums[:, 1])


def verdicts(model: Any, rows: Sequence[Row]) -> list[str]:
    """RIGHT, WRONG, or NOTHING where the acronym is left as it is though it has a long form."""
    found: list[str] = []
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        for row, expansions in zip(batch, model.predict([r.text for r in batch]), strict=True):
            own = [e for e in expansions if e.start < row.span.end and row.span.start < e.end]
            found.append(_verdict(row, [e.long_form for e in own if not e.candidates]))
    return found


def _verdict(row: Row, written: Sequence[str]) -> str:
    stands_for_nothing = row.gold == undotted(row.short_form)
    if not written:
        return RIGHT if stands_for_nothing else NOTHING
    return RIGHT if not stands_for_nothing and key(written[0]) == key(row.gold) else WRONG


def main(
    data: Annotated[Path, typer.Option(help="folder with acronyms/")],
    release: Annotated[list[Path] | None, typer.Option(help="repeatable; by default the bundled one")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    training, rows = casi_parts(data / "acronyms")
    commonest = majority(training)
    baseline = [key(commonest.get(undotted(r.short_form), "")) == key(r.gold) for r in rows]
    figures: dict[str, Any] = {}
    for path in release or [bundled("acronym")]:
        opened = open_release(path)
        model = AcronymModel.load(opened)
        found = verdicts(model, rows)
        counts = Counter(found)
        interval = bootstrap(np.array([[v == RIGHT, 1.0] for v in found]), [ACCURACY])["accuracy"]
        expanded, right = read_sentences(model, NOTES)
        figures[opened.version] = {
            "accuracy": round(counts[RIGHT] / len(rows), 4),
            "95 % interval": f"{interval.low:.4f} to {interval.high:.4f}",
            "wrong": round(counts[WRONG] / len(rows), 4),
            "nothing written": round(counts[NOTHING] / len(rows), 4),
            "sentences, expanded": expanded,
            "sentences, right": right,
        }
    about = {
        "what": "CASI, held-out rows, as a record: share of rows with the right long form written",
        "rows_read": len(rows),
        "sentences": len(sentences_of(NOTES)),
        "baseline": round(sum(baseline) / len(rows), 4),
        "baseline_definition": "always the acronym's commonest sense in the training rows",
    }
    print_and_write(about | provenance("acronym.as_used") | {"rows": figures}, result)


if __name__ == "__main__":
    run_program(main)
