"""Where signatures are required, announcements are followed only if signed, and only forwards."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from models.releases.manifest import ReleaseError
from streams.codec import encode
from streams.records import Announcement, Inbound
from streams.rollout.announcements import apply_message
from streams.rollout.trust import DOMAIN, SIGNATURE_HEADER, Trust, sign_announcement
from streams.settings import Settings
from tests.models.releases.stores import power_cut
from tests.streams.conftest import Keys
from tests.streams.rollout.reloading import WHEN, sent

OWNER = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
STRANGER = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)
OLD = Announcement(task="ner", version="0" * 12, reason="publish", announced_at=WHEN, sequence=4)
NEW = replace(OLD, version="1" * 12, announced_at=WHEN + timedelta(days=1), sequence=5)


def signed(announcement: Announcement, signer: Ed25519PrivateKey = OWNER) -> Inbound:
    value = encode(announcement)
    header = (SIGNATURE_HEADER, sign_announcement(value, signer))
    return sent(announcement.key.encode(), value, headers=(("other", b"x"), header))


class Worker:
    """Reads messages as a worker does; `restart` forgets everything but the files."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.restart()

    def restart(self) -> None:
        self.trust = Trust(OWNER.public_key(), self.state)
        self.announcements = self.trust.accepted()

    def reads(self, *messages: Inbound) -> list[bool]:
        """Whether each message is followed."""
        return [apply_message(self.announcements, m, self.trust) is not None for m in messages]

    @property
    def live(self) -> str | None:
        return self.announcements["ner"].version if "ner" in self.announcements else None


@pytest.fixture
def worker(state: Path) -> Worker:
    return Worker(state)


def test_signed_announcements_are_followed_and_a_rollback_is_a_new_one(worker: Worker) -> None:
    assert worker.reads(signed(OLD), signed(NEW)) == [True, True]
    assert worker.live == NEW.version
    assert worker.reads(signed(replace(OLD, reason="rollback", sequence=6))) == [True]
    assert worker.live == OLD.version


VALUE, SIGNATURE = encode(OLD), sign_announcement(encode(OLD), OWNER)


def bearing(value: bytes | None, signature: bytes, key: bytes = b"ner") -> Inbound:
    return sent(key, value, headers=[(SIGNATURE_HEADER, signature)])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(sent(b"ner", VALUE), "not signed", id="unsigned"),
        pytest.param(signed(OLD, STRANGER), "not by the required key", id="another key"),
        pytest.param(bearing(VALUE, OWNER.sign(VALUE)), "not by the required key", id="signed as a manifest"),
        pytest.param(bearing(encode(NEW), SIGNATURE), "not by the required key", id="that of another"),
        pytest.param(bearing(VALUE + b" ", SIGNATURE), "not by the required key", id="one byte more"),
        pytest.param(bearing(VALUE, b""), "not by the required key", id="no bytes"),
        pytest.param(bearing(VALUE, SIGNATURE, b"acronym"), "another task", id="under another key"),
        pytest.param(sent(b"ner", None), "null value is not signed", id="null value"),
        pytest.param(bearing(None, OWNER.sign(DOMAIN)), "null value is not signed", id="signed null value"),
    ],
)
def test_what_is_not_signed_by_the_owner_is_not_followed(
    message: Inbound, reason: str, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.reads(signed(replace(OLD, sequence=3)))
    assert worker.reads(message) == [False]
    assert worker.live == OLD.version
    assert worker.announcements["ner"].sequence == 3
    assert reason in caplog.text


@pytest.mark.parametrize("restarted", [False, True])
def test_an_announcement_is_followed_again_but_no_older_one_and_none_of_its_sequence(
    restarted: bool, worker: Worker
) -> None:
    worker.reads(signed(OLD), signed(NEW))
    if restarted:
        worker.restart()
    other = replace(NEW, version="2" * 12)
    again = worker.reads(signed(OLD), signed(NEW), signed(other), signed(NEW))
    assert again == [False, True, False, True]
    assert worker.live == NEW.version


def test_the_workers_of_a_machine_share_what_they_have_accepted(state: Path) -> None:
    first, second = Worker(state), Worker(state)
    first.reads(signed(NEW))
    assert second.reads(signed(OLD), signed(NEW)) == [False, True]
    second.restart()
    assert second.live == NEW.version


def files(state: Path) -> list[Path]:
    return sorted(p for p in state.rglob("*") if p.is_file() and p.suffix)


def test_a_file_is_on_the_disk_before_it_replaces_the_old_one(
    worker: Worker, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.reads(signed(OLD))
    (path,) = files(state)
    events = []
    fsync, rename = os.fsync, Path.rename

    def record_fsync(descriptor: int) -> None:
        events.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        fsync(descriptor)

    def record_rename(self: Path, target: Path) -> Path:
        events.append(("rename", target.name))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "rename", record_rename)
    worker.reads(signed(NEW))
    assert events == [("sync", "ner.new"), ("rename", "ner.json"), ("sync", path.parent.name)]


def test_a_power_cut_while_it_is_written_leaves_the_one_before(
    worker: Worker, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker.reads(signed(OLD))
    with power_cut():
        assert worker.reads(signed(NEW)) == [True]
    assert "remembered until the process ends" in caplog.text
    assert worker.reads(signed(OLD)) == [False], "in memory it is remembered"
    (files(state)[0].with_suffix(".new")).write_bytes(b'{"value": "ha')
    worker.restart()
    assert worker.live == OLD.version
    assert worker.reads(signed(NEW)) == [True]
    worker.restart()
    assert worker.live == NEW.version


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"value": 1, "signature": ""}', b'{"value": "x", "signature": "zz"}', None]
)
def test_a_damaged_or_forged_file_is_ignored(
    content: bytes | None, worker: Worker, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker.reads(signed(OLD))
    (path,) = files(state)
    path.write_bytes(
        path.read_bytes().replace(b"000000000000", b"ffffffffffff") if content is None else content
    )
    worker.restart()
    assert worker.live is None
    assert "ner of " in caplog.text
    assert worker.reads(signed(NEW)) == [True]
    worker.restart()
    assert worker.live == NEW.version


def test_without_a_folder_it_is_remembered_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    worker = Worker(tmp_path / "file")
    assert worker.reads(signed(NEW), signed(OLD)) == [True, False]


def test_a_stopped_process_that_holds_the_lock_does_not_stop_the_others(worker: Worker, state: Path) -> None:
    worker.reads(signed(OLD))
    (lock,) = [p for p in state.rglob(".lock")]
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = time.monotonic()
        assert worker.reads(signed(NEW)) == [True]
        assert time.monotonic() - started < 10


def test_the_sequence_of_another_key_has_nothing_to_do_with_it(worker: Worker, state: Path) -> None:
    worker.reads(signed(NEW))
    other = Trust(STRANGER.public_key(), state)
    current: dict[str, Announcement] = {}
    assert apply_message(current, signed(OLD, STRANGER), other) == "ner"


def test_without_a_key_signatures_are_ignored_and_a_bad_key_is_an_error(tmp_path: Path, keys: Keys) -> None:
    current: dict[str, Announcement] = {}
    for message in (signed(NEW, STRANGER), signed(OLD), sent(b"ner", encode(NEW))):
        assert apply_message(current, message) == "ner"
    assert current == {"ner": NEW}
    assert Trust.of(Settings()) is None
    assert Trust.of(Settings(release_key=keys.public)) is not None
    with pytest.raises(ReleaseError, match="no public key"):
        Trust.of(Settings(release_key=tmp_path / "nowhere.pem"))


def test_pipelines_with_different_prefixes_remember_their_own_announcements(tmp_path: Path) -> None:
    one, other = (Settings(state=tmp_path, prefix=prefix) for prefix in ("", "staging."))
    assert one.state_folder == tmp_path
    assert other.state_folder == tmp_path / "staging."
