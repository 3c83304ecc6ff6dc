"""A folder with the files that the documentation names, and a value for each of its placeholders."""

from __future__ import annotations

import glob
import shutil
from pathlib import Path

from models.releases.store import bundled
from models.types import TASKS
from tests.docs.documents import ROOT, Command
from tests.variants import variant

SAMPLES = ROOT / "streams/samples"
#: Words of the documentation that stand for something else.
VERSION, WORKER = "VERSION", "host:8000"


class Workspace:
    """`corpora` is a folder in the layout of the public corpora, with a few records."""

    def __init__(self, folder: Path, corpora: Path) -> None:
        self.folder = folder
        (folder / "corpora").symlink_to(corpora)
        (folder / "models").symlink_to(ROOT / "models")
        self.releases = {
            task: variant(task, folder / "runs", "a candidate") for task in ("ner", "normalization")
        }
        posts = (SAMPLES / "posts.jsonl").read_bytes().splitlines(keepends=True)[:12]
        (folder / "posts.jsonl").write_bytes(b"".join(posts))
        shutil.copy(ROOT / "tests/data/gold/posts.jsonl", folder / "gold.jsonl")
        rows = ("llt\tpt\tsoc", "Felt sick\tNausea\tGastrointestinal", "Nausea\tNausea\tGastrointestinal")
        (folder / "terms.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def words(self, command: Command, worker: str = WORKER) -> list[str]:
        """The words of a command with placeholders filled in and patterns of files expanded."""
        named = {part for word in command.words for part in word.split("=")[0].split("/")}
        task = next((t for t in TASKS if t in named), "ner")
        # An older version is the bundled one.
        older = "rollback" in named
        words = [self._filled(word, task, older).replace(WORKER, worker) for word in command.words]
        return [found for word in words for found in (self._files(word) if "*" in word else [word])]

    def variables(self, command: Command) -> dict[str, str]:
        """The variables that are set for it, with placeholders filled in."""
        return {name: self._filled(value, "normalization") for name, value in command.variables}

    def _filled(self, word: str, task: str, older: bool = False) -> str:
        version = bundled(task).name if older or "pretrained" in word else self.releases[task].version
        return word.replace(VERSION, version)

    def _files(self, pattern: str) -> list[str]:
        found = sorted(glob.glob(pattern, root_dir=self.folder))
        assert found, f"no file fits {pattern}"
        return found
