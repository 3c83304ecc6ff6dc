from __future__ import annotations

import asyncio
import time

import orjson
import pytest

from streams.intake.items import AuthorDeletion, Deletion, Post
from streams.sources.protocols.bluesky import Bluesky, read_event
from streams.sources.runner import Runner
from streams.sources.source import SourceFailed
from tests.streams.polling import until
from tests.streams.sources.kept import FAST, KeptDelivery, runner
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.jetstream import DID, Jetstream, commit, event, post_id
from tests.streams.sources.players.running import running
from tests.streams.sources.players.running import sample as read_sample
from tests.streams.sources.players.world import Happening, World


def sample(name: str, **labels: str) -> float:
    return read_sample(name, source="bluesky", **labels)


def time_of(one: Runner) -> float:
    """The time of its position, in seconds; microseconds as in an event."""
    return float((one.position or {}).get("time_us", 0)) / 1e6


def expected(world: World) -> dict[str, str | None]:
    return {post_id(number): text for number, text in world.final.items()}


def test_a_post_and_its_deletion_have_the_same_id() -> None:
    created = read_event(commit(Happening(kind="create", number=7, text="Awake all night", at=1.5)))
    deleted = read_event(commit(Happening(kind="delete", number=7, at=2.5)))
    (post,) = created[1]
    assert isinstance(post, Post)
    assert (post.text, post.language, post.author) == ("Awake all night", "en", DID)
    assert created[0] == 1_500_000
    assert deleted == (2_500_000, (Deletion(post.id),))


@pytest.mark.parametrize(
    ("langs", "language"),
    [(["en-GB"], "en"), (["en", "en-US"], "en"), (["ja", "en"], None), (["en", "ja"], None), ([], None)],
)
def test_of_a_post_with_several_languages_none_is_stated(langs: list[str], language: str | None) -> None:
    message = orjson.loads(commit(Happening(kind="create", number=7, text="Awake", at=1.5)))
    message["commit"]["record"]["langs"] = langs
    (post,) = read_event(orjson.dumps(message))[1]
    assert isinstance(post, Post)
    assert post.language == language


@pytest.mark.parametrize("status", ["deleted", "takendown"])
def test_an_account_that_is_gone_takes_its_posts_with_it(status: str) -> None:
    account = {"active": False, "did": DID, "status": status}
    assert read_event(event("account", 1, account=account))[1] == (AuthorDeletion(DID),)


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "account", "account": {"active": True}},
        {"kind": "account", "account": {"active": False, "status": "deactivated"}},
        {"kind": "identity", "identity": {"handle": "a.example"}},
        {"kind": "commit", "commit": {"collection": "app.bsky.feed.like", "operation": "create"}},
    ],
)
def test_other_events_only_tell_the_time(body: dict[str, object]) -> None:
    assert read_event(orjson.dumps({"did": DID, "time_us": 5, **body})) == (5, ())


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"did": "d"}', b'{"did": "d", "time_us": "5", "kind": "commit"}',
     b'{"did": "d", "time_us": 5, "kind": "commit", "commit": {"collection": "app.bsky.feed.post"}}',
     b'{"did": "d", "time_us": 5, "kind": "commit", "commit": {"collection": "app.bsky.feed.post", '
     b'"operation": "create", "rkey": "k", "record": {"text": 5}}}'],
)  # fmt: skip
def test_what_is_no_event_is_malformed(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_event(data)


def test_no_two_events_have_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Between two numbers that floating point has, 49 microseconds after which one more is rounded away.
    monkeypatch.setattr(time, "time", lambda: 1790000000.5979395)
    world = World([Happening(kind="create", number=n) for n in range(50)])
    world.publish(50)
    times = [read_event(commit(happening))[0] for happening in world.happenings]
    assert times == list(range(times[0], times[0] + 50))


async def test_it_resumes_at_its_position_and_repeats_only_a_few_seconds() -> None:
    world = World([Happening(kind="create", number=n, text=f"post {n}") for n in range(50)])
    async with Jetstream(world) as server:
        first, second = KeptDelivery(), KeptDelivery()
        one = runner(Bluesky(servers=[server.endpoint], backoff=FAST, rewind=0.0), first)
        async with running(one):
            await until(lambda: world.is_over)
            await until(lambda: time_of(one) == round(world.happenings[49].at * 1e6) / 1e6)
        await one.checkpoint()
        key, position, _ = first.positions[-1]
        world.happenings += [Happening(kind="create", number=n, text=f"post {n}") for n in range(50, 60)]
        world.publish(10)
        two = runner(Bluesky(servers=[server.endpoint], backoff=FAST, rewind=0.0), second, position)
        async with running(two):
            await until(lambda: len(second.sent) >= 11)
    assert key == "bluesky"
    assert [k for _, k, _ in second.sent] == [post_id(n) for n in range(49, 60)]


async def test_a_cursor_that_the_server_clamps_is_a_reported_gap(caplog: pytest.LogCaptureFixture) -> None:
    world = World([Happening(kind="create", number=n, text=f"post {n}") for n in range(5)])
    before, delivery = sample("pv_source_gap_seconds_total"), KeptDelivery()
    async with Jetstream(world, kept=600.0) as server:
        position = {"time_us": round((time.time() - 3600) * 1e6), "server": server.endpoint}
        world.publish(5)
        async with running(runner(Bluesky(servers=[server.endpoint], backoff=FAST), delivery, position)):
            await until(lambda: len(delivery.sent) == 5)
    missing = sample("pv_source_gap_seconds_total") - before
    assert 3590 < missing < 3610
    assert "s of the stream are missing" in caplog.text


async def test_a_time_in_the_future_is_no_place_to_resume() -> None:
    before = sample("pv_source_items_total", outcome="malformed")
    now = round(time.time(), 3)
    async with Jetstream(World([])) as server:
        post = commit(Happening(kind="create", number=1, text="awake", at=now))
        server.extra = [post, event("identity", now + 7200, identity={}), b"{"]
        one = runner(Bluesky(servers=[server.endpoint], backoff=FAST), KeptDelivery())
        async with running(one):
            await until(lambda: sample("pv_source_items_total", outcome="malformed") == before + 1)
    assert time_of(one) == now


async def test_after_an_interruption_the_next_server_is_asked_a_few_seconds_earlier() -> None:
    world = World([Happening(kind="create", number=n, text=f"post {n}") for n in range(3)])
    async with Jetstream(world) as one, Jetstream(World([])) as other:
        delivery = KeptDelivery()
        source = Bluesky(servers=[one.endpoint, other.endpoint], backoff=FAST, silence=0.2, rewind=5.0)
        before = sample("pv_source_reconnects_total", reason="silent")
        async with running(runner(source, delivery)):
            await until(lambda: bool(other.queries))
    assert int(other.queries[0]["cursor"]) == round(world.happenings[2].at * 1e6) - 5_000_000
    assert sample("pv_source_reconnects_total", reason="silent") > before


async def test_a_server_that_refuses_leads_to_the_next_one_until_all_of_them_do() -> None:
    world = World([Happening(kind="create", number=n, text=f"post {n}") for n in range(3)])
    async with Jetstream(World([])) as gone, Jetstream(world) as other:
        delivery = KeptDelivery()
        gone.refuse = [(404, {}), (403, {})]
        one = runner(Bluesky(servers=[gone.endpoint, other.endpoint], backoff=FAST), delivery)
        async with running(one):
            await until(lambda: len(delivery.sent) == 3)
        other.refuse = [(403, {})]
        with pytest.raises(SourceFailed, match="403"):
            await one.run()


@pytest.mark.slow
async def test_nothing_is_lost_and_every_deletion_is_a_tombstone_through_120_faults() -> None:
    world = World.made(seed=11, posts=1200)
    faults = Faults(seed=12, count=120, every=8, silence=0.4)
    async with Jetstream(world, faults, rate=3000) as server:
        delivery = KeptDelivery()
        source = Bluesky(servers=[server.endpoint], backoff=FAST, silence=0.2, rewind=0.3)
        one = runner(source, delivery)
        async with running(one):
            await until(lambda: delivery.state() == expected(world))
            await asyncio.sleep(0.1)
            # After another reconnection the last versions are sent again, in their order.
            await until(lambda: delivery.state() == expected(world))
    assert {k for k, text in expected(world).items() if text is None} <= delivery.deleted()
    assert sum(faults.made.values()) == 120
    assert len(faults.made) == len(faults.kinds)
