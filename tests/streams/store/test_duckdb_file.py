"""What is deleted is not in the bytes of a DuckDB file either."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from streams.records import Inbound
from streams.settings import Settings
from streams.store import duckdb_file
from streams.store.duckdb_file import DuckDatabase
from streams.store.follow import Follower
from streams.store.tables import REPORTS as REPORT_TABLE
from tests.streams.store.messages import deletion, event, message, report

REPORTS, DELETED, AT_ONCE, OPENINGS = 120, range(0, 120, 9), 20, 40


def messages() -> list[Inbound]:
    """Reports, and then the deletion of some."""
    made = [
        message(i, report(f"r{i}", i, event(), text=f"post {i}: this drug kept me awake"))
        for i in range(REPORTS)
    ]
    return made + [deletion(REPORTS + n, f"r{i}", REPORTS + n) for n, i in enumerate(DELETED)]


def filled(path: Path) -> DuckDatabase:
    """A store that has written the messages, closing its file in between as it does beside readers."""
    database = DuckDatabase(path, write=True)
    follower, all_ = Follower(Settings(), database), messages()
    for i in range(0, len(all_), AT_ONCE):
        follower.apply(all_[i : i + AT_ONCE])
        database.release()
    return database


def in_file(path: Path) -> set[int]:
    return {int(number) for number in re.findall(rb"post (\d+):", path.read_bytes())}


ALIVE = set(range(REPORTS)) - set(DELETED)


def test_a_deleted_text_is_in_no_free_block_once_the_store_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    database = filled(path)
    assert in_file(path) & set(DELETED), "else this shows nothing"
    database.close()
    assert in_file(path) == ALIVE
    assert [one.name for one in tmp_path.iterdir() if "lock" not in one.name] == [path.name]


def test_the_copy_is_made_as_before_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.duckdb"
    database = filled(path)
    monkeypatch.setattr(duckdb_file, "REWRITE_SECONDS", 0.0)
    database.release()
    assert in_file(path) == ALIVE
    # The keys are there: a repeat replaces its row.
    follower = Follower(Settings(), database)
    follower.apply([message(900, report("r1", 900, event(), event(), text="post 1: edited"))])
    rows = list(database.query("SELECT text FROM reports WHERE id = 'r1'")[1])
    counts = list(database.query("SELECT count(*) FROM reports UNION ALL SELECT count(*) FROM events")[1])
    database.close()
    assert rows == [("post 1: edited",)]
    assert counts == [(REPORTS,), (len(ALIVE) + 1,)]


def test_what_a_killed_process_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    database = filled(path)
    database._lock.close()  # as the end of its process does
    assert in_file(path) & set(DELETED)
    DuckDatabase(path, write=True).close()
    assert in_file(path) == ALIVE


@pytest.mark.parametrize("torn", [0, 5, 40])
def test_a_journal_that_was_left_does_not_keep_deleted_texts(tmp_path: Path, torn: int) -> None:
    """Torn after some bytes, or else whole, with a row that is not in the file yet."""
    path, journal = tmp_path / "events.duckdb", tmp_path / "events.duckdb.wal"
    with closing(filled(path)):
        subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True)
        if torn:
            journal.write_bytes(journal.read_bytes()[:torn])
        assert in_file(path) & set(DELETED) and journal.exists()
    assert in_file(path) == ALIVE and not journal.exists()
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM offsets").fetchall() == [(1 if torn else 2,)]


#: Ends without a checkpoint.
KILLED = """
import os, sys
import duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO offsets VALUES ('other', 0, 1)")
os._exit(0)
"""


def test_without_a_copy_the_file_stays_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "events.duckdb"
    database = filled(path)
    (tmp_path / "events.duckdb.new").mkdir()
    before = path.read_bytes()
    database.close()
    assert path.read_bytes() == before
    assert "keeps what was deleted" in caplog.text
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM reports").fetchall() == [(REPORTS,)]


HOLDS = """
import sys, time
from pathlib import Path
from streams.store.duckdb_file import DuckDatabase
database = DuckDatabase(Path(sys.argv[1]))
list(database.query("SELECT 1")[1])
print("open", flush=True)
time.sleep(3)
"""


def test_the_store_waits_for_a_reader_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.duckdb"
    database = filled(path)
    monkeypatch.setattr(duckdb_file, "PATIENCE", 0.2)
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None and reader.stdout.readline() == b"open\n"
        written = [message(900, report("r1", 900, event()))]
        began = time.monotonic()
        asyncio.run(Follower(Settings(), database)._write(written, asyncio.Event()))
        assert time.monotonic() - began > 1, "else this shows nothing"
    database.close()
    with closing(DuckDatabase(path)) as after:
        assert list(after.query("SELECT text FROM reports WHERE id = 'r1'")[1]) == [("text 900 of r1",)]


#: Makes copies with ever more room, until one is made, and counts the rows of the file each time.
ROOM = """
import random, resource, string, sys
from pathlib import Path
import duckdb
from streams.settings import Settings
from streams.store.duckdb_file import DuckDatabase
from streams.store.follow import Follower
from tests.streams.store.messages import event, message, report

path, letters = Path(sys.argv[1]), random.Random(1)
database = DuckDatabase(path, write=True)
made = []
for i in range(3000):
    text = "".join(letters.choices(string.ascii_letters, k=400))
    made.append(message(i, report(f"r{i}", i, event(), text=text)))
for place in range(0, 3000, 500):
    Follower(Settings(), database).apply(made[place : place + 500])
    database.release()
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for room in range(2_400_000, 8_000_000, 80_000):
    database._has_removed = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
    database._rewrite()
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM reports").fetchall() == [(3000,)], room
    assert not [one for one in path.parent.iterdir() if ".new" in one.name], room
    if not database._has_removed:
        print("copied with", room)
        break
"""


@pytest.mark.slow
def test_a_disk_that_is_full_as_the_copy_is_closed_costs_no_rows(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ROOM, str(tmp_path / "events.duckdb")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "copied with" in run.stdout and "Failed to create checkpoint" in run.stderr


@pytest.mark.slow
def test_readers_of_the_same_process_open_the_file_in_between(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    ended = threading.Event()
    with closing(DuckDatabase(path, write=True)) as database, ThreadPoolExecutor(1) as threads:
        database.release()

        def read() -> int:
            reads = 0
            while not ended.is_set():
                with closing(DuckDatabase(path)) as reader:
                    list(reader.query(f"SELECT * FROM {REPORT_TABLE.name}")[1])
                reads += 1
            return reads

        reads = threads.submit(read)
        try:
            for _ in range(OPENINGS):
                assert database.revisions(REPORT_TABLE, ["r1"]) == {}
                database.release()
        finally:
            ended.set()
        assert reads.result() > 0


def test_a_process_that_left_objects_out_of_garbage_collections_ends_without_a_word_about_leaks() -> None:
    code = "import duckdb; from streams.stopping import freeze; freeze()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""
