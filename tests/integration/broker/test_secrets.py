"""Nothing that pvstream prints, logs or serves has a secret of its configuration."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest

from models.releases.manifest import Release
from tests.integration import processes
from tests.integration.kafka_server import PASSWORD, USER, LocalKafka
from tests.integration.site import SAMPLES, stop

pytestmark = pytest.mark.kafka
STORE_USER, STORE_WORD, SIGNATURE = "store-user", "store-word", "signature-word"
SECRETS = (PASSWORD, STORE_USER, STORE_WORD, SIGNATURE)
VERSION = "0123456789ab"


@contextmanager
def refusing_store() -> Iterator[str]:
    """A store over HTTP that always answers 403; its address has a user, a password and a signature."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(403)

        do_HEAD = do_PUT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        credentials = f"{STORE_USER}:{STORE_WORD}"
        yield f"http://{credentials}@127.0.0.1:{server.server_port}/releases?v=1&sig={SIGNATURE}"
    finally:
        server.shutdown()
        server.server_close()


def announcement(reason: str) -> bytes:
    fields = {"task": "summarization", "version": VERSION, "reason": reason}
    return orjson.dumps(fields | {"announced_at": "2026-01-01T00:00:00Z", "share": 1.0})


def environment(kafka: LocalKafka, folder: Path, store: str) -> dict[str, str]:
    """The settings of a login with the password in a file of the folder."""
    word = folder / "word"
    word.write_text(PASSWORD + "\n")
    return processes.environment(
        kafka.secure_bootstrap,
        processes.free_port(),
        PV_SECURITY="SASL_SSL",
        PV_SASL_MECHANISM="PLAIN",
        PV_SASL_USERNAME=USER,
        PV_SASL_PASSWORD_FILE=str(word),
        PV_SSL_CAFILE=str(kafka.certificate),
        PV_STORE=store,
        PV_STATE=str(folder / "state"),
        PV_DATABASE=str(folder / "events.duckdb"),
        PV_THREADS="1",
    )


class Commands:
    """Runs commands, and keeps what they print."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.outputs: list[str] = []

    def run(self, *arguments: str, code: int, **more: str) -> str:
        answer = processes.forked_command(*arguments, env=self.env | more)
        assert answer.returncode == code, answer.stderr
        self.outputs.append(answer.stdout + answer.stderr)
        return self.outputs[-1]


def ask_the_store(commands: Commands, release: str) -> None:
    """Runs each command that reads the store or writes to it; all fail."""
    for arguments in (
        ("releases",),
        ("rollback", "summarization", VERSION),
        ("announce", release, "--force"),
        ("replay", "questions", "--release", f"summarization={VERSION}"),
    ):
        assert "http://***@127.0.0.1" in commands.run(*arguments, code=1), "the address without its secrets"


def served_by_a_worker(commands: Commands, kafka: LocalKafka, log: Path) -> list[str]:
    """The pages of a worker that was told to load a release, which it cannot fetch."""
    env = commands.env
    worker = ("worker", "--stage", "summarization")
    with processes.running(*worker, env=env, log=log, forked=True) as process:
        address = f"http://127.0.0.1:{env['PV_HTTP_PORT']}"
        processes.wait_until(lambda: processes.is_ready(int(env["PV_HTTP_PORT"])), "ready")
        records = [(b"summarization", announcement("publish"))]
        processes.produce(kafka.bootstrap, "releases", records)
        questions = log.with_name("questions.jsonl")
        questions.write_bytes(b"\n".join((SAMPLES / "questions.jsonl").read_bytes().splitlines()[:3]))
        commands.run("ingest", "questions", str(questions), code=0)
        processes.wait_until(lambda: "is refused" in log.read_text(), "the release is refused")
        pages = []
        for path in ("releases", "metrics", "health/ready"):
            with urllib.request.urlopen(f"{address}/{path}", timeout=10) as answer:
                pages.append(answer.read().decode())
        stop(process)
    return pages


def test_no_output_of_a_run_has_secrets(kafka: LocalKafka, tmp_path: Path, tiny: dict[str, Release]) -> None:
    log = tmp_path / "log"
    with refusing_store() as store:
        commands = Commands(environment(kafka, tmp_path, store))
        commands.run("topics", "--create", code=0)
        ask_the_store(commands, str(tiny["summarization"].path))
        address = f"kafka://{STORE_USER}:{STORE_WORD}@{kafka.secure_bootstrap}"
        commands.run("topics", code=2, PV_BROKER=address)
        commands.run("topics", code=2, PV_SASL_PASSWORD=PASSWORD)
        pages = served_by_a_worker(commands, kafka, log)
    served, logged = pages[0], log.read_text()
    assert "http://***@127.0.0.1" in served and "?***" in served, served
    assert "http://***@127.0.0.1" in logged
    for output in (*commands.outputs, *pages, logged):
        assert [secret for secret in SECRETS if secret in output] == [], output
