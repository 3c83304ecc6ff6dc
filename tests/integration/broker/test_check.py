"""`pvstream check` on a real Kafka with TLS, passwords and access control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.integration import processes
from tests.integration.broker.test_prefix import documented_rights
from tests.integration.kafka_server import LIMITED, PASSWORD, LocalKafka

pytestmark = pytest.mark.kafka


def environment(kafka: LocalKafka, store: Path, pinned: str) -> dict[str, str]:
    """The settings of a pipeline with a prefix and a login of few rights."""
    return processes.environment(
        kafka.bootstrap,
        processes.free_port(),
        PV_BROKER=f"kafka://{kafka.secure_bootstrap}",
        PV_SECURITY="SASL_SSL",
        PV_SASL_MECHANISM="PLAIN",
        PV_SASL_USERNAME=LIMITED,
        PV_SASL_PASSWORD=PASSWORD,
        PV_SSL_CAFILE=str(kafka.certificate),
        PV_PREFIX="staging.",
        PV_RELEASES=pinned,
        PV_STORE=str(store),
    )


def check(env: dict[str, str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of `pvstream check`, and each finding by what was checked."""
    answer = processes.forked_command("check", "--json", env=env)
    assert answer.stdout, answer.stderr
    return answer.returncode, {row["what"]: row for row in orjson.loads(answer.stdout)}


def test_check_finds_what_keeps_stages_from_a_broker(kafka: LocalKafka, tmp_path: Path, pinned: str) -> None:
    env = environment(kafka, tmp_path / "store", pinned)
    address = f"broker {kafka.secure_bootstrap}"
    code, found = check(env | {"PV_SASL_PASSWORD": "wrong"})
    assert (code, found[address]["grade"], found["login"]["grade"]) == (1, "ok", "fail")
    assert "topics" not in found

    code, found = check({name: value for name, value in env.items() if name != "PV_SSL_CAFILE"})
    row = found[address]
    assert (code, row["grade"], "PV_SSL_CAFILE" in row["fix"]) == (1, "fail", True)

    code, found = check(env)
    assert (code, found["login"]["grade"]) == (1, "ok")
    assert (found["topics"]["grade"], "grant Describe" in found["topics"]["fix"]) == ("fail", True)
    assert (found["groups"]["grade"], "begin with staging.pv-" in found["groups"]["fix"]) == ("fail", True)
    assert found["clock"]["found"].startswith("not compared: no leases")

    with processes.granted(kafka.bootstrap, documented_rights()):
        answer = processes.forked_command("topics", "--create", env=env)
        assert answer.returncode == 0, answer.stderr
        code, found = check(env)
    assert code == 0, found
    grades = {what: row["grade"] for what, row in found.items() if what != "memory"}
    assert set(grades.values()) == {"ok"}, found
    assert {
        "login",
        "cluster",
        "topics",
        "groups",
        "store",
        "state",
        "release normalization",
    } <= grades.keys()
