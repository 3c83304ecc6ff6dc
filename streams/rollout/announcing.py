"""Announcing, rolling back and listing releases: the side of the operator."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from models.loading import Loaded
from models.releases import remote
from models.releases.manifest import Manifest, Release, ReleaseError, parse_manifest
from models.releases.private import private_folder
from models.releases.signature import read_private_key, read_public_key
from models.releases.store import bundled, bundled_version, open_copy, open_release, sign
from models.scores import Comparison
from models.types import JUDGE, RELEASED
from streams import topics
from streams.records import Announcement
from streams.rollout import announcements
from streams.rollout.announcements import Announcements
from streams.rollout.loading import load_opened, load_release, open_directory
from streams.rollout.trust import Trust
from streams.settings import Settings

log = logging.getLogger(__name__)
#: The two tasks that make events of posts: a release of one is compared together with the live one of the
#: other.
PARTNER = {"ner": "normalization", "normalization": "ner"}
#: Candidate, live release, and the live release of the partner where the task has one, to the comparison on
#: which the gate decides.
Compare = Callable[[Loaded, Loaded, Loaded | None], Comparison | None]


class GateError(Exception):
    """A release must not be announced; the message is one line with the reason."""


@dataclass(slots=True)
class ListedRelease:
    """A release that a worker can load, and its state."""

    task: str
    version: str
    manifest: Manifest
    where: str
    """`bundled` or `store`."""
    live: bool = False
    workers: list[str] = field(default_factory=list)
    """Addresses of the workers that run it."""


@contextmanager
def verified(path: Path, settings: Settings) -> Iterator[tuple[Release, Loaded]]:
    """A private copy of the release in a directory, opened and loaded with every check of a worker, signature
    and canary included, for the duration of the block; raises ReleaseError.
    """
    with open_directory(path, settings) as release:
        yield release, load_opened(release, settings)


async def live_version(task: str, settings: Settings) -> str | None:
    """The last announced version, or the version of the bundled release; None for a judge without any."""
    announcement = (await announcements.read_announcements(settings)).get(task)
    return announcement.version if announcement is not None else bundled_version(task)


async def announce(
    path: Path, settings: Settings, compare: Compare | None, *, force: bool, signing_key: Path | None = None
) -> Announcement:
    """Verifies a release, compares it with the live one, copies it to the store and announces it.

    Raises ReleaseError when a check fails. Raises GateError when the release is live already, when another
    one went live meanwhile, and, unless forced, when it was not compared or is worse than the live one by the
    task's primary score. `signing_key` is a PEM file; see `_signer`, here and below.
    """
    signer = _signer(signing_key, settings)
    await topics.require(settings, (topics.RELEASES,))
    with verified(path, settings) as (release, candidate):
        if release.task not in RELEASED:
            raise GateError(f"no stage runs the task {release.task}")
        live = await live_version(release.task, settings)
        if live == release.version:
            raise GateError(f"{release.task} {live} is live already")
        # Two judges are compared on real texts, which do not come with pvstream.
        is_compared = compare is not None and release.task != JUDGE
        compared = await _compared(candidate, live, compare, settings) if compare and is_compared else None
        if not force:
            _gate(release, live, compared)
        remote.deliver(release, settings.store)
    announcement = Announcement(
        task=_task_of(release),
        version=release.version,
        reason="publish",
        announced_at=datetime.now(UTC),
        previous=live,
        forced=force,
        compared=compared,
    )
    return await _announce(announcement, settings, signer)


async def _compared(
    candidate: Loaded, live: str | None, compare: Compare, settings: Settings
) -> Comparison | None:
    partner_task = PARTNER.get(candidate.task)
    partner = (
        load_release(partner_task, await live_version(partner_task, settings), settings)
        if partner_task
        else None
    )
    return compare(candidate, load_release(candidate.task, live, settings), partner)


def _signer(signing_key: Path | None, settings: Settings) -> Ed25519PrivateKey | None:
    """The key that signs an announcement; raises GateError when workers with these settings require a
    signature and this is not its key, and ReleaseError when a key cannot be read.
    """
    signer = read_private_key(signing_key) if signing_key else None
    if settings.release_key is not None:
        if signer is None:
            raise GateError("PV_RELEASE_KEY is set, so the announcement must be signed: use --key")
        if signer.public_key() != read_public_key(settings.release_key):
            raise GateError(f"{signing_key} is not the private key of {settings.release_key}")
    return signer


async def _announce(
    announcement: Announcement, settings: Settings, signer: Ed25519PrivateKey | None
) -> Announcement:
    """Announces under the next sequence number of the key, then reads the topic again. Raises GateError if
    another announcement was made meanwhile, whichever of the two is valid: of two concurrent announcements at
    least one fails. One that would replace another release than `previous` is not made.
    """
    key, trust = announcement.key, Trust.of(settings)
    known = await _known(settings, trust)
    _check_previous(announcement, known)
    last = known[key].sequence if key in known else 0
    announcement = replace(announcement, sequence=last + 1)
    await announcements.send(settings, key, announcement, signer)
    made = await _known(settings, trust)
    rival = made.rival(key, announcement) if isinstance(made, Announcements) else made.get(key)
    if rival is not None and rival != announcement:
        holds = made[key].version if key in made else "none"
        raise GateError(
            f"another announcement for {key}, {rival.version}, was made at the same time; "
            f"{holds} holds now: look whether it should"
        )
    return announcement


def _check_previous(announcement: Announcement, known: dict[str, Announcement]) -> None:
    """Raises GateError when the release that `announcement` was prepared to replace is not live any more."""
    task = announcement.task
    live = known[task].version if task in known else bundled_version(task)
    if announcement.previous not in (None, live):
        raise GateError(f"{task} {live} is live by now, not {announcement.previous}: run the command again")


async def _known(settings: Settings, trust: Trust | None) -> dict[str, Announcement]:
    """The announcements by task; where signatures are required those that were accepted."""
    async with announcements.reader(settings) as consumer:
        valid, _ = await announcements.read_to_end(consumer, trust)
    return valid if trust is None else trust.accepted()


def _task_of(release: Release | Loaded) -> Any:
    """The task, untyped: Announcement allows only the tasks of stages, which is checked when it is read."""
    return release.task


def _gate(release: Release, live: str | None, compared: Comparison | None) -> None:
    """Raises GateError when the release was not compared with the live one, or is worse."""
    if compared is None and release.task == JUDGE:
        raise GateError("releases of judge are not compared here: use --force")
    if compared is None:
        raise GateError(
            f"{release.task} {release.version} was not compared with {live}: use --data or --force"
        )
    if not compared.better_or_equal:
        raise GateError(
            f"{release.task} {release.version} is worse than {live}: {compared.score} "
            f"{compared.candidate:.4f} against {compared.live:.4f} on {compared.data}"
        )


async def roll_back(
    task: str, version: str, settings: Settings, signing_key: Path | None = None
) -> Announcement:
    """Announces an older release after loading it as a worker would. The bundled one is also copied to the
    store (see `_deliver_bundled`).

    Raises ReleaseError when it cannot be loaded, and GateError when it is live already.
    """
    signer = _signer(signing_key, settings)
    await topics.require(settings, (topics.RELEASES,))
    live = await live_version(task, settings)
    if live == version:
        raise GateError(f"{task} {version} is live already")
    announcement = Announcement(
        task=_task_of(load_release(task, version, settings)),
        version=version,
        reason="rollback",
        announced_at=datetime.now(UTC),
        previous=live,
    )
    if version == bundled_version(task):
        _deliver_bundled(task, settings, signer)
    return await _announce(announcement, settings, signer)


def _deliver_bundled(task: str, settings: Settings, signer: Ed25519PrivateKey | None) -> None:
    """Copies the bundled release to the store, signed if there is a signer: there, workers whose pvstream
    comes with another one find it, such as those of a later version. A failure is logged: all others need no
    copy.
    """
    try:
        with private_folder("bundled") as folder:
            release = open_copy(bundled(task), folder)
            if signer is not None:
                sign(release, signer)
            remote.deliver(release, settings.store)
    except (OSError, ReleaseError) as error:
        log.warning("the bundled release of %s is not copied to the store: %s", task, error)


def list_releases(settings: Settings, announced: dict[str, Announcement]) -> list[ListedRelease]:
    """The bundled releases and others of the store, by task, without those whose manifest cannot be read."""
    listed = []
    for task in RELEASED:
        shipped, releases = bundled_version(task), []
        if shipped is not None:
            releases.append(ListedRelease(task, shipped, open_release(bundled(task)).manifest, "bundled"))
        for version in remote.versions(settings.store, task):
            if version == shipped:
                continue
            with suppress(ReleaseError):
                stored = remote.read_manifest(settings.store, task, version)
                releases.append(ListedRelease(task, version, parse_manifest(stored, version), "store"))
        live = announced[task].version if task in announced else shipped
        for release in releases:
            release.live = release.version == live
        listed += releases
    return listed
