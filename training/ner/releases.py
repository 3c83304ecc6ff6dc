"""Whether a release that a run builds on may know its test part."""

from __future__ import annotations

from models.releases.manifest import Release, ReleaseError


def check_split(release: Release, split: str) -> None:
    """Raises ReleaseError where the release learned from another split of the ADE corpus than this run, and
    may know test texts of it.
    """
    trained = release.manifest.configuration.get("training", {})
    knew = any(trained.get(name) for name in ("start", "pretrained", "teachers", "unlabelled"))
    knew = knew or "mean_of" in release.manifest.configuration
    knows_ade = knew or trained.get("corpora", "both") != "psytar"
    if knows_ade and trained.get("split") != split:
        raise ReleaseError(f"{release.version} was trained on {trained.get('split')}, not on {split}")
