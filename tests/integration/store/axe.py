"""The accessibility checker axe-core, from npm; nothing of it is in this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "4.14.1"
INSTALL_S = 180.0


class AxeUnavailable(Exception):
    """The message says why."""


def axe_source() -> str:
    """The script, which defines `axe`. It is fetched once and kept in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    kept = Path(home) / "pvstream-tests" / f"axe-core-{VERSION}.js"
    if not kept.is_file():
        _fetch(kept)
    return kept.read_text(encoding="utf-8")


def _fetch(kept: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise AxeUnavailable("there is no npm, which fetches axe-core")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        arguments = ["--prefix", name, "--ignore-scripts", "--no-audit", "--no-fund", f"axe-core@{VERSION}"]
        try:
            subprocess.run([npm, "install", *arguments], check=True, capture_output=True, timeout=INSTALL_S)
        except (subprocess.SubprocessError, OSError) as error:
            raise AxeUnavailable(f"npm did not fetch axe-core {VERSION}: {type(error).__name__}") from None
        (Path(name) / "node_modules/axe-core/axe.min.js").replace(kept)
