from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from models.releases.manifest import Release
from streams.broker.embedded import EmbeddedBroker
from streams.cli.operations import local_checks as local
from streams.cli.operations.broker_checks import check_brokers
from streams.cli.operations.local_checks import Finding
from streams.records import Announcement
from streams.settings import Settings
from tests.streams.cli.command_line import Answer, CommandLine, closed_port

SOMEWHERE = "kafka://localhost:9092"


def grades(findings: Iterable[Finding]) -> dict[str, str]:
    return {one.what: one.grade for one in findings}


def listed(answer: Answer) -> dict[str, Finding]:
    return {row["what"]: Finding(**row) for row in orjson.loads(answer.out)}


@pytest.mark.parametrize(
    ("more", "grade", "words"),
    [
        ({}, "ok", "valid"),
        ({"broker": "kafka://broker-1:9092"}, "warn", "in the clear"),
        ({"security": "SSL", "ssl_cafile": "/nowhere/ca.pem"}, "fail", "/nowhere/ca.pem"),
        ({"session_timeout": 3}, "warn", "many brokers refuse it"),
        ({"instance": "ner-0"}, "warn", "a restart takes longer"),
        ({"instance": "ner-0", "session_timeout": 60}, "ok", "valid"),
        ({"release_key": "/nowhere/key.pem"}, "fail", "PV_RELEASE_KEY"),
        ({"broker": "embedded"}, "fail", "PV_BROKER is not set"),
    ],
)
def test_settings_that_do_not_fit_are_found(more: dict[str, str], grade: str, words: str) -> None:
    (found,) = local.check_settings(Settings(**{"broker": SOMEWHERE, **more}))  # type: ignore[arg-type]
    assert found.grade == grade
    assert words in found.found
    assert bool(found.fix) == (grade != "ok")


def test_a_state_folder_that_cannot_be_written_and_a_store_that_fails_are_found(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert grades(local.check_state(Settings(state=tmp_path / "new" / "one"))) == {"state": "ok"}
    (found,) = local.check_state(Settings(state=tmp_path / "file"))
    assert (found.grade, str(tmp_path / "file") in found.found) == ("fail", True)
    (found,) = local.check_store(Settings(store="nosuch://user:hidden-word@host/a"))
    assert found.grade == "fail"
    assert "hidden-word" not in found.found


@pytest.mark.parametrize(
    ("limit", "grade"), [("max", "ok"), ("3000000000", "ok"), ("2100000000", "warn"), ("1500000000", "fail")]
)
def test_the_memory_of_a_container_counts(
    limit: str, grade: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text("800000000\n")
    monkeypatch.setattr(local, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(local, "_CGROUP", tmp_path)
    (found,) = local.check_memory()
    assert found.grade == grade
    monkeypatch.setattr(local, "_MEMINFO", tmp_path / "missing")
    assert grades(local.check_memory()) == {"memory": "warn"}


async def test_the_releases_of_a_start_are_verified(tiny: dict[str, Release], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    settings = Settings(
        store=str(tmp_path / "store"), releases={"acronym": tiny["acronym"].path, "relation": broken}
    )
    announced = Announcement(
        task="ner", version="0" * 12, reason="publish", announced_at=datetime.fromtimestamp(0, UTC)
    )
    found = [one async for one in local.check_releases(settings, {"ner": announced}, load=False)]
    assert [(one.grade, one.found.split()[0]) for one in found] == [
        ("fail", "announced"), ("ok", "pinned"), ("fail", "pinned"), ("ok", "bundled"), ("ok", "bundled"),
    ]  # fmt: skip
    assert "is not in the store" in found[0].found
    loaded = [one async for one in local.check_releases(settings, {}, load=True)]
    assert [one.grade for one in loaded] == ["ok", "ok", "fail", "ok", "ok"]
    assert loaded[0].found == f"bundled release {tiny['ner'].version} loads"


def test_without_a_broker_the_rest_is_checked_unless_a_setting_is_invalid(pvstream: CommandLine) -> None:
    port = closed_port()
    pvstream.set("PV_BROKER", f"kafka://127.0.0.1:{port}")
    answer = pvstream("check", "--json")
    found = listed(answer)
    assert answer.code == 1
    assert found[f"broker 127.0.0.1:{port}"].grade == "fail"
    assert "whether the broker runs" in found[f"broker 127.0.0.1:{port}"].fix
    assert not {"login", "cluster", "topics", "groups"} & found.keys()
    assert {found[what].grade for what in ("settings", "store", "state", "release ner")} == {"ok"}
    table = pvstream("check")
    assert (table.code, "fail" in table.out) == (1, True)
    pvstream.set("PV_BATCH", "none")
    answer = pvstream("check", "--json")
    found = listed(answer)
    assert (answer.code, list(found), found["settings"].grade) == (1, ["settings"], "fail")
    assert "PV_BATCH" in found["settings"].found


async def test_a_port_that_does_not_speak_tls_is_found() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"not TLS\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        settings = Settings(broker=f"kafka://127.0.0.1:{port}", security="SSL")
        (found,) = [one async for one in check_brokers(settings)]
    assert (found.grade, "PV_SECURITY" in found.fix) == ("fail", True), found


async def test_an_embedded_broker_is_enough_for_trials() -> None:
    with EmbeddedBroker() as broker:
        found = [one async for one in check_brokers(Settings(broker=f"kafka://{broker.bootstrap}"))]
    assert [one.grade for one in found] == ["ok", "ok", "ok", "warn"]
