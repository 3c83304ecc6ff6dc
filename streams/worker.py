"""A process that runs stages: loads the models, checks the topics, starts, drains on a signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from streams import http, metrics, topics
from streams.app import StageApp
from streams.broker.watch import BrokerWatch
from streams.inference import InferenceThread
from streams.releases import announcements
from streams.releases.handle import Handle
from streams.releases.reload import Reloader, first_load
from streams.settings import Settings
from streams.stage import Stage

log = logging.getLogger(__name__)
#: How often lag and readiness are brought up to date.
OBSERVE_SECONDS = 1.0
#: What is left to a process with a failed stage: its records will not be acked, however long it waits.
FAILED_GRACE = 3.0
#: What is left after the grace to close connections; then the process ends, whatever still hangs.
EXIT_SECONDS = 15.0


def end_within(seconds: float) -> None:
    """Ends the process after so long, however it hangs: an inference that does not come back, a store that
    does not answer. What is not acked comes again.
    """

    def end() -> None:
        log.error("not stopped within %.0f s: ending anyway", seconds)
        logging.shutdown()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


class WorkerFailed(RuntimeError):
    """A stage ended by itself; the process must end too, and the broker gives its partitions to another."""


class Worker:
    """Stages that run in this process, sharing one inference thread."""

    def __init__(self, stages: Sequence[Stage[Any, Any]], settings: Settings) -> None:
        self.stages = stages
        self.settings = settings
        self.handles: dict[str, Handle] = {}
        self.http_port = 0
        self._apps: list[StageApp] = []
        self._inference = InferenceThread(settings.threads)
        self._broker = BrokerWatch(settings)
        self._ends_process = False

    async def load(self, loaded: Callable[[str], None] = lambda task: None) -> None:
        """Loads every stage's model in the inference thread; raises ReleaseError, and TopicsError when topics
        are missing.
        """
        await topics.require(
            self.settings,
            (topics.RELEASES, *(t for s in self.stages for t in (s.source, s.sink, s.source.dead))),
        )
        announced = await announcements.announced(self.settings)
        for stage in self.stages:
            self.handles[stage.name] = await self._inference.run(
                partial(first_load, stage.name, announced.get(stage.name), self.settings)
            )
            loaded(stage.name)

    def readiness(self) -> dict[str, bool]:
        """Stage to whether it is assigned and has a model, and the broker answers."""
        ready = {a.stage.name: self._broker.up and a.assigned and not a.app.rebalancing for a in self._apps}
        for stage in self.stages:
            metrics.READY.labels(stage.name).set(ready.get(stage.name, False))
        return ready

    def releases(self) -> dict[str, Any]:
        """Task to what is live, what was refused and what runs as a shadow."""
        return {task: handle.described() for task, handle in self.handles.items()}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the loaded stages inside the block, and drains them at its end: what was taken is finished and
        acked.

        Raises WorkerFailed as soon as a stage fails.
        """
        self._apps = [StageApp(s, self.settings, self.handles[s.name], self._inference) for s in self.stages]
        runner, self.http_port = await http.start(
            self.settings.http_host, self.settings.http_port, self.readiness, self.releases
        )
        body = asyncio.current_task()
        assert body is not None
        beside = [
            asyncio.create_task(self._broker.run()),
            asyncio.create_task(Reloader(self.stages, self.handles, self.settings).run()),
        ]
        watch = asyncio.create_task(self._watch(body, beside))
        try:
            await asyncio.gather(*(a.app.start() for a in self._apps))
            yield
        except asyncio.CancelledError:
            if not watch.done():
                raise
        finally:
            failed = watch.done() and not watch.cancelled()
            if failed and self._ends_process:
                end_within(FAILED_GRACE + EXIT_SECONDS)
            for task in (watch, *beside):
                task.cancel()
            await asyncio.gather(watch, *beside, return_exceptions=True)
            await self._stop(FAILED_GRACE if failed else self.settings.grace)
            await runner.cleanup()
        if failed:
            body.uncancel()
            watch.result()

    async def serve(self) -> None:
        """Runs until SIGTERM or SIGINT; raises WorkerFailed when a stage fails."""
        self._ends_process = True
        # What the libraries made when they were imported stays for good: without this each full collection,
        # and a swap asks for one, walks half a million objects and holds everything up for 0.2 s.
        gc.collect()
        gc.freeze()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, stop.set)
        async with self.running():
            log.info("running %s; metrics on port %d", ", ".join(s.name for s in self.stages), self.http_port)
            await stop.wait()
            log.info("stopping: finishing what was taken, %.0f s at most", self.settings.grace)
            end_within(self.settings.grace + EXIT_SECONDS)

    async def _watch(self, body: asyncio.Task[Any], beside: Sequence[asyncio.Task[None]]) -> None:
        """Keeps the gauges fresh; when a stage fails, or what runs beside them, or this does, cancels the
        body and raises why.
        """
        try:
            while True:
                await asyncio.sleep(OBSERVE_SECONDS)
                self.readiness()
                for task in beside:
                    if task.done():
                        task.result()
                for a in self._apps:
                    a.observe_lag()
                    if a.app.crashed or a.agent_failed:
                        reason = a.agent_failed or a.app.crash_reason
                        raise WorkerFailed(f"{a.stage.name}: {type(reason).__name__}: {reason}") from reason
        except Exception:
            body.cancel()
            raise

    async def _stop(self, grace: float) -> None:
        """Drains every stage within the grace; what is not finished by then stays unacked and comes again."""
        apps, self._apps = self._apps, []
        self.readiness()
        stops = [asyncio.create_task(a.app.stop()) for a in apps if a.app.started]
        if stops:
            _, late = await asyncio.wait(stops, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                log.warning("%d stages were not drained within %.0f s", len(late), grace)
        self._inference.close()
