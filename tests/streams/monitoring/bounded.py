"""Serves a worker's HTTP and the page in a process with few descriptors; prints both ports.

No connection is closed for its time alone: an answer comes because the servers make room for it.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from functools import partial

import pytest

from streams.broker.client_logs import configure_logging
from streams.monitoring import http, server
from streams.monitoring.connection import Limits
from streams.settings import Settings
from streams.web import app


async def main(database: str, descriptors: int) -> None:
    pytest.MonkeyPatch().setattr(server, "Limits", partial(Limits, request=3600.0))
    page = app.application(Settings(database=database, web_port=0), [])
    _, port = await http.start("127.0.0.1", 0, lambda: {"ner": True}, dict, tuple)
    _, page_port = await app.start(page)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    print(port, page_port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    configure_logging()
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
