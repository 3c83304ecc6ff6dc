"""Publishing, rolling back and listing releases: what a person does, against what the workers follow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from models.releases import remote
from models.releases.loading import Loaded, load
from models.releases.manifest import Manifest, Release, ReleaseError, parse_manifest
from models.releases.signature import read_public_key
from models.releases.store import bundled, open_release
from models.scores import Comparison
from models.types import TASKS
from streams import topics
from streams.records import SHADOW, Announcement
from streams.releases import announcements
from streams.releases.opening import load_release, opened
from streams.settings import Settings

Compare = Callable[[Loaded, Loaded], Comparison]


class GateError(Exception):
    """The gate keeps a release out; one line that says what was compared."""


@dataclass(slots=True)
class Known:
    """A release that a worker could take."""

    task: str
    version: str
    manifest: Manifest
    where: str
    """`bundled` or `store`."""
    live: bool = False
    shadow: bool = False
    workers: list[str] = field(default_factory=list)
    """Addresses of the workers that said they run it."""


def verify(path: Path, settings: Settings) -> tuple[Release, Loaded]:
    """Opens with every check that a worker makes, signature and canary too; raises ReleaseError."""
    key = read_public_key(settings.release_key) if settings.release_key else None
    release = open_release(path, key)
    return release, load(release, device=settings.device, dtype=settings.dtype)


async def live_version(task: str, settings: Settings) -> str:
    """What was last announced, or the bundled release's version."""
    announced = (await announcements.announced(settings)).get(task)
    return announced.version if announced is not None else bundled(task).name


async def publish(path: Path, settings: Settings, compare: Compare | None, *, force: bool) -> Announcement:
    """Verifies, compares with the live release, copies to the store and announces.

    Raises ReleaseError when the release is not sound, and GateError when it is worse than the live one by the
    task's primary score, or was not compared, unless forced.
    """
    await topics.require(settings, (topics.RELEASES,))
    release, candidate = verify(path, settings)
    if release.task not in TASKS:
        raise GateError(f"no stage runs the task {release.task}")
    live = await live_version(release.task, settings)
    if live == release.version:
        raise GateError(f"{release.task} {live} is live already")
    compared = compare(candidate, load_release(release.task, live, settings)) if compare is not None else None
    if not force:
        _gate(release, live, compared)
    remote.deliver(release, settings.store)
    announcement = Announcement(
        task=_stage_of(release),
        version=release.version,
        reason="publish",
        announced_at=datetime.now(UTC),
        previous=live,
        forced=force,
        compared=compared,
    )
    await announcements.announce(settings, announcement.key, announcement)
    return announcement


def _stage_of(made: Release | Loaded) -> Any:
    """The task, which is a stage's; an announcement is checked where it is read."""
    return made.task


def _gate(release: Release, live: str, compared: Comparison | None) -> None:
    if compared is None:
        raise GateError(
            f"{release.task} {release.version} was not compared with {live}: name the data, or use --force"
        )
    if not compared.better_or_equal:
        raise GateError(
            f"{release.task} {release.version} is worse than {live}: {compared.score} "
            f"{compared.candidate:.4f} against {compared.live:.4f} on {compared.data}"
        )


async def roll_back(task: str, version: str, settings: Settings) -> Announcement:
    """Announces an older release after loading it as a worker would; raises ReleaseError."""
    await topics.require(settings, (topics.RELEASES,))
    live = await live_version(task, settings)
    if live == version:
        raise GateError(f"{task} {version} is live already")
    announcement = Announcement(
        task=_stage_of(load_release(task, version, settings)),
        version=version,
        reason="rollback",
        announced_at=datetime.now(UTC),
        previous=live,
    )
    await announcements.announce(settings, announcement.key, announcement)
    return announcement


async def cast_shadow(task: str, name: str | Path, share: float, settings: Settings) -> Announcement:
    """Announces that a release runs beside the live one; a directory is copied to the store first."""
    await topics.require(settings, (topics.RELEASES,))
    load_release(task, name, settings)
    with opened(task, name, settings) as release:
        if isinstance(name, Path):
            remote.deliver(release, settings.store)
        announcement = Announcement(
            task=_stage_of(release),
            version=release.version,
            reason="shadow",
            announced_at=datetime.now(UTC),
            share=share,
        )
    await announcements.announce(settings, announcement.key, announcement)
    return announcement


async def end_shadow(task: str, settings: Settings) -> None:
    await topics.require(settings, (topics.RELEASES,))
    await announcements.announce(settings, task + SHADOW, None)


def known(settings: Settings, announced: dict[str, Announcement]) -> list[Known]:
    """Bundled releases and those of the store, by task; a manifest that cannot be read is left out."""
    found = []
    for task in TASKS:
        own = bundled(task)
        rows = [Known(task, own.name, open_release(own).manifest, "bundled")]
        for version in remote.versions(settings.store, task):
            with suppress(ReleaseError):
                stored = remote.read_manifest(settings.store, task, version)
                rows.append(Known(task, version, parse_manifest(stored, version), "store"))
        live = announced[task].version if task in announced else own.name
        shadow = announced.get(task + SHADOW)
        for row in rows:
            row.live = row.version == live
            row.shadow = shadow is not None and row.version == shadow.version
        found += rows
    return found
