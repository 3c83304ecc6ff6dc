"""Checks of this machine: settings, keys, folders, memory, device, and the bundled and announced releases."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from models.redaction import redact
from models.releases import remote
from models.releases.manifest import PassingError, ReleaseError, StoreError
from models.releases.signature import read_public_key
from models.releases.store import bundled_version
from models.types import JUDGE, RELEASED, TASKS
from streams.records import Announcement
from streams.rollout.loaded_judge import WITHOUT_BASE, lacks_base
from streams.rollout.loading import load_release, open_verified
from streams.settings import EMBEDDED, Settings

Grade = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    what: str
    grade: Grade
    found: str
    fix: str = ""
    """Empty where nothing is to be done."""


#: Bytes that a worker of one stage needs, and that all stages in one process need.
STAGE_BYTES, ALL_BYTES = 1000 << 20, 1300 << 20
#: Below these, a session ends while a worker collects garbage, or while it is restarted under its name.
SHORT_SESSION, RESTART_SECONDS = 6.0, 30.0
#: Files that connections need.
_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_token_file")
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def check_settings(settings: Settings) -> Iterator[Finding]:
    """What is wrong with settings that are valid one by one."""
    if settings.broker == EMBEDDED:
        yield Finding("settings", "fail", "PV_BROKER is not set", "set PV_BROKER=kafka://host:port")
        return
    wrong = [*_connection(settings), *_membership(settings), *_keys(settings)]
    yield from wrong or [Finding("settings", "ok", "valid")]


def _connection(settings: Settings) -> Iterator[Finding]:
    hosts = {address.rpartition(":")[0] for address in settings.bootstrap}
    if "SSL" not in settings.security and not hosts <= {"localhost", "127.0.0.1", "[::1]"}:
        text = f"PV_SECURITY is {settings.security}: texts cross the network in the clear"
        yield Finding("settings", "warn", text, "use SSL or SASL_SSL")
    files = {name: getattr(settings, name) for name in _FILES}
    unreadable = [name for name, path in files.items() if path is not None and not os.access(path, os.R_OK)]
    for name in unreadable:
        text = f"PV_{name.upper()}: {files[name]} cannot be read"
        yield Finding("settings", "fail", text, "correct the path, or give this user the right to read it")
    try:
        if not unreadable:
            settings.ssl_context()
    except OSError as error:
        fix = "they must be PEM files, and PV_SSL_KEY_PASSWORD_FILE must hold the password of the key"
        yield Finding("settings", "fail", f"the TLS files: {_reason(error)}", fix)


def _membership(settings: Settings) -> Iterator[Finding]:
    text = f"PV_SESSION_TIMEOUT is {settings.session_timeout:g}"
    if settings.session_timeout < SHORT_SESSION:
        yield Finding("settings", "warn", f"{text}: many brokers refuse it", "use 10")
    elif settings.instance and settings.session_timeout < RESTART_SECONDS:
        fix = "use 60, or leave PV_INSTANCE unset"
        yield Finding("settings", "warn", f"PV_INSTANCE is set, but {text}: a restart takes longer", fix)


def _keys(settings: Settings) -> Iterator[Finding]:
    if settings.release_key is None:
        return
    try:
        read_public_key(settings.release_key)
    except ReleaseError as error:
        yield Finding("settings", "fail", f"PV_RELEASE_KEY: {error}", "name a PEM file with a public key")


def check_state(settings: Settings) -> Iterator[Finding]:
    """Whether PV_STATE can be written."""
    folder = settings.state_folder
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        fix = "make it writable; without it a worker cannot start while the store is unavailable"
        yield Finding("state", "fail", f"{folder}: {_reason(error)}", fix)
    else:
        yield Finding("state", "ok", f"{folder} is writable")


def check_memory() -> Iterator[Finding]:
    """Whether the memory that is free suffices for a worker."""
    free = _free_memory()
    if free is None:
        yield Finding("memory", "warn", "the free memory is not known", "a stage needs 1.0 GB")
        return
    grade: Grade = "fail" if free < STAGE_BYTES else "warn" if free < ALL_BYTES else "ok"
    fix = {
        "fail": "a worker of one stage needs up to 1.0 GB",
        "warn": "enough for one stage in a process, not for all five (1.3 GB)",
        "ok": "",
    }
    yield Finding("memory", grade, f"{free / 1e9:.1f} GB free", fix[grade])


def _free_memory() -> int | None:
    """Bytes free on the machine, or in this control group; None where neither is known."""
    free = []
    try:
        (line,) = [row for row in _MEMINFO.read_text().splitlines() if row.startswith("MemAvailable:")]
        free.append(int(line.split()[1]) * 1024)
        limit, used = ((_CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        free.append(int(limit) - int(used))
    except (OSError, ValueError, IndexError):
        pass  # not Linux, or no limit
    return min(free, default=None)


def check_device(settings: Settings) -> Iterator[Finding]:
    """Whether PV_DEVICE can be used; nothing for a processor."""
    if settings.device == "cpu":
        return
    import torch

    try:
        torch.zeros(1, device=settings.device)
    except (RuntimeError, AssertionError) as error:
        text = f"{settings.device} cannot be used: {str(error).splitlines()[0]}"
        yield Finding("device", "fail", text, "install the driver and the extra `gpu`, or PV_DEVICE=cpu")
    else:
        yield Finding("device", "ok", f"{settings.device} can be used")


def check_store(settings: Settings) -> Iterator[Finding]:
    """Whether the store answers."""
    try:
        n = sum(len(remote.versions(settings.store, task)) for task in RELEASED)
    except StoreError as error:
        yield Finding("store", "fail", str(error), "check PV_STORE and its credentials")
    else:
        yield Finding("store", "ok", f"{redact(settings.store)} has {n} releases")


async def check_releases(
    settings: Settings, announced: Mapping[str, Announcement], *, load: bool
) -> AsyncIterator[Finding]:
    """Verifies for each task the release that a worker would start with; with `load` also loads it."""
    for task in TASKS:
        pinned = settings.releases.get(task)
        name = pinned or (announced[task].version if task in announced else None)
        kind = "pinned" if pinned else "announced" if name else "bundled"
        yield await asyncio.to_thread(_check_release, settings, task, name, f"{kind} release", load)
    if settings.judge != "off":
        async for finding in _check_judge(settings, announced.get(JUDGE), load):
            yield finding


async def _check_judge(
    settings: Settings, announced: Announcement | None, load: bool
) -> AsyncIterator[Finding]:
    """The judge that a worker would start with, if any; with PV_JUDGE=auto the stage starts without it."""
    pinned = settings.releases.get(JUDGE)
    name = pinned or (announced.version if announced else bundled_version(JUDGE))
    if name is None and settings.judge == "on":
        yield Finding("release judge", "fail", "none to be loaded", "announce one, or set PV_JUDGE=auto")
    elif announced is None and lacks_base(settings):
        grade: Grade = "fail" if settings.judge == "on" else "warn"
        yield Finding("release judge", grade, WITHOUT_BASE, "make judge")
    elif name is not None:
        kind = "pinned" if pinned else "announced" if announced else "bundled"
        finding = await asyncio.to_thread(_check_release, settings, JUDGE, name, f"{kind} release", load)
        spared = finding.grade == "fail" and settings.judge == "auto"
        yield replace(finding, grade="warn") if spared else finding


def _check_release(settings: Settings, task: str, name: str | Path | None, kind: str, load: bool) -> Finding:
    what = f"release {task}"
    try:
        if load:
            return Finding(what, "ok", f"{kind} {load_release(task, name, settings).version} loads")
        with open_verified(task, name, settings) as release:
            return Finding(what, "ok", f"{kind} {release.version} is valid")
    except StoreError as error:
        return Finding(what, "fail", f"{kind}: {error}", "check PV_STORE, or roll back")
    except PassingError as error:
        return Finding(what, "fail", f"{kind}: {error}", "give the worker more memory and file handles")
    except (ReleaseError, OSError) as error:
        return Finding(what, "fail", f"{kind}: {error}", "announce a valid release, or roll back")


def _reason(error: OSError) -> str:
    """The reason, and the file where there is one."""
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"
