"""The lists that `pvstream forget` reads."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from streams.broker.embedded import EmbeddedBroker
from streams.cli import topic_commands
from streams.intake import forget as forgetting
from streams.settings import Settings
from tests.streams.cli.command_line import CommandLine

KEY = "a key of some length"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ids_and_handles_of_a_windows_file_are_those_of_reports(
    pvstream: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mark: str
) -> None:
    sent: list[bytes] = []

    async def send(_settings: object, keys: list[bytes], _topics: object) -> None:
        sent.extend(keys)

    monkeypatch.setattr(forgetting, "_send", send)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{mark}first\r\nsecond\r\n"))
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        assert pvstream("forget", "-").code == 0
    assert sorted(sent) == [b"first", b"second"]
    (tmp_path / "handles").write_text(f"{mark}@Ann\nbob\n", encoding="utf-8")
    (tmp_path / "plain").write_text("ann\nbob\n", encoding="utf-8")
    settings = Settings.model_validate({"author_key": KEY})
    read, plain = (topic_commands._hashes(settings, None, tmp_path / name) for name in ("handles", "plain"))
    assert read == plain
