"""Releases on disk are refused where anything is not as declared."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.releases.manifest import MAX_MANIFEST_BYTES, Release, ReleaseError
from models.releases.store import open_release
from tests.models.releases.small_release import declare, rewrite, stored


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


def _drugs(**entry: object) -> Callable[[Path], None]:
    """Another entry for a file."""

    def change(path: Path) -> None:
        files = stored(path)["files"]
        rewrite(path, files=files | {"drugs.tsv": files["drugs.tsv"] | entry})

    return change


def _linked(name: str) -> Callable[[Path], None]:
    """A symbolic link in the place of a file, or of the directory itself."""

    def change(path: Path) -> None:
        (path / name).rename(path.parent / "elsewhere")
        (path / name).symlink_to(path.parent / "elsewhere")

    return change


def _replaced(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        (path / "drugs.tsv").unlink()
        make(path / "drugs.tsv")

    return change


def _manifest(content: bytes) -> Callable[[Path], int]:
    return lambda path: (path / "manifest.json").write_bytes(content)


def _fields(**changes: Any) -> Callable[[Path], None]:
    return lambda path: rewrite(path, **changes)


SCORE = {
    "name": "f1", "value": 0.5, "definition": "d", "data": "d", "records": 3, "baseline": None,
    "baseline_definition": "b",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(_drugs(sha256="0" * 64), "declared sha256", id="wrong digest"),
        pytest.param(
            lambda p: (p / "drugs.tsv").write_bytes(b"name\tgeneriC\n"), "declared sha256", id="a bit flipped"
        ),
        pytest.param(lambda p: (p / "drugs.tsv").unlink(), "drugs.tsv is missing", id="missing file"),
        pytest.param(
            lambda p: os.truncate(p / "weights.safetensors", 10),
            "has 10 bytes, 160 are declared",
            id="truncated file",
        ),
        pytest.param(_drugs(size=12), "13 bytes, 12 are declared", id="wrong size"),
        pytest.param(_drugs(size=-1), "files.drugs.tsv.size", id="negative size"),
        pytest.param(_drugs(size=True), "files.drugs.tsv.size", id="size of a wrong type"),
        pytest.param(_drugs(size=3 << 30), "files.drugs.tsv.size", id="size beyond the limit"),
        pytest.param(
            lambda p: (p / "extra.tsv").write_bytes(b""), "extra.tsv is not declared", id="undeclared file"
        ),
        pytest.param(lambda p: (p / "sub").mkdir(), "sub is not declared", id="undeclared directory"),
        pytest.param(_named("../evil.tsv"), "not a plain file name", id="name that leads outside"),
        pytest.param(_named("sub/../../evil.tsv"), "not a plain file name", id="name that leads around"),
        pytest.param(_named("OUTSIDE"), "not a plain file name", id="absolute name"),
        pytest.param(_named(".."), "not a plain file name", id="name of the folder above"),
        pytest.param(_named(""), "not a plain file name", id="empty name"),
        pytest.param(_named("..\\evil.tsv"), "not a plain file name", id="name with a backslash"),
        pytest.param(_named("a\0.tsv"), "not a plain file name", id="name with a NUL"),
        pytest.param(_named("manifest.json"), "not a plain file name", id="manifest declares itself"),
        pytest.param(_linked("drugs.tsv"), "drugs.tsv is not a regular file", id="symlink for a file"),
        pytest.param(_linked(""), "no release directory", id="symlink for the directory"),
        pytest.param(_linked("manifest.json"), "no manifest.json", id="symlink for the manifest"),
        pytest.param(_replaced(Path.mkdir), "drugs.tsv is not a regular file", id="directory for a file"),
        pytest.param(_replaced(os.mkfifo), "drugs.tsv is not a regular file", id="pipe for a file"),
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
        pytest.param(_fields(canary={"inputs": [], "outputs": []}), "the canary is empty", id="empty canary"),
        pytest.param(
            _fields(canary={"inputs": ["a"], "outputs": []}),
            "the canary is empty",
            id="canary without outputs",
        ),
        pytest.param(_manifest(b'{"format": 1}'), "task: Field required", id="missing field"),
        pytest.param(_fields(format=2), "format", id="later format"),
        pytest.param(_fields(task="translation"), "task", id="unknown task"),
        pytest.param(_fields(kind=3), "kind", id="number for a text"),
        pytest.param(_fields(files=[]), "files", id="list for a mapping"),
        pytest.param(_fields(base_sha256="ABC"), "base_sha256", id="no digest"),
        pytest.param(_fields(scores=[SCORE | {"records": "3"}]), "scores.0.records", id="text for a number"),
        pytest.param(_fields(scores=[SCORE | {"note": ""}]), "scores.0.note", id="extra field of a score"),
        pytest.param(_named("a" * 300 + ".tsv"), "aaa", id="name too long for a file system"),
        pytest.param(
            _named("a\nFAKE LOG LINE.tsv"), "a FAKE LOG LINE.tsv is missing", id="name of two lines"
        ),
        pytest.param(_fields(**{"x\nFAKE LOG LINE": 1}), "FAKE", id="field of two lines"),
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


@pytest.mark.parametrize("name", ["nowhere", "drugs.tsv"])
def test_what_is_no_directory_is_refused(name: str, release: Release) -> None:
    with pytest.raises(ReleaseError, match="no release directory"):
        open_release(release.path / name)
