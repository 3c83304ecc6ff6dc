"""Says that a program has begun, before it imports what takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

#: Packages that take about a second or more to import, many seconds where their sources are not compiled yet.
SLOW = frozenset({"faiss", "faust", "scipy", "sklearn", "torch", "transformers"})
LINE = "loading {} ... (the first time takes longer)"


class _FirstWords(MetaPathFinder):
    """Prints one line when the first slow package is imported. It finds no module."""

    said = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name in SLOW and not self.said:
            self.said = True
            print(LINE.format(name), file=sys.stderr, flush=True)


def announce_slow_imports() -> None:
    """From now on the first import of a slow package is announced on standard error, once in a process."""
    if not any(isinstance(finder, _FirstWords) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FirstWords())
