"""The page beside the stages, in one process with the store: while a process writes to a DuckDB file, no
other one can read it.
"""

from __future__ import annotations

import asyncio
import errno
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams.settings import Settings

#: Seconds for the first answer of the page, which waits for the store.
ANSWER_SECONDS = 60.0


@contextmanager
def temporary_settings(settings: Settings, *, keeps_database: bool = False) -> Iterator[Settings]:
    """Settings of the store and the page on an embedded broker, whose topics are empty at each start: files
    that belong to earlier topics are not used. The folder of the new files is deleted at the end.
    """
    with tempfile.TemporaryDirectory(prefix="pvstream-") as name:
        folder = Path(name)
        changes: dict[str, object] = {"state": folder / "state"}
        if not keeps_database:
            changes["database"] = str(folder / "events.duckdb")
        yield settings.model_copy(update=changes)


@asynccontextmanager
async def page(settings: Settings) -> AsyncIterator[str]:
    """Serves the page for the time of the block, which begins when the page answers; gives its address. Where
    PV_WEB_PORT is not set and its default is in use, the port is any free one. Raises AccessError.
    """
    from models.terminology import BUNDLED, load
    from streams.web.app import application, start

    terms = load(BUNDLED)
    try:
        runner, port = await start(application(settings, terms))
    except OSError as error:
        if error.errno != errno.EADDRINUSE or "web_port" in settings.model_fields_set:
            raise
        anywhere = settings.model_copy(update={"web_port": 0})
        runner, port = await start(application(anywhere, terms))
    host = f"[{settings.web_host}]" if ":" in settings.web_host else settings.web_host
    address = f"http://{host}:{port}/"
    try:
        with suppress(TimeoutError):
            await _answered(address)
        yield address
    finally:
        await runner.cleanup()


async def _answered(address: str) -> None:
    from aiohttp import ClientError, ClientSession

    async with asyncio.timeout(ANSWER_SECONDS), ClientSession() as client:
        while True:
            with suppress(ClientError):
                async with client.get(address) as answer:
                    if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                        return
            await asyncio.sleep(0.1)
