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


def test_without_a_signature_only_the_manifest_is_read(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into, KEY.public_key()))
    assert "not signed" in message
    assert contents(into) == {}
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
def test_a_malformed_task_or_version_is_refused_without_access(task: str, version: str, into: Path) -> None:
    # This protocol is unknown: any access would raise a StoreError.
    message = refusal(ReleaseError, lambda: fetch("no-such-protocol://host", task, version, into))
    assert message.endswith("is not a task and version")
    refusal(ReleaseError, lambda: read_manifest("no-such-protocol://host", task, version))


def test_the_manifest_of_another_version_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    other = release.manifest.model_copy(update={"kind": "another"})
    put(root, release, MANIFEST, manifest_bytes(other))
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    found = version_of(manifest_bytes(other))
    assert message == f"{release.version}: the manifest in this folder is that of {found}"
    refusal(ReleaseError, lambda: read_manifest(root, "ner", release.version))


WRONG = [
    (MANIFEST, b" " * (MAX_MANIFEST_BYTES + 1), "manifest.json is larger than"),
    ("extra.tsv", b"", "extra.tsv is not declared in the manifest"),
    ("sub/x.tsv", b"", "sub is not a regular file"),
    ("drugs.tsv", None, "drugs.tsv is missing"),
    ("drugs.tsv", b"", "drugs.tsv has 0 bytes"),
    ("drugs.tsv", b"name\tgenerix\n", "drugs.tsv does not have the declared sha256"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong[2])
def test_what_is_not_as_declared_is_refused(
    wrong: tuple[str, bytes | None, str], release: Release, root: str, into: Path
) -> None:
    name, content, reason = wrong
    deliver(release, root)
    if content is None:
        remove(root, release, name)
    else:
        put(root, release, name, content)
    message = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["../x.tsv", "/tmp/pv-x.tsv", "sub/x.tsv", "..", "", "x\0.tsv", MANIFEST])
def test_a_name_outside_the_folder_is_refused(name: str, release: Release, root: str, into: Path) -> None:
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


def test_a_release_elsewhere_keeps_its_manifests_task(release: Release, root: str, into: Path) -> None:
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


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["drugs.tsv", MANIFEST, SIGNATURE])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path.parents[3] / "elsewhere")])
def test_what_is_not_a_regular_file_is_refused_without_reading_it(
    make: Callable[[Path], None], name: str, release: Release, tmp_path: Path, into: Path
) -> None:
    sign(release, KEY)
    store = str(tmp_path / "store")
    deliver(release, store)
    path = tmp_path / "store/ner" / release.version / name
    path.rename(tmp_path / "elsewhere")
    make(path)
    message = refusal(ReleaseError, lambda: fetch(store, "ner", release.version, into))
    assert message == f"{release.version}: {name} is not a regular file"
    if name == MANIFEST:
        assert MANIFEST in refusal(ReleaseError, lambda: read_manifest(store, "ner", release.version))
