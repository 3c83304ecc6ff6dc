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
from models.acronym.frequencies import CLINICAL, SenseFrequencies
from models.acronym.model import AcronymModel
from models.acronym.surface_features import undotted
from models.releases.store import bundled, open_release
from models.scores import Measure, bootstrap
from training.common.long_forms import key
from training.common.program_help import run_program
from training.evaluation.acronym import Row, casi_parts, majority

#: Sentences written for this measurement. Those of the second table have acronyms as frequent as in notes and
#: case reports. Whoever wrote them did not know the dictionary, and nothing was chosen on them.
NOTES = Path(__file__).with_name("notes.tsv")
RECORDS = Path(__file__).with_name("records.tsv")
#: Those of the third table often have another meaning than the most frequent one; of the fourth, half.
AMBIGUOUS = Path(__file__).with_name("ambiguous.tsv")
VARIED = Path(__file__).with_name("varied.tsv")
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


def labelled_verdicts(model: Any, asked: Sequence[tuple[str, str, str]]) -> list[str]:
    """The verdict on each short form of a sentence, with its right long forms between bars: what is written
    for it, or for its plural, is one of these.
    """
    texts = list(dict.fromkeys(text for text, _, _ in asked))
    found = dict(zip(texts, model.predict(texts), strict=True))
    written = [
        [e.long_form for e in found[text] if e.short_form in (short, f"{short}s") and not e.candidates]
        for text, short, _ in asked
    ]
    return [_labelled_verdict(own, row[2]) for own, row in zip(written, asked, strict=True)]


def _labelled_verdict(written: Sequence[str], right: str) -> str:
    keys = {key(form) for form in right.split("|")}
    return NOTHING if not written else RIGHT if any(key(form) in keys for form in written) else WRONG


def usual_verdicts(model: AcronymModel, asked: Sequence[tuple[str, str, str]]) -> list[str]:
    """The verdicts where each short form gets the dictionary's long form that is estimated to be the most
    frequent, the first of equal ones.
    """
    estimated = SenseFrequencies.load(CLINICAL)
    found = []
    for _, short_form, right in asked:
        forms = model.dictionary.get(short_form, ())
        shares = estimated.shares(short_form, forms)
        found.append(_labelled_verdict([forms[shares.index(max(shares))]] if forms else [], right))
    return found


def _shares(found: Sequence[str], what: str) -> dict[str, Any]:
    counts = Counter(found)
    interval = bootstrap(np.array([[v == RIGHT, 1.0] for v in found]), [ACCURACY])["accuracy"]
    return {
        what: round(counts[RIGHT] / len(found), 4),
        f"{what}, 95 % interval": f"{interval.low:.4f} to {interval.high:.4f}",
        f"{what}, wrong": round(counts[WRONG] / len(found), 4),
        f"{what}, nothing written": round(counts[NOTHING] / len(found), 4),
    }


def main(
    data: Annotated[Path, typer.Option(help="folder with acronyms/")],
    release: Annotated[list[Path] | None, typer.Option(help="repeatable; by default the bundled one")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    training, rows = casi_parts(data / "acronyms")
    commonest = majority(training)
    baseline = [key(commonest.get(undotted(r.short_form), "")) == key(r.gold) for r in rows]
    tables = {"records": RECORDS, "ambiguous": AMBIGUOUS, "varied": VARIED}
    written = {name: sentences_of(path) for name, path in tables.items()}
    figures: dict[str, Any] = {}
    for path in release or [bundled("acronym")]:
        opened = open_release(path)
        model = AcronymModel.load(opened)
        expanded, right = read_sentences(model, NOTES)
        figures[opened.version] = {
            **_shares(verdicts(model, rows), "CASI"),
            "sentences, expanded": expanded,
            "sentences, right": right,
        }
        for name, asked in written.items():
            figures[opened.version] |= _shares(labelled_verdicts(model, asked), name)
            usual = usual_verdicts(model, asked)
            figures[opened.version] |= _shares(usual, f"{name}, the most frequent in the dictionary")
    about = {
        "what": "held-out rows of CASI, and acronyms in written sentences, as records: share with the right "
        "long form written",
        "rows_read": len(rows),
        "sentences": len(sentences_of(NOTES)),
        **{f"acronyms in {name}": len(asked) for name, asked in written.items()},
        "baseline": round(sum(baseline) / len(rows), 4),
        "baseline_definition": "always the acronym's commonest sense in the training rows",
    }
    print_and_write(about | provenance("acronym.as_used") | {"rows": figures}, result)


if __name__ == "__main__":
    run_program(main)
