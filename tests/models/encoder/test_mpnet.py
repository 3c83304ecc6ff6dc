"""The base all-mpnet-base-v2 is put together whole or not at all, and is the release of its makers."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from models.encoder import mpnet
from models.encoder.mpnet import NAME, WEIGHTS, BaseMissing, is_installed, mpnet_folder
from models.releases.manifest import PassingError, ReleaseError

CONTENT = {WEIGHTS: os.urandom(3000), "config.json": b"{}", "tokenizer.json": b"[]"}
FILES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
#: Waits until two processes have the whole base in their own folders.
_TOGETHER = """
import pathlib, time
real = mpnet.check_files
def check(folder):
    real(folder)
    if folder.parent.parent == cache:
        (cache / f"ready-{os.getpid()}").touch()
        while len(list(cache.glob("ready-*"))) < 2:
            time.sleep(0.01)
mpnet.check_files = check
"""
_KILLED = "import signal; mpnet.{} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the five packages, as they are installed."""
    folder = tmp_path / "packages"
    install(folder, CONTENT)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(mpnet, "FILES", FILES)
    return folder


def install(folder: Path, content: dict[str, bytes]) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(f"{NAME}/{name}", data)
        archive.writestr(f"{NAME}/../../outside", b"never written")
    size = len(whole.getvalue()) // len(mpnet.PARTS) + 1
    for number, name in enumerate(mpnet.PARTS, 1):
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
from models.encoder import mpnet
cache = Path({str(cache)!r})
{first}
mpnet.FILES = {FILES!r}
mpnet.mpnet_folder(cache)
"""
    path = os.pathsep.join([str(packages), *filter(None, sys.path)])
    return subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path})


def test_a_variable_names_the_folder(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training, which has no settings of the pipeline, puts it where the workers look for it."""
    monkeypatch.setenv("PV_CACHE", str(tmp_path / "named"))
    assert mpnet_folder().parent == tmp_path / "named"
    assert is_installed()


def test_it_is_put_together_once(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    folder = mpnet_folder(cache)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == CONTENT
    monkeypatch.setattr(mpnet, "_parts", lambda: pytest.fail("read again"))
    assert mpnet_folder(cache) == folder
    assert [p.name for p in cache.iterdir()] == [folder.name]
    assert not list(tmp_path.rglob("outside"))


@pytest.mark.parametrize("at", ["copy_bytes", "check_files", "sync"])
def test_a_kill_leaves_nothing_that_is_taken_for_the_base(packages: Path, tmp_path: Path, at: str) -> None:
    cache = tmp_path / "cache"
    assert start(packages, cache, _KILLED.format(at)).wait(60) < 0
    assert not mpnet._place(cache).exists()
    assert list(cache.iterdir()), "the killed process has left its folder"
    folder = mpnet_folder(cache)
    assert list(cache.iterdir()) == [folder]


def test_two_processes_at_once_make_one_base(packages: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert [p.wait(120) for p in [start(packages, cache, _TOGETHER) for _ in range(2)]] == [0, 0]
    folders = [p for p in cache.iterdir() if p.is_dir()]
    assert folders == [mpnet._place(cache)]
    assert {p.name: p.read_bytes() for p in folders[0].iterdir()} == CONTENT


def test_another_digest_is_refused_before_there_is_a_base(packages: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    install(packages, CONTENT | {"tokenizer.json": b"{}"})
    with pytest.raises(ReleaseError, match=r"tokenizer\.json has another sha256"):
        mpnet_folder(cache)
    assert not list(cache.iterdir())


def test_a_base_that_changed_later_is_refused(packages: Path, tmp_path: Path) -> None:
    folder = mpnet_folder(tmp_path)
    (folder / WEIGHTS).write_bytes(CONTENT[WEIGHTS][:-1] + b"!")
    with pytest.raises(ReleaseError, match=r"model\.safetensors has another sha256"):
        mpnet_folder(tmp_path)
    (folder / WEIGHTS).unlink()
    with pytest.raises(ReleaseError, match=r"model\.safetensors cannot be read"):
        mpnet_folder(tmp_path)


def test_packages_that_are_no_zip_of_the_base_are_refused(packages: Path, tmp_path: Path) -> None:
    for part in packages.glob("*/*.zip.003"):
        part.write_bytes(b"")
    with pytest.raises(ReleaseError, match="do not hold the base"):
        mpnet_folder(tmp_path / "cache")
    (part,) = packages.glob("*/*.zip.003")
    part.unlink()
    with pytest.raises(BaseMissing, match="1 of the packages"):
        mpnet_folder(tmp_path / "cache")


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_release(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PassingError, match="cannot be put together"):
        mpnet_folder(tmp_path / "file" / "cache")


def test_it_is_known_whether_a_base_is_installed(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_installed(tmp_path / "cache")
    mpnet_folder(tmp_path / "cache")
    monkeypatch.setattr(mpnet, "PARTS", ("a-package-that-nobody-has",))
    assert is_installed(tmp_path / "cache")
    assert not is_installed(tmp_path / "other")
    with pytest.raises(BaseMissing):
        mpnet_folder(tmp_path / "other")
