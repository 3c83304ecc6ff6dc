"""A release is loaded from a private copy: what others change after its verification has no effect."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from models import loading
from models.releases.manifest import MANIFEST, Release, ReleaseError
from models.releases.private import PREFIX
from models.releases.store import bundled
from streams.rollout import loading as rollout_loading
from streams.rollout.loading import load_release
from streams.settings import Settings

FORGED = b"llt\tpt\tsoc\n" + b"".join(f"Forged {i}\tForged\tSystem\n".encode() for i in range(6))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A release directory that others may write to."""
    path = tmp_path / "ours"
    shutil.copytree(bundled("normalization"), path)
    return path


def settings_of(kind: str, directory: Path, tmp_path: Path) -> tuple[Settings, str | Path, Path]:
    """Settings, the name to load, and the folder that the attacker can write to."""
    if kind == "directory":
        return Settings(dtype="float32"), directory, directory
    stored = tmp_path / "store/normalization" / bundled("normalization").name
    shutil.copytree(directory, stored)
    with (stored / MANIFEST).open("ab") as file:
        file.write(b"\n")  # another version than the bundled one
    version = hashlib.sha256((stored / MANIFEST).read_bytes()).hexdigest()[:12]
    stored = stored.rename(stored.with_name(version))
    return Settings(dtype="float32", store=str(tmp_path / "store")), version, stored


@pytest.mark.parametrize("kind", ["directory", "store"])
def test_a_file_that_is_exchanged_between_verification_and_loading_is_not_loaded(
    kind: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, name, place = settings_of(kind, directory, tmp_path)
    digest = hashlib.file_digest
    exchanged = []

    def exchange_afterwards(file: Any, algorithm: Any) -> Any:
        answer = digest(file, algorithm)
        if Path(file.name).name == "terminology.tsv":
            (place / "new").write_bytes(FORGED)
            (place / "new").rename(place / "terminology.tsv")
            exchanged.append(file.name)
        return answer

    monkeypatch.setattr(hashlib, "file_digest", exchange_afterwards)
    model: Any = load_release("normalization", name, settings).model
    assert exchanged
    assert (place / "terminology.tsv").read_bytes() == FORGED
    assert not [t for t in model.terms if t.pt == "Forged"]


@pytest.mark.parametrize("kind", ["directory", "store"])
def test_a_file_that_is_exchanged_while_the_release_is_copied_is_refused(
    kind: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, name, place = settings_of(kind, directory, tmp_path)
    size = (place / "terminology.tsv").stat().st_size
    real = os.open

    def exchange_before(path: Any, *arguments: Any, **options: Any) -> int:
        if Path(path).name == "terminology.tsv":
            (place / "terminology.tsv").write_bytes(FORGED[:size].ljust(size, b"\n"))
        return real(path, *arguments, **options)

    if kind == "directory":
        monkeypatch.setattr(os, "open", exchange_before)
    else:
        (place / "terminology.tsv").write_bytes(FORGED[:size].ljust(size, b"\n"))
    with pytest.raises(ReleaseError, match=r"terminology\.tsv does not have the declared sha256"):
        load_release("normalization", name, settings)


@pytest.mark.parametrize("kind", ["directory", "store"])
def test_the_copy_is_private_and_is_removed(
    kind: str, directory: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, name, place = settings_of(kind, directory, tmp_path)
    modes: list[int] = []

    def load(release: Release, **options: Any) -> Any:
        assert place not in (release.path, *release.path.parents)
        assert release.path.is_relative_to(temporary)
        modes.extend(stat.S_IMODE(p.stat().st_mode) for p in (release.path, release.path.parent))
        return loading.load(release, **options)

    monkeypatch.setattr(rollout_loading, "load", load)
    load_release("normalization", name, settings)
    assert modes == [0o700, 0o700]
    assert list(temporary.glob(f"{PREFIX}*")) == []


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_link, _pipe])
def test_a_link_or_pipe_that_takes_the_place_of_a_file_is_refused_without_waiting(
    make: Callable[[Path], None], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = os.scandir

    def exchange_afterwards(path: Any) -> Any:
        if path != directory:
            return listed(path)
        entries = list(listed(path))
        make(directory / "terminology.tsv")
        return nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", exchange_afterwards)
    with pytest.raises(ReleaseError, match=r"^ours: terminology\.tsv is not a regular file$"):
        load_release("normalization", directory, Settings())


def test_a_refusal_names_no_temporary_folder(directory: Path, tmp_path: Path, temporary: Path) -> None:
    settings, version, place = settings_of("store", directory, tmp_path)
    size = (place / "terminology.tsv").stat().st_size
    (place / "terminology.tsv").write_bytes(FORGED[:size].ljust(size, b"\n"))
    for name, where in ((str(version), str(version)), (place, str(version)), (directory, "ours")):
        with pytest.raises(ReleaseError) as refused:
            load_release("ner" if name is directory else "normalization", name, settings)
        assert str(refused.value).startswith(f"{where}: ")
        assert "temporary" not in str(refused.value)


def test_a_release_with_more_files_or_bytes_than_allowed_is_refused_before_it_is_copied(
    directory: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models.releases import store  # noqa: PLC0415  patched here only

    def copied(*arguments: Any) -> None:
        raise AssertionError("a file is copied")

    monkeypatch.setattr(store, "copy_bytes", copied)
    for kind in ("directory", "store"):
        settings, name, _ = settings_of(kind, directory, tmp_path)
        for limit, message in (
            ({"release_files": 1}, "2 files, at most 1 are allowed"),
            ({"release_bytes": 100}, "bytes, at most 100 are allowed"),
        ):
            with pytest.raises(ReleaseError, match=message):
                load_release("normalization", name, settings.model_copy(update=limit))
