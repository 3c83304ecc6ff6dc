"""A store of releases: what comes out is exactly what went in, whatever the store does."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import fsspec
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fsspec.implementations.memory import MemoryFileSystem

from models.releases.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    Release,
    ReleaseError,
    StoreError,
    manifest_bytes,
    version_of,
)
from models.releases.remote import deliver, fetch, read_manifest, versions
from models.releases.signature import SIGNATURE
from models.releases.store import publish, sign
from tests.models.releases.test_store import CONTENTS, manifest_of

PASSWORD = "hunter2-secret"
KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)


@pytest.fixture
def release(tmp_path: Path) -> Release:
    folder = tmp_path / "source"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return publish(folder, manifest_of(folder), tmp_path / "made")


@pytest.fixture
def memory() -> Iterator[str]:
    """The URL of a store in memory that no other test sees."""
    root = f"memory://{uuid4().hex}"
    yield root
    fs = MemoryFileSystem()
    if fs.exists(root):
        fs.rm(root, recursive=True)


@pytest.fixture(params=["directory", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path, memory: str) -> str:
    return str(tmp_path / "store") if request.param == "directory" else memory


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put(root: str, release: Release, name: str, content: bytes) -> None:
    """Writes a file into the folder of a release that is in a store, past all checks."""
    with fsspec.open(f"{root}/{release.task}/{release.version}/{name}", "wb") as file:
        file.write(content)


def remove(root: str, release: Release, name: str) -> None:
    fs, base = fsspec.core.url_to_fs(root)
    fs.rm(f"{base}/{release.task}/{release.version}/{name}")


def hand_made(root: str, fields: dict[str, Any], files: dict[str, bytes]) -> tuple[str, str]:
    """Puts a manifest and files into a store; the task and the version under which they lie."""
    stored = orjson.dumps(fields)
    version = version_of(stored)
    fs, base = fsspec.core.url_to_fs(root)
    place = f"{base}/{fields['task']}/{version}"
    fs.makedirs(place, exist_ok=True)
    for name, content in {**files, MANIFEST: stored}.items():
        fs.pipe_file(f"{place}/{name}", content)
    return fields["task"], version


def refusal(kind: type[ReleaseError], work: Callable[[], object]) -> str:
    """The one line with which `work` is refused, by exactly this kind of error."""
    with pytest.raises(ReleaseError) as refused:
        work()
    assert type(refused.value) is kind
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_what_is_delivered_is_fetched_byte_by_byte(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    fetched = fetch(root, "ner", release.version, into)
    assert (fetched.version, fetched.task, fetched.path) == (release.version, "ner", into)
    assert fetched.manifest == release.manifest
    assert contents(into) == contents(release.path)


def test_a_directory_may_be_named_from_home_on(
    release: Release, tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    deliver(release, "~/shared")
    assert (tmp_path / "shared/ner" / release.version).is_dir()
    assert fetch("~/shared", "ner", release.version, into).version == release.version


def test_a_signature_travels_along(release: Release, root: str, into: Path) -> None:
    sign(release, KEY)
    deliver(release, root)
    fetched = fetch(root, "ner", release.version, into, KEY.public_key())
    assert fetched.version == release.version
    assert (into / SIGNATURE).read_bytes() == (release.path / SIGNATURE).read_bytes()


def test_a_signature_that_came_later_is_delivered_too(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    sign(release, KEY)
    deliver(release, root)
    assert fetch(root, "ner", release.version, into, KEY.public_key()).version == release.version


def test_without_the_wanted_signature_nothing_but_the_manifest_is_read(
    release: Release, root: str, into: Path
) -> None:
    deliver(release, root)
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into, KEY.public_key()))
    assert "not signed" in said
    assert contents(into) == {}


def test_a_signature_of_the_wrong_length_is_refused_where_one_is_required(
    release: Release, root: str, into: Path
) -> None:
    deliver(release, root)
    put(root, release, SIGNATURE, b"x" * 10_000)
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into, KEY.public_key()))
    assert "signature" in said


def test_delivering_again_changes_nothing(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    deliver(release, root)
    assert versions(root, "ner") == [release.version]
    assert fetch(root, "ner", release.version, into).version == release.version


def test_a_version_that_is_not_there_may_come_later(release: Release, root: str, into: Path) -> None:
    said = refusal(StoreError, lambda: fetch(root, "ner", "0" * 12, into))
    assert said == f"ner {'0' * 12} is not in the store {root}"
    deliver(release, root)
    refusal(StoreError, lambda: fetch(root, "ner", "0" * 12, into))
    refusal(StoreError, lambda: fetch(root, "acronym", release.version, into))
    refusal(StoreError, lambda: read_manifest(root, "ner", "0" * 12))


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
def test_what_is_no_task_and_version_never_reaches_a_store(task: str, version: str, into: Path) -> None:
    # A store that cannot be reached: whoever asked it would get a StoreError.
    said = refusal(ReleaseError, lambda: fetch("no-such-protocol://host", task, version, into))
    assert said.endswith("is no task and version")
    refusal(ReleaseError, lambda: read_manifest("no-such-protocol://host", task, version))


def test_the_manifest_of_another_version_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    other = release.manifest.model_copy(update={"kind": "another"})
    put(root, release, MANIFEST, manifest_bytes(other))
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert said == f"{release.version}: the manifest there is that of {version_of(manifest_bytes(other))}"
    refusal(ReleaseError, lambda: read_manifest(root, "ner", release.version))


def test_a_manifest_beyond_the_limit_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    put(root, release, MANIFEST, b" " * (MAX_MANIFEST_BYTES + 1))
    assert "larger than" in refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))


def test_a_file_too_many_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    put(root, release, "extra.tsv", b"")
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert said == f"{release.version}: extra.tsv is not declared in the manifest"


def test_a_folder_in_the_folder_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    fs, base = fsspec.core.url_to_fs(root)
    fs.makedirs(f"{base}/ner/{release.version}/sub")
    fs.pipe_file(f"{base}/ner/{release.version}/sub/x.tsv", b"")
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert said == f"{release.version}: sub is no regular file"


def test_a_missing_file_is_refused(release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    remove(root, release, "drugs.tsv")
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert said == f"{release.version}: drugs.tsv is missing"


@pytest.mark.parametrize("content", [b"", b"name\tgenerix\n", b"name\tgeneric\n\n"])
def test_a_changed_file_is_refused(content: bytes, release: Release, root: str, into: Path) -> None:
    deliver(release, root)
    put(root, release, "drugs.tsv", content)
    said = refusal(ReleaseError, lambda: fetch(root, "ner", release.version, into))
    assert "drugs.tsv" in said


@pytest.mark.parametrize("name", ["drugs.tsv", MANIFEST, SIGNATURE])
def test_a_symlink_in_a_directory_is_refused(name: str, release: Release, tmp_path: Path, into: Path) -> None:
    sign(release, KEY)
    deliver(release, str(tmp_path / "store"))
    path = tmp_path / "store/ner" / release.version / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    said = refusal(ReleaseError, lambda: fetch(str(tmp_path / "store"), "ner", release.version, into))
    assert said == f"{release.version}: {name} is no regular file"


def test_a_pipe_in_a_directory_is_refused_and_not_waited_for(
    release: Release, tmp_path: Path, into: Path
) -> None:
    deliver(release, str(tmp_path / "store"))
    path = tmp_path / "store/ner" / release.version / "drugs.tsv"
    path.unlink()
    os.mkfifo(path)
    said = refusal(ReleaseError, lambda: fetch(str(tmp_path / "store"), "ner", release.version, into))
    assert said == f"{release.version}: drugs.tsv is no regular file"


@pytest.mark.parametrize("name", ["../x.tsv", "/tmp/pv-x.tsv", "sub/x.tsv", "..", "", "x\0.tsv", MANIFEST])
def test_a_declared_name_that_leaves_the_folder_is_refused(
    name: str, release: Release, root: str, into: Path
) -> None:
    fields = release.manifest.model_dump()
    fields["files"] = {name: next(iter(fields["files"].values()))}
    task, version = hand_made(root, fields, {})
    fs, base = fsspec.core.url_to_fs(root)
    fs.pipe_file(f"{base}/{task}/x.tsv", b"outside")
    said = refusal(ReleaseError, lambda: fetch(root, task, version, into))
    assert "no plain file name" in said
    assert sorted(p.name for p in into.iterdir()) == [MANIFEST]
    assert not (into.parent / "x.tsv").exists()


def test_code_is_not_even_copied(release: Release, root: str, into: Path) -> None:
    content = b"import os\n"
    fields = release.manifest.model_dump()
    fields["files"] = {"model.pkl": next(iter(fields["files"].values())) | {"size": len(content)}}
    task, version = hand_made(root, fields, {"model.pkl": content})
    assert "type .pkl" in refusal(ReleaseError, lambda: fetch(root, task, version, into))
    assert not (into / "model.pkl").exists()


def test_a_task_of_another_folder_keeps_its_name(release: Release, root: str, into: Path) -> None:
    """The folder is not part of what is declared: whoever asked must look at the task."""
    deliver(release, root)
    fs, base = fsspec.core.url_to_fs(root)
    fs.makedirs(f"{base}/acronym", exist_ok=True)
    fs.copy(f"{base}/ner/{release.version}/", f"{base}/acronym/{release.version}/", recursive=True)
    assert fetch(root, "acronym", release.version, into).task == "ner"


class CountedFile(io.BytesIO):
    """Never ends, and says how much was read."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            raise AssertionError("all of it is read at once")
        Growing.taken += size
        return b"\0" * size


class Odd(MemoryFileSystem):  # type: ignore[misc]
    """The stores in memory under another protocol, which misbehaves in its own way."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace(f"{cls.protocol}://", "memory://")))


class Growing(Odd):
    """A store in which the file `drugs.tsv` has the declared size in the listing and no end when it is
    read.
    """

    protocol = "growing"
    taken: ClassVar[int] = 0

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if path.endswith("drugs.tsv") and mode == "rb":
            return CountedFile()
        return super().open(path, mode, **options)


def test_no_file_is_read_beyond_its_declared_size(release: Release, memory: str, into: Path) -> None:
    deliver(release, memory)
    fsspec.register_implementation("growing", Growing, clobber=True)
    Growing.taken = 0
    said = refusal(
        ReleaseError,
        lambda: fetch(memory.replace("memory:", "growing:"), "ner", release.version, into),
    )
    assert said.endswith("drugs.tsv does not have the declared sha256")
    size = len(CONTENTS["drugs.tsv"])
    assert Growing.taken == size
    assert (into / "drugs.tsv").stat().st_size == size


def test_a_larger_file_than_declared_is_not_read_at_all(release: Release, memory: str, into: Path) -> None:
    deliver(release, memory)
    put(memory, release, "drugs.tsv", b"\0" * 5_000_000)
    fsspec.register_implementation("growing", Growing, clobber=True)
    Growing.taken = 0
    said = refusal(
        ReleaseError,
        lambda: fetch(memory.replace("memory:", "growing:"), "ner", release.version, into),
    )
    assert "drugs.tsv has 5000000 bytes" in said
    assert Growing.taken == 0
    assert not (into / "drugs.tsv").exists()


def test_a_file_that_ends_early_is_refused(release: Release, memory: str, into: Path) -> None:
    deliver(release, memory)

    class Short(Odd):
        protocol = "short"

        def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            return io.BytesIO(b"n") if path.endswith("drugs.tsv") else super().open(path, mode, **options)

    fsspec.register_implementation("short", Short, clobber=True)
    said = refusal(
        ReleaseError, lambda: fetch(memory.replace("memory:", "short:"), "ner", release.version, into)
    )
    assert said == f"{into.name}: drugs.tsv has 1 bytes, {len(CONTENTS['drugs.tsv'])} are declared"


class Failing(Odd):
    """A store whose every answer is an exception of two lines."""

    protocol = "failing"

    def _fail(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("503 from the store\nTraceback follows")

    ls = open = makedirs = put_file = _fail


class Talkative(Odd):
    """A store whose exceptions quote the address that it was asked for."""

    protocol = "talkative"

    def _fail(self, *arguments: Any, **options: Any) -> Any:
        raise ConnectionError(f"cannot connect to talkative://user:{PASSWORD}@host/releases")

    ls = open = makedirs = put_file = _fail


def _asked(root: str, release: Release, into: Path) -> dict[str, Callable[[], object]]:
    return {
        "fetch": lambda: fetch(root, "ner", release.version, into),
        "deliver": lambda: deliver(release, root),
        "versions": lambda: versions(root, "ner"),
        "read_manifest": lambda: read_manifest(root, "ner", release.version),
    }


@pytest.mark.parametrize("what", ["fetch", "deliver", "versions", "read_manifest"])
def test_a_store_that_fails_is_told_in_one_line_and_may_be_asked_again(
    what: str, release: Release, into: Path
) -> None:
    fsspec.register_implementation("failing", Failing, clobber=True)
    said = refusal(StoreError, _asked(f"failing://user:{PASSWORD}@host/releases", release, into)[what])
    assert "RuntimeError: 503 from the store Traceback follows" in said
    assert PASSWORD not in said


@pytest.mark.parametrize("what", ["fetch", "deliver", "versions", "read_manifest"])
def test_a_password_that_the_store_itself_quotes_is_hidden(what: str, release: Release, into: Path) -> None:
    fsspec.register_implementation("talkative", Talkative, clobber=True)
    said = refusal(StoreError, _asked(f"talkative://user:{PASSWORD}@host/releases", release, into)[what])
    assert "ConnectionError" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "credentials",
    [
        f"user:{PASSWORD}",
        PASSWORD,
        f":{PASSWORD}",
        f"user:p@{PASSWORD}",
    ],
)
def test_the_address_of_a_store_is_shown_without_its_password(credentials: str, into: Path) -> None:
    root = f"memory://{credentials}@host/{uuid4().hex}"
    said = refusal(StoreError, lambda: fetch(root, "ner", "0" * 12, into))
    assert "is not in the store memory://" in said
    assert "host/" in said
    assert PASSWORD not in said


def test_a_kind_of_store_that_is_not_installed_is_told_in_one_line(release: Release, into: Path) -> None:
    for work in _asked(f"no-such-protocol://user:{PASSWORD}@host", release, into).values():
        said = refusal(StoreError, work)
        assert "no-such-protocol" in said
        assert PASSWORD not in said


def test_versions_are_only_what_looks_like_one(release: Release, root: str) -> None:
    assert versions(root, "ner") == []
    deliver(release, root)
    fs, base = fsspec.core.url_to_fs(root)
    for name in (".publishing-abc", "latest", "0123456789AB", "0" * 11, f".{release.version}.sig"):
        fs.makedirs(f"{base}/ner/{name}")
        fs.pipe_file(f"{base}/ner/{name}/{MANIFEST}", b"{}")
    fs.makedirs(f"{base}/ner/{'f' * 12}")
    fs.pipe_file(f"{base}/ner/{'f' * 12}/{MANIFEST}", b"{}")
    assert versions(root, "ner") == sorted([release.version, "f" * 12])
    assert versions(root, "acronym") == []


def test_the_manifest_of_a_release_can_be_read_alone(release: Release, root: str) -> None:
    deliver(release, root)
    assert read_manifest(root, "ner", release.version) == (release.path / MANIFEST).read_bytes()


@pytest.fixture
def alarm() -> Iterator[None]:
    """Ends a wait that would never end."""

    def ring(*_: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path.with_name("real"))])
def test_a_manifest_that_is_no_plain_file_is_not_read_alone(
    make: Callable[[Path], None], release: Release, tmp_path: Path, alarm: None
) -> None:
    store = str(tmp_path / "store")
    deliver(release, store)
    path = tmp_path / "store/ner" / release.version / MANIFEST
    path.rename(path.with_name("real"))
    make(path)
    said = refusal(ReleaseError, lambda: read_manifest(store, "ner", release.version))
    assert MANIFEST in said


class Breaking(Odd):
    """Loses its connection before the manifest is written."""

    protocol = "breaking"

    def put_file(self, source: str, target: str, **options: Any) -> None:
        if target.endswith(MANIFEST):
            raise ConnectionResetError("gone")
        super().put_file(source, target, **options)


def test_an_upload_that_broke_off_is_no_release_until_it_is_done_again(
    release: Release, memory: str, into: Path
) -> None:
    fsspec.register_implementation("breaking", Breaking, clobber=True)
    said = refusal(StoreError, lambda: deliver(release, memory.replace("memory:", "breaking:")))
    assert "ConnectionResetError" in said
    assert "no manifest.json" in refusal(StoreError, lambda: fetch(memory, "ner", release.version, into))
    assert contents(into) == {}
    refusal(StoreError, lambda: read_manifest(memory, "ner", release.version))
    deliver(release, memory)
    assert fetch(memory, "ner", release.version, into).version == release.version


def test_a_delivery_that_broke_off_leaves_nothing_in_a_directory(
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


def test_a_damaged_release_of_a_directory_is_not_delivered_over(release: Release, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    deliver(release, store)
    put(store, release, "drugs.tsv", b"name\tgenerix\n")
    assert "sha256" in refusal(ReleaseError, lambda: deliver(release, store))
