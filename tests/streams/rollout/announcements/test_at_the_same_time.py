"""Two announcements of one task that are made at the same time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from models.loading import Loaded
from models.releases.signature import read_private_key
from models.releases.store import bundled, open_release, sign
from models.scores import Comparison
from streams.broker.embedded import EmbeddedBroker
from streams.codec import encode
from streams.records import Announcement, Inbound
from streams.rollout import announcements
from streams.rollout.announcements import Announcements
from streams.rollout.announcing import GateError, announce
from streams.settings import Settings
from tests.streams.conftest import Keys
from tests.streams.rollout.announcements.test_announcements import COMPARISON
from tests.streams.rollout.reloading import Store, announcement


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
