"""Runs a source in a test, and reads its metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streams.metrics import REGISTRY
from streams.sources.runner import Runner


@asynccontextmanager
async def running(*runners: Runner) -> AsyncIterator[None]:
    """Runs them for the time of the block; an error of one is raised at its end."""
    tasks = [asyncio.create_task(runner.run()) for runner in runners]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


def sample(name: str, **labels: str) -> float:
    """The value of a metric; 0 where it has none yet."""
    return REGISTRY.get_sample_value(name, labels) or 0.0
