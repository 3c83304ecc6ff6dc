"""Starts a PostgreSQL server of our own for the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 60.0
#: The server refuses to run as root.
USER = "postgres"
#: No durability: what a test writes need not survive the machine.
OPTIONS = ("-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=20")


class PostgresUnavailable(Exception):
    """No server can be had here; the message is one line that says why."""


def binaries() -> Path:
    """The folder of initdb and postgres, of the newest version; raises PostgresUnavailable."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    candidates = folders or ([Path(found).resolve().parent] if found else [])
    if not candidates:
        raise PostgresUnavailable("PostgreSQL is not installed")
    return candidates[-1]


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server that runs for the time of the block."""
    tools = binaries()
    with tempfile.TemporaryDirectory(prefix="pvstream-postgres-") as name:
        folder = Path(name)
        user = USER if os.getuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user)
        data, log = folder / "data", folder / "log"
        log.touch()
        init: list[str | Path] = [
            tools / "initdb", "-D", data, "-U", "tester", "--auth=trust", "-E", "UTF8", "-N",
        ]  # fmt: skip
        subprocess.run(init, user=user, cwd=folder, check=True, capture_output=True, timeout=START_SECONDS)
        port = _free_port()
        command: list[str | Path] = [tools / "postgres", "-D", data, "-p", str(port), "-k", folder, *OPTIONS]
        with log.open("ab") as output:
            server = subprocess.Popen(command, user=user, cwd=folder, stdout=output, stderr=output)
        try:
            _wait(tools, port, server)
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            try:
                server.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(tools: Path, port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    ready: list[str | Path] = [tools / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(ready, check=False).returncode:
        if server.poll() is not None or time.monotonic() > end:
            raise PostgresUnavailable("PostgreSQL did not start")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
