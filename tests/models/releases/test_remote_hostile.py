"""A release in a store is refused where it is not exactly as declared, and nothing else of it is read."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from models.releases.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    Release,
    ReleaseError,
    manifest_bytes,
    version_of,
)
from models.releases.remote import deliver, fetch, read_manifest
from models.releases.signature import SIGNATURE
from models.releases.store import sign
from tests.models.releases.stores import KEY, contents, put, put_release, refusal, remove


def test_without_the_required_signature_only_the_manifest_is_read(
    release: Release, root: str, into: Path
) -> None:
    deliver(release, root)
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into, KEY.public_key()))
    assert "not signed" in message
    assert contents(into) == {}


def test_a_signature_of_the_wrong_length_is_refused_where_one_is_required(
    release: Release, root: str, into: Path
) -> None:
    deliver(release, root)
    put(root, release, SIGNATURE, b"x" * 10_000)
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into, KEY.public_key()))
    assert "signature" in message


@pytest.mark.parametrize(
    ("task", "version"),
    [
        ("ner", "../../etc"),
        ("ner", "/etc/passwd"),
        ("ner", ""),
        ("ner", "*"),
        ("ner", "0" * 11),
        ("ner", "0" * 13),
        ("ner", "0" * 12 + "\n"),
        ("ner", "0123456789AB"),
        ("..", "0" * 12),
        ("", "0" * 12),
        ("ner/../acronym", "0" * 12),
    ],
)
def test_a_malformed_task_or_version_is_refused_without_access_to_the_store(
    task: str, version: str, into: Path
) -> None:
    # This protocol is unknown: any access would raise a StoreError.
    message = refusal(ReleaseError, lambda: fetch("no-such-protocol://host", task, version, into))
    assert message.endswith("is not a task and version")
    refusal(ReleaseError, lambda: read_manifest("no-such-protocol://host", task, version))


def test_the_manifest_of_another_version_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    other = release.manifest.model_copy(update={"kind": "another"})
    put(root, release, MANIFEST, manifest_bytes(other))
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert (
        message
        == f"{release.version}: the manifest in this folder is that of {version_of(manifest_bytes(other))}"
    )
    refusal(ReleaseError, lambda: read_manifest(root, "ner", release.version))


def test_a_manifest_beyond_the_limit_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    put(root, release, MANIFEST, b" " * (MAX_MANIFEST_BYTES + 1))
    assert "larger than" in refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))


def test_an_undeclared_file_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    put(root, release, "extra.tsv", b"")
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert message == f"{release.version}: extra.tsv is not declared in the manifest"


def test_a_folder_in_a_releases_folder_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    fs, base = fsspec.core.url_to_fs(root)
    fs.makedirs(f"{base}/ner/{release.version}/sub")
    fs.pipe_file(f"{base}/ner/{release.version}/sub/x.tsv", b"")
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert message == f"{release.version}: sub is not a regular file"


def test_a_missing_file_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    remove(root, release, "drugs.tsv")
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert message == f"{release.version}: drugs.tsv is missing"


@pytest.mark.parametrize("content", [b"", b"name\tgenerix\n", b"name\tgeneric\n\n"])
def test_a_changed_file_is_refused(content: bytes, release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    put(root, release, "drugs.tsv", content)
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert "drugs.tsv" in message


@pytest.mark.parametrize("name", ["drugs.tsv", MANIFEST, SIGNATURE])
def test_a_symlink_in_a_directory_is_refused(name: str, release: Release, tmp_path: Path, into: Path) -> None:
    sign(release, KEY)
    deliver(release, str(tmp_path / "store"))
    path = tmp_path / "store/ner" / release.version / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    message = refusal(ReleaseError, lambda: fetch(str(tmp_path / "store"), "ner", release.version, into))
    assert message == f"{release.version}: {name} is not a regular file"


def test_a_named_pipe_in_a_directory_is_refused_without_reading_it(
    release: Release, tmp_path: Path, into: Path
) -> None:
    deliver(release, str(tmp_path / "store"))
    path = tmp_path / "store/ner" / release.version / "drugs.tsv"
    path.unlink()
    os.mkfifo(path)
    message = refusal(ReleaseError, lambda: fetch(str(tmp_path / "store"), "ner", release.version, into))
    assert message == f"{release.version}: drugs.tsv is not a regular file"


@pytest.mark.parametrize("name", ["../x.tsv", "/tmp/pv-x.tsv", "sub/x.tsv", "..", "", "x\0.tsv", MANIFEST])
def test_a_declared_name_outside_the_folder_is_refused(
    name: str, release: Release, root: str, into: Path
) -> None:
    fields = release.manifest.model_dump()
    fields["files"] = {name: next(iter(fields["files"].values()))}
    task, version = put_release(root, fields, {})
    fs, base = fsspec.core.url_to_fs(root)
    fs.pipe_file(f"{base}/{task}/x.tsv", b"outside")
    message = refusal(ReleaseError, lambda: fetch(root, task, version, into))
    assert "not a plain file name" in message
    assert sorted(p.name for p in into.iterdir()) == [MANIFEST]
    assert not (into.parent / "x.tsv").exists()


def test_a_file_type_that_may_hold_code_is_not_copied(release: Release, root: str, into: Path) -> None:
    content = b"import os\n"
    fields = release.manifest.model_dump()
    fields["files"] = {"model.pkl": next(iter(fields["files"].values())) | {"size": len(content)}}
    task, version = put_release(root, fields, {"model.pkl": content})
    assert "type .pkl" in refusal(ReleaseError, lambda: fetch(root, task, version, into))
    assert not (into / "model.pkl").exists()


def test_a_release_in_another_tasks_folder_keeps_the_task_of_its_manifest(
    release: Release, root: str, into: Path
) -> None:
    """The folder is not part of the manifest: the caller must check the task."""
    deliver(release, root)
    fs, base = fsspec.core.url_to_fs(root)
    fs.makedirs(f"{base}/acronym", exist_ok=True)
    fs.copy(f"{base}/ner/{release.version}/", f"{base}/acronym/{release.version}/", recursive=True)
    assert fetch(root, "acronym", release.version, into).task == "ner"


@pytest.fixture
def alarm() -> Iterator[None]:
    """Interrupts a test after two seconds: reading a named pipe without a writer would block for ever."""

    def interrupt(*_: object) -> None:
        raise TimeoutError("the read blocks")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path.with_name("real"))])
def test_a_manifest_that_is_not_a_regular_file_is_not_read(
    make: Callable[[Path], None], release: Release, tmp_path: Path, alarm: None
) -> None:
    store = str(tmp_path / "store")
    deliver(release, store)
    path = tmp_path / "store/ner" / release.version / MANIFEST
    path.rename(path.with_name("real"))
    make(path)
    message = refusal(ReleaseError, lambda: read_manifest(store, "ner", release.version))
    assert MANIFEST in message
