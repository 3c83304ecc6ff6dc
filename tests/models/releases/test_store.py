"""Releases on disk: built whole or not at all; and the private folders that they are copied to."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from models.releases.manifest import Release, ReleaseError
from models.releases.private import LOCK, PREFIX, private_folder, remove_abandoned
from models.releases.signature import SIGNATURE
from models.releases.store import build, copy, open_release, sign
from tests.models.releases.small_release import CONTENTS, manifest_of
from tests.models.releases.stores import power_cut


def test_a_built_release_can_be_opened_and_read(release: Release, source: Path, tmp_path: Path) -> None:
    opened = open_release(release.path)
    assert opened.manifest == manifest_of(source)
    assert opened.task == "ner"
    assert release.path == tmp_path / "root/ner" / opened.version
    assert {name: opened.file(name).read_bytes() for name in CONTENTS} == CONTENTS
    assert sorted(p.name for p in release.path.iterdir()) == sorted([*CONTENTS, "manifest.json"])
    stored = (release.path / "manifest.json").read_bytes()
    assert release.version == hashlib.sha256(stored).hexdigest()[:12]
    assert release.path.stat().st_mode & 0o777 == 0o755, "everyone can read it"


def test_building_again_changes_nothing(release: Release, source: Path, tmp_path: Path) -> None:
    before = {p.name: p.stat().st_mtime_ns for p in release.path.iterdir()}
    again = build(source, manifest_of(source), tmp_path / "root")
    assert again.version == release.version
    assert {p.name: p.stat().st_mtime_ns for p in release.path.iterdir()} == before
    assert [p.name for p in release.path.parent.iterdir()] == [release.version]
    other = build(source, manifest_of(source, kind="another test"), tmp_path / "root")
    assert {p.name for p in release.path.parent.iterdir()} == {release.version, other.version}


def test_building_over_a_damaged_release_is_refused(release: Release, source: Path, tmp_path: Path) -> None:
    (release.path / "drugs.tsv").write_bytes(b"name\tgenerix\n")
    with pytest.raises(ReleaseError, match="sha256"):
        build(source, manifest_of(source), tmp_path / "root")


def test_a_build_interrupted_before_the_rename_leaves_nothing(source: Path, tmp_path: Path) -> None:
    with power_cut(), pytest.raises(OSError, match="power cut"):
        build(source, manifest_of(source), tmp_path / "root")
    assert list((tmp_path / "root/ner").iterdir()) == []
    release = build(source, manifest_of(source), tmp_path / "root")
    assert open_release(release.path).version == release.version


def test_a_copy_that_another_process_made_meanwhile_gets_the_signature(
    release: Release, tmp_path: Path
) -> None:
    rename, root = Path.rename, tmp_path / "copies"
    key = Ed25519PrivateKey.generate()

    def rename_later(self: Path, target: Path) -> Path:
        if not target.exists() and target.parent.parent == root:
            shutil.copytree(release.path, target, ignore=shutil.ignore_patterns(SIGNATURE))
        return rename(self, target)

    sign(release, key)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "rename", rename_later)
        made = copy(release, root)
    open_release(made.path, key.public_key())


def test_a_temporary_folder_of_a_killed_build_is_removed_by_the_next(source: Path, tmp_path: Path) -> None:
    left = tmp_path / "root/ner/.building-abc"
    left.mkdir(parents=True)
    (left / "drugs.tsv").write_bytes(b"half")
    (left / LOCK).touch()
    release = build(source, manifest_of(source), tmp_path / "root")
    assert open_release(release.path).version == release.version
    assert not left.exists()


def test_a_folder_that_changed_since_it_was_described_is_not_built(source: Path, tmp_path: Path) -> None:
    manifest = manifest_of(source)
    (source / "drugs.tsv").write_bytes(b"name\tgenerix\n")
    with pytest.raises(ReleaseError, match=r"drugs\.tsv does not have the declared sha256"):
        build(source, manifest, tmp_path / "root")
    assert list((tmp_path / "root/ner").iterdir()) == []


def test_an_undeclared_file_has_no_path(release: Release) -> None:
    with pytest.raises(ReleaseError, match=r"declares no file other\.tsv"):
        release.file("other.tsv")


HOLD = """
import sys
from pathlib import Path
from models.releases.private import private_folder
with private_folder("release", Path(sys.argv[1])) as folder:
    (folder / "weights").write_bytes(b"w")
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that has a private folder until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_is_closed_to_others_and_removed_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(KeyError), private_folder("0123456789ab", tmp_path) as folder:
        assert folder.name == "0123456789ab"
        assert list(folder.iterdir()) == []
        assert [stat.S_IMODE(p.stat().st_mode) for p in (folder, folder.parent)] == [0o700, 0o700]
        (folder / "x").write_bytes(b"x")
        raise KeyError  # after an error too
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_has_left_is_removed_and_what_a_living_one_uses_is_not(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, killed), holder(tmp_path) as (_, living):
        assert killed.is_dir()
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert killed.is_dir(), "a killed process removes nothing"
        with private_folder("release", tmp_path) as own:
            assert not killed.parent.exists()
            assert (living / "weights").read_bytes() == b"w"
            remove_abandoned(tmp_path)
            assert own.is_dir(), "nor does a process remove what it uses itself"


NAMES = "abcdefghijklmnop"


@pytest.mark.parametrize("abandoned", [False, True])
def test_the_lock_is_removed_last_so_that_what_a_kill_leaves_is_removed_later(
    abandoned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, removed = os.unlink, list[str]()

    def unlink(path: str | Path, **options: int) -> None:
        removed.append(Path(path).name)
        real(path, **options)

    monkeypatch.setattr(os, "unlink", unlink)
    with nullcontext(tmp_path / f"{PREFIX}a/x") if abandoned else private_folder("x", tmp_path) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder.parent / LOCK).touch()
        # In one folder the lock may happen to be the last that the file system lists.
        for name in NAMES:
            (folder.parent / name).mkdir()
            (folder.parent / name / name).write_bytes(b"")
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert (sorted(removed), removed[-1]) == (sorted([LOCK, *NAMES]), LOCK)


def test_only_folders_with_the_prefix_and_a_lock_are_removed(tmp_path: Path) -> None:
    for name, lock in ((f"{PREFIX}a", True), (f"{PREFIX}b", False), ("pv-other", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"")
        if lock:
            (tmp_path / name / LOCK).write_bytes(b"")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK).write_bytes(b"")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}file").write_bytes(b"")
    remove_abandoned(tmp_path)
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == sorted([f"{PREFIX}b", "pv-other", "elsewhere", f"{PREFIX}link", f"{PREFIX}file"])


def test_a_folder_that_another_process_removes_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    removed: list[Path] = []

    def flock(descriptor: int, operation: int) -> None:
        if not removed:
            (folder,) = tmp_path.iterdir()
            removed.append(folder)
            remove_abandoned(tmp_path)
            assert not folder.exists()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with private_folder("release", tmp_path) as folder:
        assert removed
        assert folder.parent != removed[0]
        assert folder.is_dir()


def test_a_file_system_without_locks_is_used_and_nothing_there_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with private_folder("one", tmp_path) as one, private_folder("two", tmp_path) as two:
        assert one.is_dir()
        assert two.is_dir()
    assert list(tmp_path.iterdir()) == []
