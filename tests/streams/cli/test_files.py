"""Files that commands write, and what is found in them meanwhile."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import pytest

from streams.cli.files import check_writable, write_whole

OLD, NEW = b"a" * 4_000_000, b"b" * 5_000_000


def test_a_reader_never_finds_a_part_of_a_file(tmp_path: Path) -> None:
    path, found = tmp_path / "signals.jsonl", set[int]()
    path.write_bytes(OLD)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            found.add(len(path.read_bytes()))

    reader = threading.Thread(target=read)
    reader.start()
    for content in (NEW, OLD) * 15:
        write_whole(path, content)
    stop.set()
    reader.join()
    assert found <= {len(OLD), len(NEW)}


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_bytes(b"old")
    path.chmod(0o640)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_whole(path, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["figures.json"]
    write_whole(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "kept").read_bytes() == b"new" and (tmp_path / "link").is_symlink()
    write_whole(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "file", b"")


def test_what_can_be_written_is_not_refused_before_a_command(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o400)
    (tmp_path / "link").symlink_to(tmp_path / "not yet")
    for name in ("new", "old", "link"):
        check_writable(output=tmp_path / name)
    check_writable(output=None, json=Path("/dev/stdout"), html=Path("/dev/null"))
