"""Releases on disk: published whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release, publish
from tests.models.releases.small_release import CONTENTS, manifest_of


def test_a_published_release_can_be_opened_and_read(release: Release, source: Path, tmp_path: Path) -> None:
    opened = open_release(release.path)
    assert opened.manifest == manifest_of(source)
    assert opened.task == "ner"
    assert release.path == tmp_path / "root/ner" / opened.version
    assert {name: opened.file(name).read_bytes() for name in CONTENTS} == CONTENTS
    assert sorted(p.name for p in release.path.iterdir()) == sorted([*CONTENTS, "manifest.json"])


def test_a_version_is_the_beginning_of_the_manifests_sha256(release: Release) -> None:
    stored = (release.path / "manifest.json").read_bytes()
    assert release.version == hashlib.sha256(stored).hexdigest()[:12]


def test_publishing_again_returns_the_same_version_and_changes_nothing(
    release: Release, source: Path, tmp_path: Path
) -> None:
    before = {p.name: p.stat().st_mtime_ns for p in release.path.iterdir()}
    again = publish(source, manifest_of(source), tmp_path / "root")
    assert again.version == release.version
    assert {p.name: p.stat().st_mtime_ns for p in release.path.iterdir()} == before
    assert [p.name for p in release.path.parent.iterdir()] == [release.version]


def test_another_manifest_is_another_version_next_to_the_first(
    release: Release, source: Path, tmp_path: Path
) -> None:
    other = publish(source, manifest_of(source, kind="another test"), tmp_path / "root")
    assert {p.name for p in release.path.parent.iterdir()} == {release.version, other.version}


def test_publishing_over_a_damaged_release_is_refused(release: Release, source: Path, tmp_path: Path) -> None:
    (release.path / "drugs.tsv").write_bytes(b"name\tgenerix\n")
    with pytest.raises(ReleaseError, match="sha256"):
        publish(source, manifest_of(source), tmp_path / "root")


def test_a_published_directory_can_be_read_by_everyone(release: Release) -> None:
    assert release.path.stat().st_mode & 0o777 == 0o755


def test_a_publish_interrupted_before_the_rename_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def power_cut(self: Path, target: Path) -> Path:
        raise OSError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", power_cut)
        with pytest.raises(OSError, match="power cut"):
            publish(source, manifest_of(source), tmp_path / "root")
    assert list((tmp_path / "root/ner").iterdir()) == []
    release = publish(source, manifest_of(source), tmp_path / "root")
    assert open_release(release.path).version == release.version


def test_a_temporary_folder_of_a_killed_publish_does_not_disturb_the_next(
    source: Path, tmp_path: Path
) -> None:
    left = tmp_path / "root/ner/.publishing-abc"
    left.mkdir(parents=True)
    (left / "drugs.tsv").write_bytes(b"half")
    release = publish(source, manifest_of(source), tmp_path / "root")
    assert open_release(release.path).version == release.version


def test_a_folder_that_changed_since_it_was_described_is_not_published(source: Path, tmp_path: Path) -> None:
    manifest = manifest_of(source)
    (source / "drugs.tsv").write_bytes(b"name\tgenerix\n")
    with pytest.raises(ReleaseError, match=r"drugs\.tsv does not have the declared sha256"):
        publish(source, manifest, tmp_path / "root")
    assert list((tmp_path / "root/ner").iterdir()) == []


def test_an_undeclared_file_has_no_path(release: Release) -> None:
    with pytest.raises(ReleaseError, match=r"declares no file other\.tsv"):
        release.file("other.tsv")
