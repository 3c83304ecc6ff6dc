from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson
import pytest

from streams.intake.items import Deletion, Item, Post
from streams.sources.protocols.markup import text_of
from streams.sources.protocols.mastodon import Mastodon, is_excluded, rewound
from streams.sources.runner import RecentDeletions
from streams.sources.source import Interrupted, SourceFailed, Step
from streams.sources.sweep import Sweep
from tests.streams.polling import until
from tests.streams.sources.kept import FAST, KeptDelivery, Scripted, runner
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.mastodon_api import TOKEN, MastodonApi
from tests.streams.sources.players.running import running, sample
from tests.streams.sources.players.world import Happening, World

STATUS = MastodonApi(World([])).status(Happening(kind="create", number=1, text="Awake", at=1000.0))


def source(server: str, **options: Any) -> Mastodon:
    return Mastodon(server=server, token=TOKEN, backoff=FAST, **options)


def read(**fields: object) -> Step:
    return source("https://example.org")._event("update", orjson.dumps(STATUS | fields))


def test_a_status_is_a_post_of_its_server_and_a_reblog_names_its_original() -> None:
    (post,) = read(content='<p>Day&nbsp;3 &amp; <a href="https://a.example">awake</a></p><p>again</p>').items
    assert isinstance(post, Post)
    assert post.text == "Day 3 & awake\nagain"
    assert post.id == f"mastodon:example.org:{STATUS['id']}"
    assert (post.author, post.language, post.repost_of) == ("planted-author", "en", None)
    (post,) = read(reblog=STATUS | {"id": "5", "content": "<p>Original</p>"}, content="").items
    assert isinstance(post, Post)
    assert (post.text, post.repost_of) == ("Original", "mastodon:example.org:5")


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"edited_at": None}, "edited", False),
        ({"edited_at": "2026-03-04T09:15:02.000Z"}, "edited", True),
        ({"spoiler_text": "side effects"}, "text", "side effects\nAwake"),
    ],
)
def test_an_edit_says_so_and_the_text_has_warnings(fields: dict[str, Any], name: str, value: object) -> None:
    (post,) = read(**fields).items
    assert getattr(post, name) == value


@pytest.mark.parametrize("of_original", [False, True])
@pytest.mark.parametrize("wish", ["bot", "noindex"])
def test_bots_and_those_who_ask_not_to_be_indexed_are_left_out(wish: str, of_original: bool) -> None:
    wished = STATUS | {"account": STATUS["account"] | {wish: True}}
    assert is_excluded(wished)
    step = read(reblog=wished) if of_original else read(**wished)
    assert (step.items, step.excluded) == ((), 1)
    assert read(visibility="private").excluded == 1


async def test_an_edit_by_who_asks_not_to_be_indexed_since_deletes_the_version_before() -> None:
    before, edit = (
        read(),
        read(account=STATUS["account"] | {"noindex": True}, edited_at="2026-03-04T09:15:02Z"),
    )
    delivery = KeptDelivery()
    await runner(Scripted(before, edit), delivery).run()
    assert list(delivery.state().values()) == [None]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<p>  a   b </p>\n<p></p><p>c</p>", "a b\nc"),
        ("<style>p {}</style>a<script>alert(1)</script>", "a"),
        (
            "<table><tr><th>Drug</th><td>Zoloft</td></tr><tr><td>Nausea<td>Rash</tr></table>",
            "Drug Zoloft\nNausea Rash",
        ),
        ("<dl><dt>Nausea</dt><dd>often</dd></dl>a<hr>b<section>c</section>d", "Nausea\noften\na\nb\nc\nd"),
        ("1 &lt; 2 &#x1F634;", "1 < 2 😴"),
        ("a <b>bold</b>move", "a boldmove"),
        ("", ""),
        ("Awake <![if !mso]>all<![endif]> night", "Awake all night"),
        ("Awake <![foo[all]]> night <![", "Awake night <!["),
        ("<p>Zoloft made me\nvery dizzy</p>", "Zoloft made me very dizzy"),
        (
            "<div>\r\n  Zoloft gave me weight\r\n  gain.<br>\r\nAnd\na rash</div>",
            "Zoloft gave me weight gain.\nAnd a rash",
        ),
        ("Zoloft made me\nvery dizzy<br>\nand sick", "Zoloft made me very dizzy\nand sick"),
        ("<p>Zoloft made\n<b>me</b>\nvery&#10;dizzy</p>", "Zoloft made me very dizzy"),
        ("<ul>\n<li>hair\nloss</li>\n<li>rash</li>\n</ul>", "hair loss\nrash"),
        (
            "<table>\n<tr>\n<td>Zoloft</td>\n<td>hair\nloss</td>\n</tr>\n<tr><td>Paxil",
            "Zoloft hair loss\nPaxil",
        ),
        ("<p>a</p><pre>b\nc</pre>d\ne", "a\nb\nc\nd e"),
        ("</pre><p>a\nb", "a b"),
        ("<p>a\n\nb</p>", "a b"),
        # Without markup of lines the text has its own.
        ("Zoloft. Day 3\nAwake", "Zoloft. Day 3\nAwake"),
        ("Day 3\r\n\r\nAwake <b>all</b> night", "Day 3\nAwake all night"),
        ('Day 3\n<a href="https://a.example">Awake</a>', "Day 3\nAwake"),
        ("Dose <5 mg\nAwake", "Dose <5 mg\nAwake"),
    ],
)
def test_html_becomes_text(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize("start", ["<a b", "<a b='", "<a/", "<!--", "</"])
def test_many_beginnings_of_tags_are_text_and_take_no_quadratic_time(start: str) -> None:
    html = start * 10_000
    began = time.process_time()
    assert text_of(html) == html
    assert time.process_time() - began < 1.0


def test_a_position_is_rewound_by_its_time_but_not_where_ids_have_none() -> None:
    id_ = str((1_700_000_000_000 << 16) | 77)
    assert rewound(id_, 60) == str(1_699_999_940_000 << 16)
    assert rewound("01HZY", 60) == "01HZY"
    future = str((round(time.time() * 1000) + 7_200_000) << 16)
    assert int(rewound(future, 60)) >> 16 < time.time() * 1000


async def test_what_was_missed_is_read_from_the_timeline() -> None:
    world = World([Happening(kind="create", number=n, text=f"post {n}") for n in range(150)])
    async with MastodonApi(world) as api:
        first, second = KeptDelivery(), KeptDelivery()
        one = runner(source(api.url), first)
        async with running(one):
            await until(lambda: world.is_over and len(first.sent) == 150)
            newest = api.status_id(world.happenings[149])
            await until(lambda: (one.position or {}).get("id") == newest)
        await one.checkpoint()
        world.happenings += [Happening(kind="create", number=n, text=f"post {n}") for n in range(150, 250)]
        await asyncio.sleep(0.01)
        world.publish(100)
        missed = source(api.url, rewind=0.0)
        async with running(runner(missed, second, first.positions[-1][1])):
            expected = {f"post {n}" for n in range(150, 250)}
            await until(lambda: expected <= set(second.state().values()))
    assert api.pages >= 3
    assert missed.missed.is_set()


async def test_an_unknown_event_and_a_comment_are_no_error() -> None:
    before = sample("pv_source_items_total", source="mastodon", outcome="malformed")
    async with MastodonApi(World([])) as api:
        api.extra = [b"event: announcement.delete\ndata: 5\n\n", b":thump\n", b"event: delete\ndata: 7\n\n"]
        delivery = KeptDelivery()
        async with running(runner(source(api.url), delivery)):
            await until(lambda: len(delivery.sent) == 1)
        assert delivery.sent == [("posts", f"mastodon:{api.url[7:]}:7", None)]
    assert sample("pv_source_items_total", source="mastodon", outcome="malformed") == before


async def test_a_refused_token_ends_the_source_and_an_answer_that_is_no_list_deletes_nothing() -> None:
    async with MastodonApi(World([])) as api:
        with pytest.raises(SourceFailed, match="401"):
            await runner(Mastodon(server=api.url, token="another", backoff=FAST), KeptDelivery()).run()
    async with MastodonApi(World([])) as api:
        with pytest.raises(Interrupted):
            [part async for part in source(f"{api.url}/nothing").check(["1"], 0.0)]


async def test_a_sweep_of_more_posts_than_the_server_answers_for_at_once_comes_to_its_end() -> None:
    async with MastodonApi(World([])) as api:
        api.allowed = 2
        stream, delivery = source(api.url), KeptDelivery()
        ids = [f"{stream.prefix}{n}" for n in range(100)]
        for id_ in ids:
            await delivery.send("posts", id_, b'{"text": "awake"}')

        async def kept(prefix: str) -> list[str]:
            return ids

        sweep = Sweep(
            name="mastodon-deletions", key="deletions", prefix=stream.prefix, kept=kept, check=stream.check,
            every=60.0, backoff=FAST,
        )  # fmt: skip
        one = runner(sweep, delivery)
        async with running(one):
            await until(lambda: one.position is not None)
    assert delivery.deleted() == set(ids)


async def test_a_sweep_for_what_the_stream_missed_is_made_again_where_it_was_interrupted() -> None:
    asked, missed, delivery = 0, asyncio.Event(), KeptDelivery()

    async def kept(prefix: str) -> list[str]:
        return ["a"]

    async def check(ids: list[str], since: float) -> AsyncGenerator[Sequence[Item], None]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise Interrupted("network")
        yield [Deletion("a")]

    sweep = Sweep(
        name="mastodon-deletions", key="deletions", prefix="a", kept=kept, check=check, every=3600.0,
        backoff=FAST, due=missed,
    )  # fmt: skip
    async with running(runner(sweep, delivery, {"swept": time.time()})):
        missed.set()
        await until(lambda: delivery.deleted() == {"a"})
    assert asked == 2


async def test_nothing_is_lost_through_faults_and_a_sweep_finds_the_deletions_that_were_missed() -> None:
    world = World.made(seed=31, posts=600, delete_first=False)
    faults = Faults(seed=32, count=50, every=4, silence=0.4)
    delivery = KeptDelivery()
    async with MastodonApi(world, faults, rate=2000) as api:
        stream = source(api.url, silence=0.2, rewind=1.0)
        sweep = Sweep(
            name="mastodon-deletions", key=f"{stream.key}/deletions", prefix=stream.prefix,
            kept=delivery.kept, check=stream.check, every=0.5, least=0.1, backoff=FAST, due=stream.missed,
        )  # fmt: skip

        def is_complete() -> bool:
            state = delivery.state()
            shown = {k: t for k, t in api.expected().items() if t is not None}
            return (
                world.is_over
                and shown.items() <= state.items()
                and all(state.get(k) is None for k, t in api.expected().items() if t is None)
            )

        deletions = RecentDeletions()
        sources = [runner(one, delivery, deletions=deletions) for one in (stream, sweep)]
        async with running(*sources):
            await until(is_complete)
            await asyncio.sleep(0.1)
        assert is_complete()
        assert delivery.state().keys() <= api.expected().keys()
    assert sum(faults.made.values()) >= 15
