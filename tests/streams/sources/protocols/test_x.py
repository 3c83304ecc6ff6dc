from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from models.drugs import BUNDLED, DrugLexicon
from models.tables import read_tsv
from streams.intake.items import Deletion
from streams.sources.protocols import x_rules
from streams.sources.protocols.connection import session
from streams.sources.protocols.x import BACKOFF, X, read_post
from streams.sources.protocols.x_compliance import Compliance
from streams.sources.runner import RecentDeletions
from streams.sources.source import Interrupted, SourceFailed
from streams.sources.sweep import Sweep
from tests.streams.polling import until
from tests.streams.sources.kept import FAST, KeptDelivery, runner
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.running import running, sample
from tests.streams.sources.players.world import Happening, World
from tests.streams.sources.players.x_api import TOKEN, XApi, tweet, tweet_id

CREATED = Happening(kind="create", number=3, text="Awake all night")


def line(**fields: object) -> bytes:
    return orjson.dumps({"data": tweet(CREATED) | fields})


def test_of_an_author_nothing_is_kept_an_edit_has_its_first_id_and_an_error_interrupts() -> None:
    post = read_post(line())
    assert (post.author, post.permalink, post.country) == (None, None, None)
    assert post.aggregate_only
    assert post.language == "en"
    edit = read_post(orjson.dumps({"data": tweet(Happening(kind="update", number=3, text="Edited"))}))
    assert (edit.id, edit.edited) == (read_post(line()).id, True)
    with pytest.raises(Interrupted):
        read_post(b'{"errors": [{"title": "operational-disconnect", "detail": "planted"}]}')


ESCAPED, PLAIN = "Zoloft &amp; wine, pain &gt; 7, &amp;lt; &quot;", "Zoloft & wine, pain > 7, &lt; &quot;"
REFERENCES = [{"type": "quoted", "id": "1"}, {"type": "retweeted", "id": "2"}]


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"note_tweet": {"text": "long " * 100}}, "text", "long " * 100),
        # The entities of the API are no part of the text.
        ({"text": ESCAPED}, "text", PLAIN),
        ({"note_tweet": {"text": ESCAPED}}, "text", PLAIN),
        ({"referenced_tweets": REFERENCES}, "repost_of", "x:2"),
        ({"referenced_tweets": REFERENCES[:1]}, "repost_of", None),
        ({}, "edited", False),
    ],
)
def test_a_post_is_read_from_the_fields_of_the_api(fields: dict[str, Any], name: str, value: object) -> None:
    assert getattr(read_post(line(**fields)), name) == value


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"{}", b'{"data": {}}', b'{"data": {"id": 5, "text": "a"}}']
)
def test_what_is_no_post_is_malformed(content: bytes) -> None:
    with pytest.raises(ValueError):
        read_post(content)


def test_it_waits_as_the_documentation_asks() -> None:
    def waits(reason: str, attempts: range) -> list[float]:
        return [BACKOFF.seconds(Interrupted(reason), n, draw=0.0) for n in attempts]  # type: ignore[arg-type]

    assert waits("network", range(1, 5)) == [0.25, 0.5, 0.75, 1.0]
    assert waits("silent", range(63, 66)) == [15.75, 16.0, 16.0]
    assert waits("http", range(1, 9)) == [5, 10, 20, 40, 80, 160, 320, 320]
    assert waits("limited", range(1, 3)) == [60, 120]
    assert BACKOFF.seconds(Interrupted("limited", wait=200), 1, draw=0.0) == 200


def test_the_rules_of_the_lexicon_hold_every_name_and_fit_the_api() -> None:
    rules = x_rules.from_lexicon(BUNDLED)
    assert len(rules) <= x_rules.MAX_RULES
    assert max(map(len, rules)) <= x_rules.MAX_RULE
    held = {
        term.strip('"') for rule in rules for term in rule.removesuffix(x_rules.SUFFIX)[1:-1].split(" OR ")
    }
    assert held == {row[0].lower() for row in read_tsv(BUNDLED, ("name", "generic"))}
    assert len(held) >= len(DrugLexicon.load())


def test_a_file_of_rules_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text("# drugs\nzoloft lang:en\n\nzoloft lang:en\nprozac\n")
    assert x_rules.from_file(file) == ["zoloft lang:en", "prozac"]
    file.write_bytes(b"\xef\xbb\xbfzoloft lang:en\r\nprozac\r\n")
    assert x_rules.from_file(file) == ["zoloft lang:en", "prozac"]
    file.write_bytes("citalopram naïf".encode("latin-1"))
    with pytest.raises(SourceFailed, match="cannot be read: UnicodeDecodeError"):
        x_rules.from_file(file)
    file.write_text("a" * 1025)
    with pytest.raises(SourceFailed, match="rule 1 has 1025 characters"):
        x_rules.from_file(file)
    with pytest.raises(SourceFailed, match="1001 rules"):
        x_rules.checked([f"drug{n}" for n in range(1001)])


async def test_the_rules_on_the_server_become_those_that_are_wanted() -> None:
    async with XApi(World([])) as api:
        api.rules = {"old": "a", "zoloft": "b"}
        one = runner(X(token=TOKEN, server=api.url, rules=["zoloft", "prozac"], backoff=FAST), KeptDelivery())
        async with running(one):
            await until(lambda: one.connected)
    assert api.rules.keys() == {"zoloft", "prozac"}
    assert api.rules["zoloft"] == "b"


@pytest.mark.parametrize(("token", "rules"), [("another", ["a"]), (TOKEN, ["(a"])])
async def test_a_refused_token_or_rule_ends_the_source_in_one_line(token: str, rules: list[str]) -> None:
    async with XApi(World([])) as api:
        one = runner(X(token=token, server=api.url, rules=rules, backoff=FAST), KeptDelivery())
        with pytest.raises(SourceFailed) as raised:
            await one.run()
    assert "\n" not in str(raised.value)
    assert token not in str(raised.value)


async def test_the_time_without_a_connection_is_a_gap_but_for_what_is_asked_for_again() -> None:
    gaps = []
    for backfill in (0, 5):
        async with XApi(World([])) as api:
            before = sample("pv_source_gap_seconds_total", source="x")
            source = X(token=TOKEN, server=api.url, rules=["a"], backoff=FAST, backfill=backfill)
            one = runner(source, KeptDelivery(), {"alive": time.time() - 400})
            async with running(one):
                await until(lambda one=one: one.connected)  # type: ignore[misc]
            gaps.append(sample("pv_source_gap_seconds_total", source="x") - before)
    assert gaps == pytest.approx([400, 100], abs=10)
    assert api.queries[0]["backfill_minutes"] == "5"


@pytest.mark.slow
async def test_nothing_is_lost_through_100_faults_and_compliance_finds_every_deletion() -> None:
    world = World.made(seed=21, posts=1000, delete_first=False)
    faults = Faults(seed=22, count=100, every=8, silence=1.0)
    delivery = KeptDelivery()
    # All of it is sent again: on a slow machine more is under way at a cut than a minute's backfill holds.
    async with XApi(world, faults, rate=3000, repeated=len(world.happenings)) as api:
        api.keeps_alive = True
        compliance = Compliance(token=TOKEN, server=api.url, poll=0.02)
        sweep = Sweep(
            name="x-deletions", key="x/deletions", prefix="x:", kept=delivery.kept, check=compliance.check,
            every=0.3, least=0.1, backoff=FAST,
        )  # fmt: skip
        source = X(token=TOKEN, server=api.url, rules=["a"], backoff=FAST, silence=0.6, backfill=5)
        expected = {f"x:{tweet_id(number)}": text for number, text in world.final.items()}
        deletions = RecentDeletions()
        sources = [runner(one, delivery, deletions=deletions) for one in (source, sweep)]
        async with running(*sources):
            await until(lambda: sum(faults.made.values()) == 100, 300.0)
            await until(lambda: delivery.state() == expected)
            await asyncio.sleep(0.1)  # for a sweep that deletes too much
            # A connection that is silent for too long is replaced, and the new one sends all versions of a
            # post again: the state is the expected one only when it has sent the last.
            await until(lambda: delivery.state() == expected)
    assert sum(faults.made.values()) == 100


@pytest.mark.parametrize(("status", "headers"), [(503, {}), (429, {"Retry-After": "0"}), (500, {})])
async def test_a_compliance_job_goes_on_where_its_state_cannot_be_asked_once(
    status: int, headers: dict[str, str]
) -> None:
    world = World([Happening(kind="delete", number=1)])
    world.publish(1)
    async with XApi(world) as api:
        api.busy = [(status, headers)] * 2
        ids = [f"x:{tweet_id(1)}"]
        parts = [part async for part in Compliance(token=TOKEN, server=api.url, poll=0.01).check(ids, 0.0)]
    assert parts == [[Deletion(ids[0])]]
    assert len(api.uploads) == 1


async def test_a_compliance_job_whose_server_refuses_meanwhile_ends_the_source() -> None:
    async with XApi(World([])) as api:
        api.busy = [(401, {})]
        with pytest.raises(SourceFailed):
            [part async for part in Compliance(token=TOKEN, server=api.url, poll=0.01).check(["1"], 0.0)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "failed"}, "compliance job failed"),
        *(({name: None}, f"without {name}") for name in ("status", "upload_url", "download_url", "id")),
    ],
)
async def test_a_compliance_job_that_fails_or_lacks_a_field_is_an_interruption_and_deletes_nothing(
    changes: dict[str, str | None], reason: str
) -> None:
    async with XApi(World([])) as api:
        state = api._state

        def changed(id_: str, status: str) -> dict[str, str]:
            return {n: v for n, v in (state(id_, status) | changes).items() if v is not None}

        api._state = changed  # type: ignore[method-assign]
        with pytest.raises(Interrupted, match=reason):
            [part async for part in Compliance(token=TOKEN, server=api.url, poll=0.01).check(["1"], 0.0)]


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"[]", b'{"data": [{}]}', b'{"meta": null}'])
async def test_rules_that_cannot_be_read_are_asked_for_again(body: bytes) -> None:
    app = web.Application()

    async def rules(request: web.Request) -> web.Response:
        return web.Response(body=body)

    app.add_routes([web.get("/rules", rules)])
    async with TestServer(app) as server, session([str(server.make_url("/"))]) as client:
        with pytest.raises(Interrupted, match="an answer that is"):
            await x_rules.synchronise(client, str(server.make_url("/rules")), ["a"])


async def test_the_last_line_of_a_compliance_result_counts_without_a_line_end() -> None:
    world = World([Happening(kind="delete", number=n) for n in (1, 2)])
    world.publish(2)
    async with XApi(world) as api:
        api.last_line_end = b""
        ids = [f"x:{tweet_id(n)}" for n in (1, 2, 3)]
        parts = [part async for part in Compliance(token=TOKEN, server=api.url, poll=0.01).check(ids, 0.0)]
    assert parts == [[Deletion(id_) for id_ in ids[:2]]]
