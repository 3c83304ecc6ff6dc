from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial

import pytest

from streams.pipe import PipeThread

STOPPED = """
import asyncio
from streams.intake.items import Post
from streams.pipe import standard_input
from streams.sources.protocols.ndjson import Ndjson

async def read():
    async for step in Ndjson(path=None, pipe=standard_input()).read(None):
        for item in step.items:
            print(item.text, flush=True)
            asyncio.get_running_loop().call_later(0.2, task.cancel)

async def main():
    global task
    task = asyncio.create_task(read())
    await asyncio.gather(task, return_exceptions=True)

asyncio.run(main())
"""


def test_a_process_that_is_stopped_does_not_wait_for_another_line_of_its_pipe() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as writer, os.fdopen(read_end, "rb") as pipe:
        process = subprocess.Popen([sys.executable, "-c", STOPPED], stdin=pipe, stdout=subprocess.PIPE)
        writer.write(b'{"id": "1", "text": "awake"}\n')
        writer.flush()
        try:
            assert process.communicate(timeout=60)[0] == b"awake\n"
        finally:
            process.kill()
    assert process.returncode == 0


async def test_calls_are_made_in_their_order_and_raise_what_they_raised() -> None:
    with PipeThread() as thread:
        made: list[int] = []
        await asyncio.gather(*(thread.call(partial(made.append, n)) for n in range(5)))
        assert made == list(range(5))
        with pytest.raises(ZeroDivisionError):
            await thread.call(lambda: 1 // 0)
        assert await thread.call(lambda: 7) == 7
