"""The programs of this repository that are started with `python -m`."""

from __future__ import annotations

from tests.docs.documents import ROOT


def programs(folder: str) -> list[str]:
    """The modules of a folder that are programs."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    found = [p for p in paths if '__name__ == "__main__"' in p.read_text(encoding="utf-8")]
    parts = (p.relative_to(ROOT).with_suffix("").parts for p in found)
    return [".".join(p[:-1] if p[-1] == "__main__" else p) for p in parts]
