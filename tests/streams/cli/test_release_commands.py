"""The commands about releases: their output, their errors and their exit codes."""

from __future__ import annotations

import asyncio
import re
import shutil
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import orjson
import pytest

from models.releases.manifest import Canary, Release
from models.releases.signature import SIGNATURE
from models.releases.store import build, bundled, open_release
from models.types import RELEASED, TASKS
from streams.monitoring import http
from tests.streams.cli.command_line import NOWHERE, CommandLine
from tests.streams.conftest import Keys


def test_posts_are_evaluated_with_two_releases_and_no_data(tmp_path: Path, pvstream: CommandLine) -> None:
    result = tmp_path / "posts.json"
    own = f"ner={bundled('ner')}"
    answer = pvstream("evaluate", "posts", "--limit", "20", "--release", own, "--json", result)
    assert answer.code == 0, answer.err
    row = orjson.loads(result.read_bytes())
    assert row["release"] == f"{bundled('ner').name}+{bundled('normalization').name}"
    assert (row["task"], row["split"], row["records"]) == ("posts", "teaching", 20)
    assert {"coded_f1", "false_posts", "right_drug"} <= row["scores"].keys()
    assert row["parts"]["false_posts"]["records"] + row["parts"]["hit_posts"]["records"] == 20


def test_what_cannot_be_verified_is_refused_in_one_line(
    own: Path, tmp_path: Path, pvstream: CommandLine
) -> None:
    (own / "words.tsv").write_bytes((own / "words.tsv").read_bytes()[:-1] + b" ")
    (tmp_path / "empty").mkdir()
    reasons = {own: "words.tsv does not have the declared sha256", tmp_path / "empty": "no manifest.json"}
    for path, reason in reasons.items():
        answer = pvstream("verify", path)
        assert (answer.code, answer.err.count("\n")) == (1, 1)
        assert answer.error_line.startswith(f"error: {path.name}") and reason in answer.error_line
    pvstream.set("PV_RELEASE_KEY", str(tmp_path / "nowhere.pem"))
    assert f"no public key in {tmp_path / 'nowhere.pem'}" in pvstream("verify", own).error_line


def test_a_release_with_another_canary_is_refused_in_one_line(tmp_path: Path, pvstream: CommandLine) -> None:
    original = open_release(bundled("summarization"))
    canary = Canary(inputs=["Is tea fine?"], outputs=[{"text": "No."}])
    wrong = build(original.path, original.manifest.model_copy(update={"canary": canary}), tmp_path)
    answer = pvstream("verify", wrong.path)
    assert answer.code == 1
    assert answer.error_line.endswith("the canary answers are not those in the manifest")


def test_a_release_is_signed_and_verified_with_the_key(
    own: Path, release: Release, keys: Keys, pvstream: CommandLine
) -> None:
    valid = f"summarization {own.name}: valid, {len(release.manifest.files)} files\n"
    answer = pvstream("verify", own)
    assert (answer.code, answer.out) == (0, valid)
    pvstream.set("PV_RELEASE_KEY", str(keys.public))
    answer = pvstream("verify", own)
    assert answer.error_line == f"error: {own.name}: not signed, and a signature is required"
    assert answer.code == 1
    answer = pvstream("sign", own, "--key", keys.private)
    assert (answer.code, answer.out) == (0, f"summarization {own.name} is signed\n")
    answer = pvstream("verify", own)
    assert (answer.code, answer.out) == (0, valid)


def test_nothing_is_signed_without_a_key_or_if_damaged(own: Path, keys: Keys, pvstream: CommandLine) -> None:
    answer = pvstream("sign", own, "--key", keys.public)
    assert answer.code == 1
    assert f"no private key in {keys.public}" in answer.error_line
    assert answer.err.count("\n") == 1
    assert pvstream("sign", own, "--key", keys.public.with_name("nowhere.pem")).code == 2
    assert not (own / SIGNATURE).exists()
    (own / "extra.tsv").write_bytes(b"")
    answer = pvstream("sign", own, "--key", keys.private)
    assert answer.error_line == f"error: {own.name}: extra.tsv is not declared in the manifest"
    assert answer.code == 1
    assert not (own / SIGNATURE).exists()


def test_a_network_is_exported_by_task_folder_or_version(tmp_path: Path, pvstream: CommandLine) -> None:
    bundle = bundled("normalization")
    shutil.copytree(bundled("ner"), tmp_path / "store/ner" / bundled("ner").name)
    cases = {
        "sentence-transformers": ("normalization", bundle, bundle.name),
        "transformers": ("ner", bundled("ner").name, tmp_path / "store/ner" / bundled("ner").name),
    }
    for form, names in cases.items():
        for i, name in enumerate(names):
            answer = pvstream("export-model", name, tmp_path / f"{form}{i}", "--format", form)
            assert answer.code == 0, answer.err
            assert answer.out.endswith(f" is exported to {tmp_path / form}{i}\n")
            assert (tmp_path / f"{form}{i}" / "README.md").is_file()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("relation", "error: onnx: a release of relation is exported to nothing, but those of ner"),
        ("idiom", "error: 0 bundled releases for idiom, one is required"),
        (NOWHERE, f"error: no release of ner, acronym, .*, idiom has the version {NOWHERE}"),
    ],
)
def test_what_has_no_exported_form_is_refused_in_one_line(
    name: str, reason: str, tmp_path: Path, pvstream: CommandLine
) -> None:
    answer = pvstream("export-model", name, tmp_path / "out", "--format", "onnx")
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert re.match(reason, answer.error_line)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("shipped_releases")
def test_without_a_broker_bundled_releases_are_live_and_licences_are_listed(pvstream: CommandLine) -> None:
    answer = pvstream("releases", "--json")
    assert answer.code == 0
    rows = orjson.loads(answer.out)
    assert [row["task"] for row in rows] == list(RELEASED)
    for row in rows:
        assert row["version"] == bundled(row["task"]).name
        assert (row["where"], row["live"], row["workers"]) == ("bundled", True, [])
        assert row["kind"]
        assert {"name", "value", "definition", "data", "records"} <= set(row["scores"][0])
        assert all(source["licence"] for source in row["training_data"])
        assert row["training_data"]
    listed = " ".join(pvstream("releases").out.split())
    assert "learned from PsyTAR (Zolnoori et al. 2019), training part (CC BY 4.0)" in listed
    assert "fold 1 training part (none stated, citation asked)" in listed


def test_stored_releases_are_listed_not_live(release: Release, tmp_path: Path, pvstream: CommandLine) -> None:
    shutil.copytree(release.path, tmp_path / "store/summarization" / release.version)
    # None of these is a valid release, and none of them hides the valid one.
    (tmp_path / "store/summarization" / NOWHERE).mkdir()
    (tmp_path / "store/summarization/latest").mkdir()
    (tmp_path / "store/summarization" / ("f" * 12)).mkdir()
    (tmp_path / "store/summarization" / ("f" * 12) / "manifest.json").write_bytes(b"{}")
    rows = orjson.loads(pvstream("releases", "--json").out)
    assert len(rows) == 6
    stored = [row for row in rows if row["where"] == "store"]
    assert [(row["task"], row["version"], row["live"]) for row in stored] == [
        ("summarization", release.version, False)
    ]


def test_the_list_of_releases_shows_every_version_in_full(pvstream: CommandLine) -> None:
    # The usual width of a terminal: versions must not be cut off.
    pvstream.set("COLUMNS", "80")
    answer = pvstream("releases")
    assert answer.code == 0
    assert all(bundled(task).name in answer.out for task in TASKS)
    assert answer.out.count(" live ") == 5
    assert "no announcements were read, bundled releases are listed as live" in answer.one_line


class NotHttp(socketserver.BaseRequestHandler):
    """Sends the greeting of a mail server to every client."""

    def handle(self) -> None:
        self.request.recv(1)
        self.request.sendall(b"220 mail.example.org ready\r\n")


class OtherService(BaseHTTPRequestHandler):
    """Answers with JSON of its own."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(orjson.dumps({"status": {"ready": True}}))

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[str]:
    """The address at which one request is answered."""
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            thread.join()


def test_a_release_is_listed_with_the_worker_that_runs_it(pvstream: CommandLine) -> None:
    runs = {"summarization": {"version": bundled("summarization").name, "refused": None}}
    loop = asyncio.new_event_loop()
    runner, port = loop.run_until_complete(http.start("127.0.0.1", 0, dict, lambda: runs, tuple))
    serves = threading.Thread(target=loop.run_forever)
    serves.start()
    try:
        rows = orjson.loads(pvstream("releases", "--json", "--worker", f"127.0.0.1:{port}").out)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        serves.join()
        loop.close()
    workers = {row["task"]: row["workers"] for row in rows if row["workers"]}
    assert workers == {"summarization": [f"127.0.0.1:{port}"]}


@pytest.mark.parametrize("handler", [NotHttp, OtherService])
def test_a_server_that_is_no_worker_is_reported_in_one_line(
    pvstream: CommandLine, handler: type[socketserver.BaseRequestHandler]
) -> None:
    with serving(handler) as address:
        answer = pvstream("releases", "--worker", address)
    assert answer.code == 1
    assert "no worker answers at" in answer.error_line
