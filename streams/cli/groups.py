"""The groups of commands in `pvstream --help`, and the example at the end of a command's help."""

from __future__ import annotations

RUN, DATA, MODELS = "Run the pipeline", "Data in and out", "Models"
OPERATE, RESULTS = "Operate", "Results"


def example(arguments: str) -> str:
    """The line at the end of a command's help."""
    return f"Example: pvstream {arguments}"
