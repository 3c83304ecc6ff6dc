"""Signed announcements: where PV_RELEASE_KEY is set, workers follow only those of its owner.

An announcement that was valid once could be sent again, to bring an old release back. So each one has a
sequence number that rises, and a worker remembers the last one that it has accepted, also over a restart.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from models.releases.signature import read_public_key
from models.releases.store import sync
from streams.codec import BadRecord, decode
from streams.records import Announcement
from streams.settings import Settings

log = logging.getLogger(__name__)
#: The header with the Ed25519 signature of an announcement, 64 bytes.
SIGNATURE_HEADER = "pv-signature"
#: Is signed before the bytes of the value, so that no signature of a manifest is one of an announcement.
DOMAIN = b"pvstream announcement, format 2\n"
#: Tries to lock the folder, with a pause of 10 ms after each; a stopped process must not stop the others.
LOCK_ATTEMPTS = 50


def sign_announcement(value: bytes, key: Ed25519PrivateKey) -> bytes:
    """The signature of an encoded announcement."""
    return key.sign(DOMAIN + value)


def is_signed(value: bytes, signature: bytes, key: Ed25519PublicKey) -> bool:
    """Whether this is the signature of the key's owner over exactly these bytes."""
    try:
        key.verify(signature, DOMAIN + value)
    except InvalidSignature:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted announcement, as it was written and as it was read."""

    value: bytes
    signature: bytes
    announcement: Announcement


class Trust:
    """The last accepted announcement of each key, in memory and in files that the workers of this machine
    share. Where the files cannot be written, it is remembered as long as the process lives.
    """

    def __init__(self, key: Ed25519PublicKey, state: Path) -> None:
        self._key = key
        # The sequence of another key has nothing to do with this one's.
        self._folder = state / "announcements" / hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]
        self._accepted: dict[str, Accepted] = {}
        for path in self._folder.glob("*.json"):
            self._read(path.stem)

    @classmethod
    def of(cls, settings: Settings) -> Trust | None:
        """None where no signatures are required; raises ReleaseError when the key cannot be read."""
        if settings.release_key is None:
            return None
        return cls(read_public_key(settings.release_key), settings.state_folder)

    def accepted(self) -> dict[str, Announcement]:
        """The last accepted announcements by key, which count even if the topic has lost them."""
        return {key: entry.announcement for key, entry in self._accepted.items()}

    def accept(self, key: str, announcement: Announcement, message: Any) -> None:
        """Remembers an announcement and syncs it to the disk; raises BadRecord unless it is signed and newer
        than the last accepted one of its key, or the same one again.
        """
        signature = next((value for name, value in message.headers if name == SIGNATURE_HEADER), None)
        if signature is None:
            raise BadRecord("not signed, and a signature is required")
        if not is_signed(message.value, signature, self._key):
            raise BadRecord("the signature is not by the required key over this announcement")
        with self._locked():
            self._read(key)
            last = self._accepted.get(key)
            if last is not None and last.value == message.value:
                return
            if last is not None and announcement.sequence <= last.announcement.sequence:
                raise BadRecord(
                    f"its sequence is {announcement.sequence}, and {last.announcement.sequence} was accepted"
                )
            self._accepted[key] = Accepted(message.value, signature, announcement)
            self._write(key)

    def _read(self, key: str) -> None:
        """Takes over what another worker has accepted; a file that is not by the key's owner is ignored."""
        try:
            stored = orjson.loads((self._folder / f"{key}.json").read_bytes())
            value, signature = stored["value"].encode(), bytes.fromhex(stored["signature"])
            announcement = decode(Announcement, value)
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.error("%s of %s is not readable: %s", key, self._folder, type(error).__name__)
            return
        if announcement.key != key or not is_signed(value, signature, self._key):
            log.error("%s of %s is not signed with the required key", key, self._folder)
            return
        last = self._accepted.get(key)
        if last is None or announcement.sequence > last.announcement.sequence:
            self._accepted[key] = Accepted(value, signature, announcement)

    def _write(self, key: str) -> None:
        """Replaces the file of a key; after a power cut it holds the old or the new announcement."""
        entry = self._accepted[key]
        content = {"value": entry.value.decode(), "signature": entry.signature.hex()}
        path = self._folder / f"{key}.json"
        try:
            path.with_suffix(".new").write_bytes(orjson.dumps(content))
            sync(path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)
            sync(self._folder)
        except OSError as error:
            log.warning(
                "announcement %d of %s is remembered until the process ends: %s",
                entry.announcement.sequence, key, error,
            )  # fmt: skip

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps the other workers of this machine out, as far as the folder can be written and locked."""
        lock = None
        with suppress(OSError):
            _make_synced(self._folder)
            lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
            _lock(lock)
        try:
            yield
        finally:
            if lock is not None:
                os.close(lock)


def _lock(descriptor: int) -> None:
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return


def _make_synced(folder: Path) -> None:
    """Makes a folder with those above it, such that they survive a power cut."""
    if not folder.is_dir():
        _make_synced(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
        sync(folder.parent)
