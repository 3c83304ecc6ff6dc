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
