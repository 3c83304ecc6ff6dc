"""A line of CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

END = "\r\n"


def csv_line(cells: Iterable[Any]) -> str:
    """The cells as a line that ends in a line feed. A cell with a carriage return is quoted, which Python's
    writer does before 3.13 only where its own lines end in one: programs take it for the end of a line, and
    what stands behind it for a cell, which may be a formula.
    """
    line = StringIO()
    csv.writer(line, lineterminator=END).writerow(cells)
    return line.getvalue().removesuffix(END) + "\n"
