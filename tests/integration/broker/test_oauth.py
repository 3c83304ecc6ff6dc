"""OAUTHBEARER on a real broker: with tokens of a token server, and with a token in a file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import SAMPLES, stop
from tests.streams.credentials.token_server import CLIENT, SCOPE, SECRET, TokenServer, unsigned_token

pytestmark = pytest.mark.kafka
QUESTIONS = str(SAMPLES / "questions.jsonl")
N = len((SAMPLES / "questions.jsonl").read_bytes().splitlines())
WORKER = ("worker", "--stage", "summarization")
WRONG_SECRET = "not-the-secret-of-the-client"
#: Seconds for which the first token of the file is valid; a worker starts within it on a busy machine too.
FILE_SECONDS = 20


def environment(kafka: LocalKafka, pinned: str, **more: str) -> dict[str, str]:
    return processes.environment(
        kafka.secure_bootstrap,
        processes.free_port(),
        PV_SECURITY="SASL_SSL",
        PV_SASL_MECHANISM="OAUTHBEARER",
        PV_SSL_CAFILE=str(kafka.certificate),
        PV_RELEASES=pinned,
        PV_THREADS="1",
        **more,
    )


def wait_summaries(kafka: LocalKafka, n: int) -> None:
    """Counted through the open listener, so that the test's own client proves nothing."""
    processes.wait_until(lambda: processes.count(kafka.bootstrap, "summaries") == n, f"{n} summaries")


def environment_of_client(
    kafka: LocalKafka, pinned: str, server: TokenServer, secret: Path
) -> dict[str, str]:
    return environment(
        kafka,
        pinned,
        PV_OAUTH_TOKEN_URL=server.url,
        PV_OAUTH_CLIENT_ID=CLIENT,
        PV_OAUTH_CLIENT_SECRET_FILE=str(secret),
        PV_OAUTH_SCOPE=SCOPE,
    )


def refused_with_another_secret(env: dict[str, str], server: TokenServer) -> str:
    """What a command prints to which the token server gives no token."""
    wrong = {**env, "PV_OAUTH_CLIENT_SECRET": WRONG_SECRET}
    del wrong["PV_OAUTH_CLIENT_SECRET_FILE"]
    refused = processes.forked_command("topics", env=wrong)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "401 (invalid_client)" in refused.stderr
    assert server.refused and not server.issued
    return refused.stderr + refused.stdout


def work_with_a_token_server(kafka: LocalKafka, folder: Path, pinned: str, log: Path) -> None:
    """All samples are summarized twice, before the first tokens expire and after it."""
    secret = folder / "secret"
    secret.write_text(SECRET + "\n")
    # The broker closes each connection when the token that opened it has expired.
    with TokenServer(lifetime=6) as server:
        env = environment_of_client(kafka, pinned, server, secret)
        refused = refused_with_another_secret(env, server)
        for command in (("topics", "--create"), ("ingest", "questions", QUESTIONS)):
            answer = processes.forked_command(*command, env=env)
            assert answer.returncode == 0, answer.stderr
        with processes.running(*WORKER, env=env, log=log, forked=True) as worker:
            wait_summaries(kafka, N)
            before = len(server.issued)
            time.sleep(8)  # longer than a token is valid
            assert processes.forked_command("ingest", "questions", QUESTIONS, env=env).returncode == 0
            wait_summaries(kafka, 2 * N)
            # One for the process that ingests, and at least one for the worker.
            assert len(server.issued) >= before + 2
            stop(worker)
        printed = log.read_text() + refused
        assert all(word not in printed for word in (SECRET, WRONG_SECRET, *server.issued))
        print(f"{len(server.issued)} tokens for 3 commands and a worker")


def work_with_a_file(kafka: LocalKafka, folder: Path, pinned: str, log: Path) -> None:
    """All samples are summarized once more with a token in a file, which is replaced when it has expired."""
    token = folder / "token"
    token.write_text(unsigned_token(FILE_SECONDS) + "\n")
    env = environment(kafka, pinned, PV_SASL_TOKEN_FILE=str(token))
    with processes.running(*WORKER, env=env, log=log, forked=True) as worker:
        processes.wait_until(lambda: processes.is_ready(int(env["PV_HTTP_PORT"])), "ready")
        time.sleep(max(0.0, FILE_SECONDS + 1 - (time.time() - token.stat().st_mtime)))
        token.write_text(unsigned_token(300))
        assert processes.forked_command("ingest", "questions", QUESTIONS, env=env).returncode == 0
        wait_summaries(kafka, 3 * N)
        stop(worker)


def test_every_client_gets_its_token_from_a_token_server_or_from_a_file_and_renews_it(
    kafka: LocalKafka, tmp_path: Path, pinned: str
) -> None:
    work_with_a_token_server(kafka, tmp_path, pinned, tmp_path / "log")
    work_with_a_file(kafka, tmp_path, pinned, tmp_path / "log")
