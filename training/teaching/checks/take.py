"""Takes a file of new texts into the teaching corpus, without the lines that the check finds fault with."""

from __future__ import annotations

from pathlib import Path

from training.common.corpora import ENCODING
from training.teaching.checks.check import Finding, findings, kind_of, read


def take(file: Path, folder: Path, data: Path | None) -> tuple[int, list[Finding]]:
    """The number of lines that were taken, and what is wrong with the others. A file of the same name in the
    corpus is replaced, at once and only when all is checked. Raises MarkupError for a name of no kind, and
    ValueError or OSError for a file that cannot be read or is in the corpus already.
    """
    target = folder / kind_of(file) / file.name
    if target.exists() and target.samefile(file):
        raise ValueError(f"{file} is in the corpus already")
    refused = [f for f in findings(read(folder, file), data) if f.line.file == file.name]
    numbers = {f.line.number for f in refused}
    lines = file.read_text(encoding=ENCODING).split("\n")
    kept = [text for number, text in enumerate(lines, 1) if text.strip() and number not in numbers]
    target.parent.mkdir(exist_ok=True)
    # The corpus has no files with this ending.
    unfinished = target.with_suffix(".new")
    unfinished.write_text("".join(f"{text}\n" for text in kept), encoding="utf-8")
    unfinished.replace(target)
    return len(kept), refused
