"""What the source of a text of the teaching corpus states beside it, and texts that begin with that."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from models.ner.sentences import stated_before
from models.types import DRUG, INDICATION, Stated
from training.common.corpora import CorpusError
from training.teaching.batches import FOLDER, ID
from training.teaching.markup import Mark, MarkedText

#: A row for each text: file and line as in its id, the medicine that it is about, and what that is for.
STATED = FOLDER / "stated.tsv"
_COLUMNS = 3


@cache
def stated_texts(path: Path = STATED) -> dict[str, Stated]:
    """Id of a text to what its source states. Raises CorpusError, with the line, for another form."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("\t")
        if len(cells) != _COLUMNS or not all(cell.strip() for cell in cells):
            raise CorpusError(f"{path}, line {number}: not a text, its medicine and its condition")
        text, medicine, condition = cells
        found[f"{ID}{text}"] = Stated((medicine,), condition)
    return found


def with_stated(marked: MarkedText, stated: Stated) -> MarkedText:
    """The text behind the sentence that a tagger reads before it, with a mark on the medicines and on what
    they are for there; a medicine that the text names too has its number.
    """
    before = stated_before(stated)
    numbers = {marked.text[m.start : m.end].lower(): m.numbers for m in marked.marks if m.label == DRUG}
    marks, due = [], set[int]()
    for medicine in stated.drugs:
        start = before.index(medicine)
        marks.append(Mark(start, start + len(medicine), DRUG, numbers.get(medicine.lower(), ())))
        due |= set(marks[-1].numbers)
    if stated.indication:
        end = len(before) - len(". ")
        marks.append(Mark(end - len(stated.indication), end, INDICATION, tuple(sorted(due))))
    moved = [replace(m, start=m.start + len(before), end=m.end + len(before)) for m in marked.marks]
    return MarkedText(before + marked.text, (*marks, *moved))
