"""Releases on disk: whole or not there, and refused wherever anything is not as declared."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.releases.manifest import MAX_MANIFEST_BYTES, Manifest, Release, ReleaseError
from models.releases.store import describe, open_release, publish

WEIGHTS = (2).to_bytes(8, "little") + b"{}" + b"\x00\x01\x02" * 50
CONTENTS = {"weights.safetensors": WEIGHTS, "drugs.tsv": b"name\tgeneric\n", "notes.json": b"{}"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return folder


def manifest_of(source: Path, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "task": "ner",
        "kind": "a test",
        "base": "mini",
        "base_sha256": None,
        "files": {name: file.model_dump() for name, file in describe(source).items()},
        "configuration": {"max_pieces": 128},
        "scores": [],
        "training_data": [],
        "code_commit": "0123456789ab",
        "canary": {"inputs": [], "outputs": []},
    }
    return Manifest.model_validate(fields | changes)


@pytest.fixture
def release(source: Path, tmp_path: Path) -> Release:
    return publish(source, manifest_of(source), tmp_path / "root")


def test_what_is_published_can_be_opened_and_read(release: Release, source: Path, tmp_path: Path) -> None:
    opened = open_release(release.path)
    assert opened.manifest == manifest_of(source)
    assert opened.task == "ner"
    assert release.path == tmp_path / "root/ner" / opened.version
    assert {name: opened.file(name).read_bytes() for name in CONTENTS} == CONTENTS
    assert sorted(p.name for p in release.path.iterdir()) == sorted([*CONTENTS, "manifest.json"])


def test_a_version_is_the_beginning_of_the_manifests_sha256(release: Release) -> None:
    stored = (release.path / "manifest.json").read_bytes()
    assert release.version == hashlib.sha256(stored).hexdigest()[:12]


def test_publishing_again_gives_the_same_version_and_changes_nothing(
    release: Release, source: Path, tmp_path: Path
) -> None:
    before = {p.name: p.stat().st_mtime_ns for p in release.path.iterdir()}
    again = publish(source, manifest_of(source), tmp_path / "root")
    assert again.version == release.version
    assert {p.name: p.stat().st_mtime_ns for p in release.path.iterdir()} == before
    assert [p.name for p in release.path.parent.iterdir()] == [release.version]


def test_another_manifest_is_another_version_beside_the_first(
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


def test_what_a_killed_publish_left_aside_does_not_hinder_the_next(source: Path, tmp_path: Path) -> None:
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


def test_a_file_that_the_manifest_does_not_declare_cannot_be_asked_for(release: Release) -> None:
    with pytest.raises(ReleaseError, match=r"declares no file other\.tsv"):
        release.file("other.tsv")


def stored(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "manifest.json").read_bytes())
    return found


def rewrite(path: Path, **changes: Any) -> None:
    (path / "manifest.json").write_text(json.dumps(stored(path) | changes), encoding="utf-8")


def declare(path: Path, name: str, content: bytes = b"") -> None:
    """Declares a file rightly in all but its name."""
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    rewrite(path, files=stored(path)["files"] | {name: entry})


def _named(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        outside = path.parent / "evil.tsv"
        outside.write_bytes(b"")
        declare(path, name.replace("OUTSIDE", str(outside)))

    return change


def _added(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        (path / name).write_bytes(b"")
        declare(path, name)

    return change


def _declared_size(size: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        files = stored(path)["files"]
        files["drugs.tsv"]["size"] = size
        rewrite(path, files=files)

    return change


def _wrong_digest(path: Path) -> None:
    files = stored(path)["files"]
    files["drugs.tsv"]["sha256"] = "0" * 64
    rewrite(path, files=files)


def _flipped_bit(path: Path) -> None:
    content = bytearray((path / "weights.safetensors").read_bytes())
    content[7] ^= 1
    (path / "weights.safetensors").write_bytes(content)


def _symlinked_file(path: Path) -> None:
    elsewhere = path.parent / "elsewhere.tsv"
    (path / "drugs.tsv").rename(elsewhere)
    (path / "drugs.tsv").symlink_to(elsewhere)


def _symlinked_manifest(path: Path) -> None:
    elsewhere = path.parent / "elsewhere.json"
    (path / "manifest.json").rename(elsewhere)
    (path / "manifest.json").symlink_to(elsewhere)


def _symlinked_directory(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere", target_is_directory=True)


def _directory_for_a_file(path: Path) -> None:
    (path / "drugs.tsv").unlink()
    (path / "drugs.tsv").mkdir()


def _pipe_for_a_file(path: Path) -> None:
    (path / "drugs.tsv").unlink()
    os.mkfifo(path / "drugs.tsv")


def _truncated(path: Path) -> None:
    os.truncate(path / "weights.safetensors", 10)


def _without_field(path: Path) -> None:
    rest = stored(path)
    del rest["canary"]
    (path / "manifest.json").write_text(json.dumps(rest), encoding="utf-8")


def _manifest(content: bytes) -> Callable[[Path], int]:
    return lambda path: (path / "manifest.json").write_bytes(content)


def _fields(**changes: Any) -> Callable[[Path], None]:
    return lambda path: rewrite(path, **changes)


SCORE = {
    "name": "f1",
    "value": 0.5,
    "definition": "d",
    "data": "d",
    "records": 3,
    "baseline": None,
    "baseline_definition": "b",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(_wrong_digest, "declared sha256", id="wrong digest"),
        pytest.param(_flipped_bit, "declared sha256", id="one bit flipped"),
        pytest.param(lambda p: (p / "drugs.tsv").unlink(), "drugs.tsv is missing", id="missing file"),
        pytest.param(_truncated, "has 10 bytes, 160 are declared", id="truncated file"),
        pytest.param(_declared_size(12), "13 bytes, 12 are declared", id="wrong size"),
        pytest.param(_declared_size(-1), "files.drugs.tsv.size", id="negative size"),
        pytest.param(_declared_size(True), "files.drugs.tsv.size", id="size of a wrong type"),
        pytest.param(_declared_size(3 << 30), "files.drugs.tsv.size", id="size beyond the limit"),
        pytest.param(
            lambda p: (p / "extra.tsv").write_bytes(b""), "extra.tsv is not declared", id="undeclared file"
        ),
        pytest.param(lambda p: (p / "sub").mkdir(), "sub is not declared", id="undeclared directory"),
        pytest.param(_named("../evil.tsv"), "no plain file name", id="name that leads outside"),
        pytest.param(_named("sub/../../evil.tsv"), "no plain file name", id="name that leads around"),
        pytest.param(_named("OUTSIDE"), "no plain file name", id="absolute name"),
        pytest.param(_named(".."), "no plain file name", id="name of the folder above"),
        pytest.param(_named(""), "no plain file name", id="empty name"),
        pytest.param(_named("..\\evil.tsv"), "no plain file name", id="name with a backslash"),
        pytest.param(_named("a\0.tsv"), "no plain file name", id="name with a NUL"),
        pytest.param(_named("manifest.json"), "no plain file name", id="manifest declares itself"),
        pytest.param(_symlinked_file, "drugs.tsv is no regular file", id="symlink for a file"),
        pytest.param(_symlinked_directory, "no release directory", id="symlink for the directory"),
        pytest.param(_symlinked_manifest, "no manifest.json", id="symlink for the manifest"),
        pytest.param(_directory_for_a_file, "drugs.tsv is no regular file", id="directory for a file"),
        pytest.param(_pipe_for_a_file, "drugs.tsv is no regular file", id="pipe for a file"),
        pytest.param(_added("model.pkl"), "type .pkl", id="pickle"),
        pytest.param(_added("pytorch_model.bin"), "type .bin", id="torch pickle"),
        pytest.param(_added("code.py"), "type .py", id="code"),
        pytest.param(_added("model.safetensors.pkl"), "type .pkl", id="pickle in disguise"),
        pytest.param(_added("weights"), r"type \(none\)", id="no suffix"),
        pytest.param(lambda p: (p / "manifest.json").unlink(), "no manifest.json", id="no manifest"),
        pytest.param(_manifest(b"not json"), "Invalid JSON", id="manifest that is no JSON"),
        pytest.param(_manifest(b""), "manifest.json", id="empty manifest"),
        pytest.param(_manifest(b"[]"), "the document", id="manifest that is a list"),
        pytest.param(_manifest(b"\xff\xfe{}"), "manifest.json", id="manifest that is no UTF-8"),
        pytest.param(_manifest(b"[" * 500_000), "manifest.json", id="manifest nested deeply"),
        pytest.param(
            _manifest(b" " * (MAX_MANIFEST_BYTES + 1)), "manifest.json is larger", id="oversized manifest"
        ),
        pytest.param(_fields(extra=1), "extra: Extra inputs", id="extra field"),
        pytest.param(_without_field, "canary: Field required", id="missing field"),
        pytest.param(_fields(format=2), "format", id="later format"),
        pytest.param(_fields(task="translation"), "task", id="unknown task"),
        pytest.param(_fields(kind=3), "kind", id="number for a text"),
        pytest.param(_fields(files=[]), "files", id="list for a mapping"),
        pytest.param(_fields(base_sha256="ABC"), "base_sha256", id="no digest"),
        pytest.param(_fields(scores=[SCORE | {"records": "3"}]), "scores.0.records", id="text for a number"),
        pytest.param(_fields(scores=[SCORE | {"note": ""}]), "scores.0.note", id="extra field of a score"),
        pytest.param(_fields(training_data=[{"name": "x"}]), "training_data.0.licence", id="no licence"),
    ],
)
def test_a_release_that_is_not_as_declared_is_refused_in_one_line(
    release: Release, change: Callable[[Path], object], message: str
) -> None:
    change(release.path)
    with pytest.raises(ReleaseError, match=message) as refused:
        open_release(release.path)
    assert "\n" not in str(refused.value)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no release directory"):
        open_release(tmp_path / "nowhere")


def test_a_file_for_the_directory_is_refused(release: Release) -> None:
    with pytest.raises(ReleaseError, match="no release directory"):
        open_release(release.path / "drugs.tsv")


def test_a_name_that_no_file_system_takes_is_refused(release: Release) -> None:
    declare(release.path, "a" * 300 + ".tsv")
    with pytest.raises(ReleaseError):
        open_release(release.path)


@pytest.mark.parametrize("change", [_named("a\nFAKE LOG LINE.tsv"), _fields(**{"x\nFAKE LOG LINE": 1})])
def test_a_line_break_in_a_name_does_not_break_the_message(
    release: Release, change: Callable[[Path], None]
) -> None:
    change(release.path)
    with pytest.raises(ReleaseError) as refused:
        open_release(release.path)
    assert "\n" not in str(refused.value)
