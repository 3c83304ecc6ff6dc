"""Announcements: the last valid one under a key counts, also of two that are made at the same time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from models.loading import Loaded
from models.releases.signature import read_private_key
from models.releases.store import bundled, open_release, sign
from models.scores import Comparison
from models.types import TASKS
from streams.broker.embedded import EmbeddedBroker
from streams.codec import decode, encode
from streams.records import Announcement, Inbound
from streams.rollout import announcements
from streams.rollout.announcements import Announcements, apply_message
from streams.rollout.announcing import GateError, announce
from streams.settings import Settings
from tests.streams.conftest import Keys
from tests.streams.rollout.reloading import Store, announcement, sent
from tests.wire import wire_bytes

WHEN = datetime(2026, 3, 4, 9, 15, tzinfo=UTC)
COMPARISON = Comparison(
    score="f1", definition="F1 over all mentions", data="CADEC", split="test", records=1250,
    candidate=0.7131, live=0.7042, difference=0.0089, low=-0.0012, high=0.0191,
)  # fmt: skip
PUBLISHED = Announcement(
    task="ner", version="0123456789ab", reason="publish", announced_at=WHEN, previous="ba9876543210",
    compared=COMPARISON,
)  # fmt: skip
GOLDEN = {
    "announcement": PUBLISHED,
    "announcement-rollback": Announcement(
        task="acronym", version="0123456789ab", reason="rollback", announced_at=WHEN, forced=True
    ),
}


def message(announcement: Announcement, key: str | None = None) -> Inbound:
    return sent((key or announcement.key).encode(), encode(announcement))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_of_every_version_are_read_and_those_of_the_last_one_written(name: str) -> None:
    numbered = replace(GOLDEN[name], sequence=7)
    # v1 has no sequence; both have a share of the records, for a candidate beside the live release.
    for version, written in ((1, GOLDEN[name]), (2, numbered), (3, numbered)):
        golden = wire_bytes(f"{name}-v{version}")
        assert decode(Announcement, golden) == written
    assert encode(written) == golden


def test_what_earlier_versions_wrote_about_a_shadow_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    current = {"ner": PUBLISHED}
    for value in (wire_bytes("announcement-shadow-v2"), None):
        assert apply_message(current, sent(b"ner.shadow", value)) == "ner.shadow"
    assert current == {"ner": PUBLISHED}
    assert caplog.text == ""


def test_the_later_announcement_of_a_task_counts_until_a_tombstone_ends_it() -> None:
    current: dict[str, Announcement] = {}
    later = replace(PUBLISHED, version="ffffffffffff", announced_at=WHEN.replace(year=2025))
    assert apply_message(current, message(PUBLISHED)) == "ner"
    assert apply_message(current, message(later)) == "ner"
    assert current == {"ner": later}
    # Fields of a later version are ignored.
    assert apply_message(current, sent(b"ner", changed(signed_by="somebody"))) == "ner"
    assert current == {"ner": PUBLISHED}
    current.clear()
    for task in TASKS:
        apply_message(current, message(replace(PUBLISHED, task=task)))  # type: ignore[arg-type]
    assert sorted(current) == sorted(TASKS)
    current = {"ner": PUBLISHED}
    for key, left in (("acronym", {"ner": PUBLISHED}), ("ner", {})):
        assert apply_message(current, sent(key.encode(), None)) == key
        assert current == left


@pytest.mark.parametrize(
    "key", [None, b"", b"nor", b"NER", b"ner.shadow.shadow", b"ner.", b".shadow", b"ner\n", b"\xff\xfe"]
)
@pytest.mark.parametrize("value", [None, encode(PUBLISHED)])
def test_an_unknown_key_changes_nothing(
    key: bytes | None, value: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    current = {"ner": PUBLISHED}
    assert apply_message(current, sent(key, value)) is None
    assert current == {"ner": PUBLISHED}
    assert "releases@7 is not an announcement: unknown key" in caplog.text


def changed(**fields: object) -> bytes:
    return orjson.dumps(orjson.loads(encode(PUBLISHED)) | fields)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not json", id="no JSON"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{}", id="no fields"),
        pytest.param(encode(PUBLISHED)[:-2], id="truncated"),
        pytest.param(changed(version="../../../etc"), id="version that leads outside"),
        pytest.param(changed(version="0123456789ab\n"), id="version with a line break"),
        pytest.param(changed(version="0123456789AB"), id="version in capitals"),
        pytest.param(changed(version=None), id="no version"),
        pytest.param(changed(previous="latest"), id="previous that is no version"),
        pytest.param(changed(task="nor"), id="unknown task"),
        pytest.param(changed(reason="because"), id="unknown reason"),
        pytest.param(changed(announced_at="yesterday"), id="no time"),
        pytest.param(changed(reason="shadow"), id="reason of an earlier version"),
        pytest.param(changed(compared={"score": "f1"}), id="half a comparison"),
    ],
)
def test_an_invalid_message_changes_nothing(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    current = {"ner": PUBLISHED}
    assert apply_message(current, sent(b"ner", value)) is None
    assert current == {"ner": PUBLISHED}
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "\n" not in caplog.records[0].getMessage()


def test_an_announcement_under_another_key_changes_nothing() -> None:
    current: dict[str, Announcement] = {}
    assert apply_message(current, message(PUBLISHED, "acronym")) is None
    assert current == {}


def test_the_generation_of_a_release_is_the_offset_of_its_announcement_plus_1() -> None:
    current = Announcements()
    assert current.generation("ner") == 0
    for offset, one in ((0, PUBLISHED), (3, GOLDEN["announcement-rollback"]), (5, PUBLISHED)):
        current.apply(replace(message(one), offset=offset))
    current.apply(sent(b"ner", b"not an announcement", 6))
    assert (current.generation("ner"), current.generation("acronym")) == (6, 4)
    current.apply(sent(b"acronym", None, 7))
    assert current.generation("acronym") == 0


async def announce_both(
    store: Store, settings: Settings, keys: Keys | None, patch: pytest.MonkeyPatch
) -> list[Announcement | BaseException]:
    """Both have read the topic before one of them writes."""
    barrier = asyncio.Barrier(2)
    send = announcements.send

    async def together(*arguments: Any) -> None:
        await barrier.wait()
        await send(*arguments)

    patch.setattr(announcements, "send", together)
    paths = [store.root / "summarization" / version for version in store.sound[:2]]
    key = keys.private if keys else None
    async with asyncio.timeout(60):
        return await asyncio.gather(
            *(announce(path, settings, None, force=True, signing_key=key) for path in paths),
            return_exceptions=True,
        )


async def test_of_two_publications_at_once_whoever_may_be_wrong_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", store=str(store.root))
        answers = await announce_both(store, settings, None, monkeypatch)
        live = (await announcements.read_announcements(settings))["summarization"]
    told = [answer for answer in answers if isinstance(answer, GateError)]
    assert told
    assert [a for a in answers if not isinstance(a, GateError | Announcement)] == []
    assert all(f"{live.version} holds now" in str(error) for error in told)
    winner = answers[store.sound.index(live.version)]
    assert isinstance(winner, GateError), "it has replaced a release that it was not compared with"
    assert store.sound[1 - store.sound.index(live.version)] in str(winner)


async def test_of_two_signed_publications_at_once_the_first_one_holds(
    store: Store, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", store=str(store.root))
        for version in store.sound[:2]:
            private = read_private_key(keys.private)
            sign(open_release(store.root / "summarization" / version), private)
        signed = settings.model_copy(update={"release_key": keys.public})
        answers = await announce_both(store, signed, keys, monkeypatch)
        live = (await announcements.read_announcements(signed))["summarization"]
    (error,) = [answer for answer in answers if isinstance(answer, GateError)]
    (announced,) = [answer for answer in answers if isinstance(answer, Announcement)]
    assert announced == live
    assert f"{live.version} holds now" in str(error)


def test_an_announcement_that_follows_another_has_no_rival() -> None:
    known = Announcements()
    first, second, late = (
        replace(announcement(c * 12), sequence=n) for c, n in (("a", 1), ("b", 2), ("c", 2))
    )
    for offset, one in enumerate((first, second)):
        known.apply(Inbound("releases", 0, offset, one.key.encode(), encode(one), 0.0))
        assert known.rival(one.key, one) is None
    known.apply(Inbound("releases", 0, 2, late.key.encode(), encode(late), 0.0))
    assert known.rival(late.key, second) == late
    assert known.rival(late.key, late) == second


async def test_a_release_that_went_live_during_a_comparison_is_not_replaced_unseen(store: Store) -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", store=str(store.root))
        first, second = (store.root / "summarization" / version for version in store.sound[:2])

        def compare(candidate: Loaded, live: Loaded, partner: Loaded | None) -> Comparison:
            with ThreadPoolExecutor(1) as another:
                another.submit(asyncio.run, announce(second, settings, None, force=True)).result(60)
            return COMPARISON

        with pytest.raises(
            GateError, match=f"{second.name} is live by now, not {bundled('summarization').name}"
        ):
            await announce(first, settings, compare, force=False)
        live = (await announcements.read_announcements(settings))["summarization"]
    assert live.version == second.name


async def test_a_release_that_is_worse_than_the_live_one_is_refused(store: Store) -> None:
    worse = replace(COMPARISON, candidate=0.6, difference=-0.1042)
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", store=str(store.root))
        with pytest.raises(GateError, match=r"is worse than .*: f1 0\.6000 against 0\.7042 on CADEC"):
            await announce(
                store.root / "summarization" / store.sound[0], settings, lambda *_: worse, force=False
            )
        assert await announcements.read_announcements(settings) == {}
