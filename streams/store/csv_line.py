"""A line of CSV, and texts in it that are no formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

END = "\r\n"
#: A cell that begins so is a formula to a spreadsheet, by OWASP's page on CSV injection: also after a line
#: break, and with the full-width signs of Chinese and Japanese keyboards.
FORMULA = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")


def csv_line(cells: Iterable[Any]) -> str:
    """The cells as a line that ends in a line feed. A cell with a carriage return is quoted, which Python's
    writer does before 3.13 only where its own lines end in one: programs take it for the end of a line, and
    what stands behind it for a cell, which may be a formula.
    """
    line = StringIO()
    csv.writer(line, lineterminator=END).writerow(cells)
    return line.getvalue().removesuffix(END) + "\n"


def no_formula(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would read a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
