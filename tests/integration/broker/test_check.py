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


def test_check_finds_what_keeps_a_pipeline_from_a_broker_and_says_what_to_do(
    kafka: LocalKafka, tmp_path: Path, pinned: str
) -> None:
    env = processes.environment(
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
        PV_STORE=str(tmp_path / "store"),
    )
    address = f"broker {kafka.secure_bootstrap}"

    def check(**more: str) -> tuple[int, dict[str, dict[str, Any]]]:
        answer = processes.forked_command("check", "--json", env=env | more)
        assert answer.stdout, answer.stderr
        return answer.returncode, {row["what"]: row for row in orjson.loads(answer.stdout)}

    def must(*arguments: str) -> None:
        answer = processes.forked_command(*arguments, env=env)
        assert answer.returncode == 0, answer.stderr

    code, found = check(PV_SASL_PASSWORD="wrong")
    assert (code, found[address]["grade"], found["login"]["grade"]) == (1, "ok", "fail")
    assert "topics" not in found

    without = {name: value for name, value in env.items() if name != "PV_SSL_CAFILE"}
    answer = processes.forked_command("check", "--json", env=without)
    (row,) = [row for row in orjson.loads(answer.stdout) if row["what"] == address]
    assert (answer.returncode, row["grade"], "PV_SSL_CAFILE" in row["fix"]) == (1, "fail", True)

    code, found = check()
    assert (code, found["login"]["grade"]) == (1, "ok")
    assert (found["topics"]["grade"], "grant Describe" in found["topics"]["fix"]) == ("fail", True)
    assert (found["groups"]["grade"], "begin with staging.pv-" in found["groups"]["fix"]) == ("fail", True)

    for created in processes.admin(kafka.bootstrap).create_acls(documented_rights()).values():
        created.result()
    must("topics", "--create")
    code, found = check()
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
