"""The releases that a run builds on: where they are, and whether they may know its test part."""

from __future__ import annotations

from pathlib import Path

from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from training.ner.settings import Settings


def release_in(folder: Path) -> Release:
    """The release in a folder, or the only tagger below the output folder of a run.

    Raises ReleaseError where there are several.
    """
    made = sorted(path for path in (folder / "ner").glob("*") if path.is_dir())
    if len(made) > 1:
        names = ", ".join(path.name for path in made)
        raise ReleaseError(f"{folder} has several taggers ({names}): name the folder of one")
    return open_release(made[0] if made else folder)


def releases_in(names: str) -> list[Release]:
    """Those of an option with commas between the names."""
    return [release_in(Path(name)) for name in names.split(",")] if names else []


def check_split(release: Release, settings: Settings) -> None:
    """Raises ReleaseError where the release learned from another split of the ADE corpus than this run, and
    may know test texts of it.
    """
    trained = release.manifest.configuration.get("training", {})
    knew = any(trained.get(name) for name in ("start", "pretrained", "teachers", "unlabelled"))
    knew = knew or "mean_of" in release.manifest.configuration
    knows_ade = knew or trained.get("corpora", "both") != "psytar"
    if knows_ade and trained.get("split") != settings.split:
        raise ReleaseError(
            f"{release.version} was trained on {trained.get('split')}, not on {settings.split}"
        )
