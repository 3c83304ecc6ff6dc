"""Runs sources in a test, and reads their metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streams.metrics import REGISTRY
from streams.sources.runner import Runner


@asynccontextmanager
async def running(*runners: Runner) -> AsyncIterator[None]:
    """Runs them for the time of the block; an error of one ends the block."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(runner.run()) for runner in runners]
            yield
            for task in tasks:
                task.cancel()
    except* Exception as errors:
        raise errors.exceptions[0] from None


def sample(name: str, **labels: str) -> float:
    """The value of a metric; 0 where it has none yet."""
    return REGISTRY.get_sample_value(name, labels) or 0.0
