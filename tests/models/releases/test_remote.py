"""A store of releases: what is fetched is what was delivered, and stores that fail or return wrong data."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import fsspec
import pytest

from models.releases.manifest import MANIFEST, Release, ReleaseError, StoreError
from models.releases.remote import deliver, fetch, read_manifest, versions
from models.releases.signature import SIGNATURE
from models.releases.store import sign
from tests.models.releases.small_release import CONTENTS
from tests.models.releases.stores import KEY, MisbehavingStore, contents, power_cut, put, refusal, remove


def test_a_fetched_release_is_the_delivered_one_byte_by_byte(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    fetched = fetch(root, "ner", release.version, into)
    assert (fetched.version, fetched.task, fetched.path) == (release.version, "ner", into)
    assert fetched.manifest == release.manifest
    assert contents(into) == contents(release.path)
    assert read_manifest(root, "ner", release.version) == (release.path / MANIFEST).read_bytes()


def test_a_directory_may_be_given_relative_to_the_home_directory(
    release: Release, tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    deliver(release, "~/shared")
    assert (tmp_path / "shared/ner" / release.version).is_dir()
    assert fetch("~/shared", "ner", release.version, into).version == release.version


@pytest.mark.parametrize("signed_first", [False, True])
def test_a_signature_is_delivered_with_the_release_or_later_and_delivering_again_changes_nothing(
    signed_first: bool, release: Release, root: str, into: Path
) -> None:
    if not signed_first:
        deliver(release, root)
    sign(release, KEY)
    deliver(release, root)
    deliver(release, root)
    assert versions(root, "ner") == [release.version]
    assert fetch(root, "ner", release.version, into, KEY.public_key()).version == release.version
    assert (into / SIGNATURE).read_bytes() == (release.path / SIGNATURE).read_bytes()


def test_a_missing_version_is_an_error_of_the_store(release: Release, root: str, into: Path) -> None:
    message = refusal(StoreError, lambda: fetch(root, "ner", "0" * 12, into))
    assert message == f"ner {'0' * 12} is not in the store {root}"
    deliver(release, root)
    refusal(StoreError, lambda: fetch(root, "ner", "0" * 12, into))
    refusal(StoreError, lambda: fetch(root, "acronym", release.version, into))
    refusal(StoreError, lambda: read_manifest(root, "ner", "0" * 12))


def test_versions_lists_only_names_of_twelve_hexadecimal_digits(release: Release, root: str) -> None:
    assert versions(root, "ner") == []
    deliver(release, root)
    fs, base = fsspec.core.url_to_fs(root)
    for name in (".building-abc", "latest", "0123456789AB", "0" * 11, f".{release.version}.sig"):
        fs.makedirs(f"{base}/ner/{name}")
        fs.pipe_file(f"{base}/ner/{name}/{MANIFEST}", b"{}")
    fs.makedirs(f"{base}/ner/{'f' * 12}")
    fs.pipe_file(f"{base}/ner/{'f' * 12}/{MANIFEST}", b"{}")
    assert versions(root, "ner") == sorted([release.version, "f" * 12])
    assert versions(root, "acronym") == []


def test_an_interrupted_delivery_leaves_nothing_in_a_directory(
    release: Release, tmp_path: Path, into: Path
) -> None:
    store = str(tmp_path / "store")

    with power_cut():
        assert "power cut" in refusal(StoreError, lambda: deliver(release, store))
    assert list((tmp_path / "store/ner").iterdir()) == []
    deliver(release, store)
    assert fetch(store, "ner", release.version, into).version == release.version


def test_delivering_over_a_damaged_release_is_refused(release: Release, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    deliver(release, store)
    put(store, release, "drugs.tsv", b"name\tgenerix\n")
    assert "sha256" in refusal(ReleaseError, lambda: deliver(release, store))


PASSWORD = "hunter2-secret"


class EndlessFile(io.BytesIO):
    """A file without an end that counts the bytes read."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            raise AssertionError("the whole file is read at once")
        EndlessFiles.bytes_read += size
        return b"\0" * size


class EndlessFiles(MisbehavingStore):
    """Lists `drugs.tsv` with its declared size, but reading it never ends."""

    protocol = "endless"
    bytes_read: ClassVar[int] = 0

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if path.endswith("drugs.tsv") and mode == "rb":
            return EndlessFile()
        return super().open(path, mode, **options)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "does not have the declared sha256"), (b"\0" * 5_000_000, "has 5000000 bytes")],
)
def test_no_file_is_read_beyond_its_declared_size(
    content: bytes | None, reason: str, release: Release, memory: str, into: Path
) -> None:
    deliver(release, memory)
    if content:
        put(memory, release, "drugs.tsv", content)
    fsspec.register_implementation("endless", EndlessFiles, clobber=True)
    EndlessFiles.bytes_read = 0
    root = memory.replace("memory:", "endless:")
    assert f"drugs.tsv {reason}" in refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert EndlessFiles.bytes_read == (0 if content else len(CONTENTS["drugs.tsv"]))
    assert (into / "drugs.tsv").exists() == (content is None)


def test_a_file_that_ends_early_is_refused(release: Release, memory: str, into: Path) -> None:
    deliver(release, memory)

    class Short(MisbehavingStore):
        protocol = "short"

        def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            return io.BytesIO(b"n") if path.endswith("drugs.tsv") else super().open(path, mode, **options)

    fsspec.register_implementation("short", Short, clobber=True)
    message = refusal(
        ReleaseError, lambda: fetch(memory.replace("memory:", "short:"), "ner", release.version, into)
    )
    assert message == f"{into.name}: drugs.tsv has 1 bytes, {len(CONTENTS['drugs.tsv'])} are declared"


class FailingStore(MisbehavingStore):
    """Raises an error of two lines with its address, credentials included, from every operation."""

    protocol = "failing"

    def _fail(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError(f"503 from failing://user:{PASSWORD}@host/releases\nTraceback follows")

    ls = open = makedirs = put_file = _fail


@pytest.mark.parametrize(
    ("protocol", "reason"), [("failing", "RuntimeError: 503 from failing"), ("no-such-protocol", "rotocol")]
)
def test_the_failure_of_a_store_is_a_store_error_of_one_line_without_its_password(
    protocol: str, reason: str, release: Release, into: Path
) -> None:
    fsspec.register_implementation("failing", FailingStore, clobber=True)
    root = f"{protocol}://user:{PASSWORD}@host/releases"
    works: list[Callable[[], object]] = [
        lambda: fetch(root, "ner", release.version, into),
        lambda: deliver(release, root),
        lambda: versions(root, "ner"),
        lambda: read_manifest(root, "ner", release.version),
    ]
    for work in works:
        message = refusal(StoreError, work)
        assert reason in message
        assert PASSWORD not in message


@pytest.mark.parametrize("credentials", [f"user:{PASSWORD}", PASSWORD, f":{PASSWORD}", f"user:p@{PASSWORD}"])
def test_the_address_of_a_store_is_shown_without_its_password(credentials: str, into: Path) -> None:
    root = f"memory://{credentials}@host/{uuid4().hex}"
    message = refusal(StoreError, lambda: fetch(root, "ner", "0" * 12, into))
    assert "is not in the store memory://" in message
    assert "host/" in message
    assert PASSWORD not in message


class StoreThatDisconnects(MisbehavingStore):
    """Loses the connection before the manifest is written."""

    protocol = "disconnecting"

    def put_file(self, source: str, target: str, **options: Any) -> None:
        if target.endswith(MANIFEST):
            raise ConnectionResetError("connection lost")
        super().put_file(source, target, **options)


def test_an_interrupted_upload_is_no_release_at_first(release: Release, memory: str, into: Path) -> None:
    fsspec.register_implementation("disconnecting", StoreThatDisconnects, clobber=True)
    message = refusal(StoreError, lambda: deliver(release, memory.replace("memory:", "disconnecting:")))
    assert "ConnectionResetError" in message
    assert "no manifest.json" in refusal(StoreError, lambda: fetch(memory, "ner", release.version, into))
    assert contents(into) == {}
    refusal(StoreError, lambda: read_manifest(memory, "ner", release.version))
    deliver(release, memory)
    assert fetch(memory, "ner", release.version, into).version == release.version


class StoreThatKeepsListings(MisbehavingStore):
    """Lists a folder once, as s3fs does."""

    protocol = "keeping"

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True)
        found = self.dircache[path]
        return found if detail else [entry["name"] for entry in found]

    def invalidate_cache(self, path: str | None = None) -> None:
        self.dircache.clear()


def test_a_release_listed_in_part_is_found_when_whole(release: Release, memory: str, into: Path) -> None:
    fsspec.register_implementation("keeping", StoreThatKeepsListings, clobber=True)
    root = memory.replace("memory:", "keeping:")
    deliver(release, memory)
    remove(memory, release, MANIFEST)
    assert "no manifest.json" in refusal(StoreError, lambda: fetch(root, "ner", release.version, into))
    put(memory, release, MANIFEST, (release.path / MANIFEST).read_bytes())
    assert fetch(root, "ner", release.version, into).version == release.version
