"""A replay on an embedded broker, which does not find records by time."""

from __future__ import annotations

import pytest
import typer

from streams.broker.embedded import EmbeddedBroker
from streams.cli.replay.runs import Range, run_replays


@pytest.mark.parametrize("bounds", [("2026-03-01T00:00:00Z", "end"), ("0", "2026-03-01")])
async def test_a_time_is_refused_where_it_would_give_no_record(
    bounds: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("PV_BROKER", f"kafka://{broker.bootstrap}")
        with pytest.raises(typer.BadParameter, match="finds no records by time"):
            await run_replays(Range("posts", *bounds), {}, {}, None)
