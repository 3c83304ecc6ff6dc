"""The store of releases is away while a worker works: the worker goes on, says so, and takes the new release
when the store is back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import fsspec
import pytest

from models.releases.manifest import Release
from models.releases.remote import deliver
from streams.agents import ner
from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.records import Report
from streams.rollout import announcements, reload
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS
from streams.worker import Worker
from tests.models.releases.stores import MisbehavingStore
from tests.streams.polling import until
from tests.streams.rollout.reloading import announcement
from tests.tiny_releases import tiny_release

pytestmark = pytest.mark.usefixtures("tiny_bundled")
STAGE = Stage("ner", POSTS, MENTIONS, ner.predict)


class ObjectStore(MisbehavingStore):
    """While it is away, it refuses every request or answers none."""

    protocol = "away"
    refuses: ClassVar[bool] = False
    answers: ClassVar[threading.Event] = threading.Event()

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        assert self.answers.wait(120)
        if self.refuses:
            raise ConnectionRefusedError("nobody listens")
        return super().ls(path, detail, **options)


class Store:
    """A folder that is mounted, or an object store that refuses or hangs while it is away."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind, self._folder = kind, folder / "mounted"
        self.address = str(self._folder) if kind == "folder" else f"away://{uuid4().hex}"
        ObjectStore.answers.set()
        fsspec.register_implementation("away", ObjectStore, clobber=True)

    @contextmanager
    def away(self) -> Iterator[None]:
        elsewhere = self._folder.with_name("elsewhere")
        if self._kind == "folder":
            self._folder.rename(elsewhere)
        elif self._kind == "hangs":
            ObjectStore.answers.clear()
        ObjectStore.refuses = self._kind == "refuses"
        try:
            yield
        finally:
            if self._kind == "folder":
                elsewhere.rename(self._folder)
            ObjectStore.refuses = False
            ObjectStore.answers.set()


async def announce(settings: Settings, release: Release) -> None:
    await announcements.send(settings, "ner", announcement(release.version, task="ner"))


async def taggers_of(settings: Settings, sender: Sender, *ids: str) -> set[str]:
    """The releases that tag texts of these ids, which are sent now."""
    for id_ in ids:
        await sender.send("posts", Report(id=id_, text="zoloft gave me insomnia"))
    found: dict[str, str] = {}
    async for arrival in arrivals(settings):
        assert arrival.topic == "mentions"
        found[arrival.key] = arrival.record.releases["ner"]
        if found.keys() >= set(ids):
            break
    return {found[id_] for id_ in ids}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("folder", "is not in the store"),
        ("refuses", "ConnectionRefusedError: nobody listens"),
        ("hangs", "is not copied within 1 s"),
    ],
)
async def test_a_worker_goes_on_without_the_store_and_takes_the_new_release_when_it_is_back(
    kind: str, said: str, tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.2)
    first, second = (tiny_release("ner", tiny_bert, tmp_path / "made", kind=name) for name in ("one", "two"))
    store = Store(kind, tmp_path)
    for release in (first, second):
        deliver(release, store.address)
    with EmbeddedBroker() as broker:
        address = f"kafka://{broker.bootstrap}"
        settings = Settings(broker=address, http_port=0, store=store.address, store_deadline=1.0)
        worker = Worker((STAGE,), settings)
        async with worker.running(), asyncio.timeout(120), Sender(settings) as sender:
            await announce(settings, first)
            await until(lambda: worker.releases()["ner"]["version"] == first.version)
            with store.away():
                await announce(settings, second)
                await until(lambda: worker.releases()["ner"]["refused"] is not None)
                assert await taggers_of(settings, sender, "a", "b", "c") == {first.version}
                told = worker.releases()["ner"]
                assert (told["version"], told["refused"]["version"]) == (first.version, second.version)
                assert told["refused"]["passing"] and said in told["refused"]["reason"]
                assert worker.readiness() == {"ner": True}
            await until(lambda: worker.releases()["ner"]["version"] == second.version)
            assert worker.releases()["ner"]["refused"] is None
            assert await taggers_of(settings, sender, "d") == {second.version}
