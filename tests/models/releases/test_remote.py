"""A store of releases: a fetched release is the delivered one, byte by byte."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from models.releases.manifest import MANIFEST, Release, ReleaseError, StoreError
from models.releases.remote import deliver, fetch, read_manifest, versions
from models.releases.signature import SIGNATURE
from models.releases.store import sign
from tests.models.releases.stores import KEY, contents, put, refusal


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


def test_a_missing_version_is_a_store_error_because_it_may_be_added_later(
    release: Release, root: str, into: Path
) -> None:
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
    release: Release, tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "store")

    def power_cut(self: Path, target: Path) -> Path:
        raise OSError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", power_cut)
        assert "power cut" in refusal(StoreError, lambda: deliver(release, store))
    assert list((tmp_path / "store/ner").iterdir()) == []
    deliver(release, store)
    assert fetch(store, "ner", release.version, into).version == release.version


def test_delivering_over_a_damaged_release_is_refused(release: Release, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    deliver(release, store)
    put(store, release, "drugs.tsv", b"name\tgenerix\n")
    assert "sha256" in refusal(ReleaseError, lambda: deliver(release, store))
