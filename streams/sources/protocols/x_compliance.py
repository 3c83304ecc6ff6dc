"""X's batch compliance: which of the kept posts were deleted, asked by a job for all of them at once.

https://docs.x.com/x-api/compliance/batch-compliance
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from streams.intake.items import Deletion, Item
from streams.sources.protocols.connection import (
    REQUEST_SECONDS,
    answered,
    interruptions,
    json_of,
    raise_for,
    read_lines,
    session,
)
from streams.sources.protocols.x import PREFIX, SERVER
from streams.sources.source import Interrupted

log = logging.getLogger(__name__)
#: Ids in one part of the answer.
AT_ONCE = 500
#: Seconds to send the ids; a million of them are 20 MB.
UPLOAD_SECONDS = 600.0
#: Reasons of the API for which a post stays public: only its place is removed.
STAYS = frozenset({"scrub_geo"})


@dataclass(slots=True, kw_only=True)
class Compliance:
    """Compliance jobs for the ids of posts."""

    token: str = field(repr=False)
    server: str = SERVER
    poll: float = 30.0
    """Seconds between two questions for the state of a job."""
    longest: float = 4 * 3600.0
    """Seconds after which a job that is not complete counts as failed."""

    async def check(self, ids: list[str], since: float) -> AsyncGenerator[Sequence[Item], None]:
        """Deletions of the posts that are deleted, withheld with their account, or protected. Edits are in
        the stream.
        """
        with interruptions():
            named, token = [self.server], {"Authorization": f"Bearer {self.token}"}
            async with session(named, token) as client, session(named) as plain:
                job = await self._request(client.post(self._url(), json={"type": "tweets"}))
                await self._upload(plain, _field(job, "upload_url"), ids)
                url = await self._completed(client, job)
                async with answered(plain.get(url)) as response:
                    raise_for(response.status, response.headers, frozenset())
                    async with aclosing(_parts(response)) as parts:
                        async for part in parts:
                            yield [Deletion(PREFIX + id_) for id_ in part]

    def _url(self, id_: str = "") -> str:
        return f"{self.server}/2/compliance/jobs" + (f"/{id_}" if id_ else "")

    async def _upload(self, plain: aiohttp.ClientSession, url: str, ids: list[str]) -> None:
        """The address is signed: the token is not sent there."""
        headers = {"Content-Type": "text/plain"}
        body = "\n".join(id_.removeprefix(PREFIX) for id_ in ids).encode()
        async with asyncio.timeout(UPLOAD_SECONDS), plain.put(url, data=body, headers=headers) as response:
            raise_for(response.status, response.headers, frozenset())

    async def _completed(self, client: aiohttp.ClientSession, job: dict[str, Any]) -> str:
        try:
            async with asyncio.timeout(self.longest):
                while (status := _field(job, "status")) != "complete":
                    if status in ("failed", "expired"):
                        raise Interrupted("http", "the compliance job failed")
                    await asyncio.sleep(self.poll)
                    job = await self._state(client, job)
        except TimeoutError:
            raise Interrupted("silent", "the compliance job does not end") from None
        return _field(job, "download_url")

    async def _state(self, client: aiohttp.ClientSession, job: dict[str, Any]) -> dict[str, Any]:
        """The job as it is now, or the given one where that cannot be asked: a new job would need its hours
        again, and be asked as often.
        """
        url = self._url(_field(job, "id"))
        try:
            with interruptions():
                return await self._request(client.get(url))
        except Interrupted as interruption:
            log.info("the state of the compliance job is asked again: %s", interruption)
            await asyncio.sleep(interruption.wait or 0.0)
            return job

    async def _request(self, request: Any) -> dict[str, Any]:
        try:
            data: dict[str, Any] = (await json_of(request))["data"]
        except (KeyError, TypeError):
            raise Interrupted("http", "an answer that is no compliance job") from None
        return data


def _field(job: dict[str, Any], name: str) -> str:
    """What the API says of a job; raises Interrupted where that is missing."""
    value = job.get(name) if isinstance(job, dict) else None
    if not isinstance(value, str):
        raise Interrupted("http", f"a compliance job without {name}")
    return value


async def _parts(response: aiohttp.ClientResponse) -> AsyncGenerator[list[str], None]:
    """The deleted ids of a result; raises Interrupted where it is not complete or not readable."""
    part: list[str] = []
    async with aclosing(read_lines(response.content, REQUEST_SECONDS, has_end=True)) as lines:
        async for line in lines:
            if line is None or not line.strip():
                continue
            try:
                event = orjson.loads(line)
                if event["action"] == "delete" and event.get("reason") not in STAYS:
                    part.append(str(event["id"]))
            except (ValueError, KeyError, TypeError):
                raise Interrupted("http", "a compliance result that is not readable") from None
            if len(part) >= AT_ONCE:
                yield part
                part = []
    if part:
        yield part
