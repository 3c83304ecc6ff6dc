"""Finds a release by task and version, verifies it and loads it."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from threading import Thread

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from models.loading import EXTENDS, Loaded, load, with_supplement
from models.redaction import redact
from models.releases import store
from models.releases.manifest import Limits, Release, ReleaseError, StoreError
from models.releases.private import private_folder
from models.releases.remote import VERSION, fetch, versions
from models.releases.signature import read_public_key
from models.releases.store import bundled, bundled_version, open_copy, open_release
from streams.settings import Settings

log = logging.getLogger(__name__)
#: Releases of a task that are kept: the live one and the one before it.
KEPT = 2
#: By task, and version or folder: what `load_release` gives without loading it again.
_PRELOADED: dict[tuple[str, str | Path], Loaded] = {}


def kept_folder(task: str, settings: Settings) -> Path:
    """The folder of a task's kept releases; it need not exist."""
    return settings.state_folder / "releases" / task


def keep_copy(release: Release, settings: Settings) -> None:
    """Keeps a copy of a release that was loaded, and removes the oldest beyond KEPT. A failure is logged: the
    release runs all the same.
    """
    folder = kept_folder(release.task, settings)
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        _copy(release, folder)
        os.utime(folder / release.version)
        # The times of the others may be later, of a clock that was set back.
        earlier = [v for v in kept_versions(release.task, settings) if v != release.version]
        for version in earlier[KEPT - 1 :]:
            shutil.rmtree(folder / version, ignore_errors=True)
    except (OSError, ReleaseError) as error:
        log.warning("%s %s is not kept in %s: %s", release.task, release.version, folder, error)


def kept_versions(task: str, settings: Settings) -> list[str]:
    """The versions of a task that are kept, the one that was loaded last first."""
    places = [p for p in kept_folder(task, settings).glob("*") if VERSION.fullmatch(p.name)]
    return [p.name for p in sorted(places, key=_loaded_at, reverse=True)]


def _copy(release: Release, folder: Path) -> None:
    """Copies a release if it is not kept yet or its copy is damaged; raises OSError and ReleaseError."""
    try:
        store.copy(release, folder.parent)
    except ReleaseError:
        shutil.rmtree(folder / release.version)
        store.copy(release, folder.parent)


def _loaded_at(path: Path) -> float:
    """0 for a folder that another worker has just removed."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@contextmanager
def open_verified(task: str, name: str | Path | None, settings: Settings) -> Iterator[Release]:
    """A verified release for the duration of the block; raises ReleaseError.

    `name` is None for the bundled release, a string for a version (of the store or the bundled one), or a
    path for a directory. The bundled releases are trusted like the code they come with, and are read in their
    place, because a user who can change them can change the code. All others need a signature if
    PV_RELEASE_KEY is set, and are copied to a private folder and verified there.
    """
    if isinstance(name, Path):
        with open_directory(name, settings) as release:
            yield _check_task(release, task)
        return
    if name is None or name == bundled_version(task):
        yield _check_task(open_release(bundled(task)), task)
        return
    with private_folder(name if VERSION.fullmatch(name) else "release") as folder:
        yield _check_task(_fetch(task, name, folder, settings), task)


def _fetch(task: str, version: str, folder: Path, settings: Settings) -> Release:
    """`fetch` from the store, for at most PV_STORE_DEADLINE; then raises StoreError. A call to a store that
    hangs cannot be ended: its thread stays until the store answers or the process ends, and does not delay
    that.
    """
    copied: Future[Release] = Future()

    def copy() -> None:
        try:
            copied.set_result(
                fetch(settings.store, task, version, folder, _key(settings), limits=_limits(settings))
            )
        except BaseException as error:
            copied.set_exception(error)

    Thread(target=copy, name=f"fetch-{version}", daemon=True).start()
    try:
        return copied.result(settings.store_deadline)
    except TimeoutError:
        if copied.done():
            raise
        raise StoreError(
            f"{task} {version} is not copied within {settings.store_deadline:.0f} s from the store "
            f"{redact(settings.store)}"
        ) from None


@contextmanager
def open_named(name: str | Path, tasks: Collection[str], settings: Settings) -> Iterator[Release]:
    """A verified release of any task for the duration of the block: `name` is one of `tasks` for its bundled
    release, or a version of one of them, or a directory. Raises ReleaseError.
    """
    if isinstance(name, Path):
        opened = open_directory(name, settings)
    elif name in tasks:
        opened = open_verified(name, None, settings)
    else:
        bundled_here = (task for task in tasks if (store.BUNDLED / task / name).is_dir())
        stored = (task for task in tasks if name in versions(settings.store, task))
        task = next(chain(bundled_here, stored), None)
        if task is None:
            raise ReleaseError(f"no release of {', '.join(tasks)} has the version {name}")
        opened = open_verified(task, name, settings)
    with opened as release:
        yield release


@contextmanager
def open_directory(path: Path, settings: Settings) -> Iterator[Release]:
    """A verified private copy of a release's directory for the block; raises ReleaseError."""
    with private_folder(path.resolve().name or "release") as folder:
        yield open_copy(path, folder, _key(settings), _limits(settings))


def _key(settings: Settings) -> Ed25519PublicKey | None:
    return read_public_key(settings.release_key) if settings.release_key else None


def _limits(settings: Settings) -> Limits:
    return Limits(settings.release_bytes, settings.release_files)


def load_release(task: str, name: str | Path | None, settings: Settings, *, keep: bool = False) -> Loaded:
    """Opens, verifies and loads a release; `keep`: a copy stays here. Raises ReleaseError."""
    wanted = bundled_version(task) if name is None else name
    if wanted is not None and (task, wanted) in _PRELOADED:
        return _PRELOADED[task, wanted]
    started = time.perf_counter()
    with open_verified(task, name, settings) as release:
        loaded = load_opened(release, settings, keep=keep)
        if keep and release.version != bundled_version(task):
            keep_copy(release, settings)
    log.info("%s %s loaded in %.1f s", task, loaded.version, time.perf_counter() - started)
    return loaded


def preload(task: str, name: Path | None, settings: Settings) -> None:
    """Loads a release that is on this machine, for each later call of `load_release` by its version or by the
    same folder; not a supplement, whose base may be in the store only. Raises ReleaseError.
    """
    with open_verified(task, name, settings) as release:
        if EXTENDS in release.manifest.configuration:
            return
        loaded = _load(release, settings)
    _PRELOADED[task, loaded.version] = loaded
    if name is not None:
        _PRELOADED[task, name] = loaded


def load_opened(release: Release, settings: Settings, *, keep: bool = False) -> Loaded:
    """The model of an opened release, as these settings say; that of a supplement is the release that it
    extends, of which `keep` keeps a copy too, with more neighbours. Raises ReleaseError.
    """
    if EXTENDS in release.manifest.configuration:
        with open_base(release, settings) as base:
            loaded = with_supplement(_load(base, settings), release)
            if keep and base.version != bundled_version(base.task):
                keep_copy(base, settings)
            return loaded
    return _load(release, settings)


@contextmanager
def open_base(supplement: Release, settings: Settings) -> Iterator[Release]:
    """The verified release that a supplement extends, for the duration of the block; raises ReleaseError,
    also where that is a supplement itself. Without the store it is the copy that this machine keeps.
    """
    version = str(supplement.manifest.configuration[EXTENDS])
    with ExitStack() as stack:
        try:
            base = stack.enter_context(open_verified(supplement.task, version, settings))
        except StoreError:
            if version not in kept_versions(supplement.task, settings):
                raise
            kept = kept_folder(supplement.task, settings) / version
            base = stack.enter_context(open_directory(kept, settings))
        if EXTENDS in base.manifest.configuration:
            raise ReleaseError(f"{supplement.version}: {base.version}, which it extends, is a supplement")
        yield base


def _load(release: Release, settings: Settings) -> Loaded:
    return load(
        release,
        device=settings.device,
        dtype=settings.dtype,
        event_below=settings.post_threshold,
        cache=settings.cache,
    )


def _check_task(release: Release, task: str) -> Release:
    if release.task != task:
        raise ReleaseError(f"{release.path.name}: a release for {release.task}, not for {task}")
    return release
