"""The descriptions of programs in their help."""

from __future__ import annotations

from training.common.program_help import help_text


def test_paragraphs_become_lines_and_commands_stay_as_they_are() -> None:
    docstring = "Counts\nwords.\n\n    python -m first\n    python -m second\n\nOne\nmore.\n"
    assert help_text(docstring) == ("Counts words.\n\npython -m first\npython -m second\n\nOne more.")
