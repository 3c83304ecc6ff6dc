"""The demo over live posts: from a local Jetstream server through all stages."""

from __future__ import annotations

from models.releases.manifest import Release
from streams.cli.demo.run import Demo
from streams.cli.feed import Arrival, Tally
from streams.settings import Settings
from streams.sources.protocols.bluesky import Bluesky
from tests.streams.sources.kept import FAST
from tests.streams.sources.pass_all import PassAll
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.world import World


async def test_live_posts_come_out_as_events_until_the_limit(tiny: dict[str, Release]) -> None:
    seen: list[Arrival] = []

    def keep(arrival: Arrival, _tally: Tally) -> None:
        seen.append(arrival)

    world = World.made(seed=3, posts=200)
    settings = Settings(http_port=0, releases={task: release.path for task, release in tiny.items()})
    async with Jetstream(world, rate=300) as server:
        live = ([Bluesky(servers=[server.endpoint], backoff=FAST)], PassAll())
        outcome = await Demo({}, settings, live=live, limit=30).run(on_arrival=keep)
    assert outcome.ok
    assert outcome.tally.inputs == {"posts": 30}
    assert {a.key for a in seen if a.topic == "events"} <= {post_id(n) for n in world.final}
    assert outcome.tally.outputs["events"] >= 30
