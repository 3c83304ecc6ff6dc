"""The base of a judge is put together whole or not at all, and nothing else than what a release declares."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from models.judge import base
from models.judge.base import NAME, WEIGHTS, BaseMissing, base_folder, is_installed
from models.releases.manifest import PassingError, ReleaseError

CONTENT = {WEIGHTS: os.urandom(3000), "config.json": b"{}", "tokenizer.json": b"[]"}
FILES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
#: Waits until two processes have the whole base in their own folders.
_TOGETHER = """
import pathlib, time
real = base.check_files
def check(folder, files):
    real(folder, files)
    if folder.parent.parent == cache:
        (cache / f"ready-{os.getpid()}").touch()
        while len(list(cache.glob("ready-*"))) < 2:
            time.sleep(0.01)
base.check_files = check
"""
_KILLED = "import signal; base.{} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the five packages, as they are installed."""
    folder = tmp_path / "packages"
    install(folder, CONTENT)
    monkeypatch.syspath_prepend(folder)
    return folder


def install(folder: Path, content: dict[str, bytes]) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(f"{NAME}/{name}", data)
        archive.writestr(f"{NAME}/../../outside", b"never written")
    size = len(whole.getvalue()) // len(base.PARTS) + 1
    for number, name in enumerate(base.PARTS, 1):
        own = folder / name.replace("-part-", "-part_") / f"{NAME}.zip.{number:03}"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_bytes(whole.getvalue()[(number - 1) * size : number * size])
        info = folder / f"{name.replace('-', '_')}-0.0.1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\n")
        (info / "RECORD").write_text(f"{own.relative_to(folder)},,\n")


def start(packages: Path, cache: Path, first: str = "") -> subprocess.Popen[bytes]:
    program = f"""
import os
from pathlib import Path
from models.judge import base
cache = Path({str(cache)!r})
{first}
base.base_folder(base.NAME, {FILES!r}, cache)
"""
    path = os.pathsep.join([str(packages), *filter(None, sys.path)])
    return subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path})


def test_it_is_put_together_once(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    folder = base_folder(NAME, FILES, cache)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == CONTENT
    monkeypatch.setattr(base, "_parts", lambda: pytest.fail("read again"))
    assert base_folder(NAME, FILES, cache) == folder
    assert [p.name for p in cache.iterdir()] == [folder.name]
    assert not list(tmp_path.rglob("outside"))


@pytest.mark.parametrize("at", ["copy_bytes", "check_files", "sync"])
def test_a_kill_leaves_nothing_that_is_taken_for_the_base(packages: Path, tmp_path: Path, at: str) -> None:
    cache = tmp_path / "cache"
    assert start(packages, cache, _KILLED.format(at)).wait(60) < 0
    assert not base._place(FILES, cache).exists()
    assert list(cache.iterdir()), "the killed process has left its folder"
    folder = base_folder(NAME, FILES, cache)
    assert list(cache.iterdir()) == [folder]


def test_two_processes_at_once_make_one_base(packages: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert [p.wait(120) for p in [start(packages, cache, _TOGETHER) for _ in range(2)]] == [0, 0]
    folders = [p for p in cache.iterdir() if p.is_dir()]
    assert folders == [base._place(FILES, cache)]
    assert {p.name: p.read_bytes() for p in folders[0].iterdir()} == CONTENT


def test_another_digest_is_refused_before_there_is_a_base(packages: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    install(packages, CONTENT | {"tokenizer.json": b"{}"})
    with pytest.raises(ReleaseError, match=r"tokenizer\.json has another sha256"):
        base_folder(NAME, FILES, cache)
    assert not list(cache.iterdir())


def test_a_base_that_changed_later_is_refused(packages: Path, tmp_path: Path) -> None:
    folder = base_folder(NAME, FILES, tmp_path)
    (folder / WEIGHTS).write_bytes(CONTENT[WEIGHTS][:-1] + b"!")
    with pytest.raises(ReleaseError, match=r"model\.safetensors has another sha256"):
        base_folder(NAME, FILES, tmp_path)
    (folder / WEIGHTS).unlink()
    with pytest.raises(ReleaseError, match=r"model\.safetensors cannot be read"):
        base_folder(NAME, FILES, tmp_path)


def test_packages_that_are_no_zip_of_the_base_are_refused(packages: Path, tmp_path: Path) -> None:
    for part in packages.glob("*/*.zip.003"):
        part.write_bytes(b"")
    with pytest.raises(ReleaseError, match="do not hold the judge's base"):
        base_folder(NAME, FILES, tmp_path / "cache")
    (part,) = packages.glob("*/*.zip.003")
    part.unlink()
    with pytest.raises(BaseMissing, match="1 of the packages"):
        base_folder(NAME, FILES, tmp_path / "cache")


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_release(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PassingError, match="cannot be put together"):
        base_folder(NAME, FILES, tmp_path / "file" / "cache")


def test_it_is_known_whether_a_base_is_installed(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_installed(NAME, FILES, tmp_path / "cache")
    assert not is_installed(str(tmp_path / "none"), FILES, tmp_path / "cache")
    base_folder(NAME, FILES, tmp_path / "cache")
    monkeypatch.setattr(base, "PARTS", ("a-package-that-nobody-has",))
    assert is_installed(NAME, FILES, tmp_path / "cache")
    assert not is_installed(NAME, FILES, tmp_path / "other")
    with pytest.raises(BaseMissing):
        base_folder(NAME, FILES, tmp_path / "other")
