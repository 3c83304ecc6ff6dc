"""Topics are created where they are missing, and awaited until the broker lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import NodeNotReadyError

from streams import topics
from streams.settings import Settings
from streams.topics import POSTS


class Admin:
    """A broker that accepts every topic."""

    async def create_topics(self, new: list[Any], timeout_ms: int) -> Any:
        return SimpleNamespace(topic_errors=[(topic.name, 0) for topic in new])


async def test_a_broker_that_does_not_answer_while_topics_are_awaited_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @asynccontextmanager
    async def client(_: Settings) -> AsyncIterator[Admin]:
        yield Admin()

    answers: list[Any] = [{}, NodeNotReadyError(), {}, {POSTS.name: 4}]

    async def counts(_: Settings) -> dict[str, int]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    monkeypatch.setattr(topics, "admin_client", client)
    monkeypatch.setattr(topics, "partition_counts", counts)
    assert await topics.create(Settings(), (POSTS,)) == [POSTS.name]
    assert not answers


class Unready:
    """A client whose broker names no node before it was asked `questions` times."""

    def __init__(self, questions: int) -> None:
        self.questions, self.asked, self.started = questions, 0, False
        self._client = self

    async def start(self) -> None:
        self.started = True

    def get_random_node(self) -> int | None:
        return 1 if self.asked >= self.questions else None

    async def force_metadata_update(self) -> None:
        self.asked += 1

    async def close(self) -> None:
        self.started = False


async def test_every_command_gets_an_admin_client_that_knows_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Unready(2)
    monkeypatch.setattr(topics, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(topics, "AIOKafkaAdminClient", lambda **_: admin)
    async with topics.admin_client(Settings()) as client:
        assert client is admin
        assert (admin.started, admin.asked) == (True, 2)
    assert not admin.started
    # A client that could not start is closed too.
    monkeypatch.setattr(topics, "NODE_SECONDS", 0.0)
    admin = Unready(10**9)
    with pytest.raises(NodeNotReadyError):
        async with topics.admin_client(Settings()):
            pass
    assert not admin.started
