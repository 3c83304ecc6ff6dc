"""Reads a user's file for `evaluate`: texts, each with what is right for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streams.cli.input import HowToRead, notes
from streams.cli.terminal import err, say

if TYPE_CHECKING:
    from streams.input_rows import Refusal
    from streams.records import Report


def marked_rows(
    path: Path, reading: HowToRead, fields: Sequence[str], gold_of: Callable[[object], Any], limit: int
) -> tuple[list[dict[str, Any]], int]:
    """The rows with `text` and those of the fields that they have, and how many rows are refused.

    `fields`: first the one of which `gold_of` makes what is right, or None. Raises UnreadableFile, also where
    no row says what is right.
    """
    from models.files.row import UnreadableFile
    from streams.cli.refusals import Refusals, RejectedFile
    from streams.codec import BadRecord
    from streams.input_reports import report_of
    from streams.input_rows import Refusal, RowReader

    gold, rows, told = fields[0], list[dict[str, Any]](), set[str]()

    def parse(content: dict[str, Any]) -> Report:
        told.update(content)
        report = report_of({name: content[name] for name in ("id", "text", "drug") if name in content})
        if (right := gold_of(content.get(gold))) is None:
            raise BadRecord(f"no {gold}")
        rows.append(_row(report, content, fields) | {gold: right})
        return report

    with reading.open(path) as opened, RejectedFile(reading.rejected) as rejected:
        reader = RowReader(path.name, parse)
        items: Iterator[Report | Refusal] = map(reader.read, islice(opened.rows, limit or None))
        refused = [item for item in items if isinstance(item, Refusal)]
        if told and gold not in told:  # an empty cell of a table has no value
            what = f"{path.name}, read as {opened.described()}"
            raise UnreadableFile(f"{what}, has no {gold} of any text: name them with --column {gold}=NAME")
        refusals = Refusals(path.name, rejected, "line" if opened.has_lines else "row", err)
        for refusal in refused:
            refusals.add(refusal)
        refusals.summarize()
        for note in notes(opened, reader):
            say(note, err)
    if not rows:
        raise UnreadableFile(f"{path.name}: every row is refused")
    return rows, refusals.total


def _row(report: Report, content: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    others = {name: content[name] for name in fields[1:] if isinstance(content.get(name), str)}
    return {"text": report.text, **others, "drug": " / ".join(report.stated_drugs) or None}
