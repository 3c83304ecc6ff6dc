"""A process that runs stages: it loads the models, checks the topics, runs, and drains on a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiokafka.errors import InvalidSessionTimeoutError, KafkaError

from models.loading import model_class
from models.releases.private import remove_abandoned
from models.types import JUDGE
from streams import metrics, topics
from streams.app.stage_app import StageApp
from streams.broker.clock import explained
from streams.broker.groups import have_members
from streams.broker.watch import BrokerWatch
from streams.inference_threads import InferenceWorkers
from streams.monitoring import http
from streams.monitoring.in_flight import InFlight
from streams.monitoring.lag import LagWatch
from streams.monitoring.progress import Progress
from streams.monitoring.watchdog import Watchdog
from streams.rollout import announcements, loaded_judge
from streams.rollout.handle import Handle
from streams.rollout.reload import Reloader, load_at_start
from streams.settings import Settings
from streams.stage import Stage
from streams.stopping import at_signals, freeze
from streams.topics import group_id

log = logging.getLogger(__name__)
#: Seconds between two updates of lag and readiness.
OBSERVE_SECONDS = 1.0
#: Seconds to drain after a stage failed: its own records will not be acknowledged, so a long wait is useless.
FAILED_GRACE = 3.0
#: Seconds to drain while the broker is away, after which nothing more is confirmed soon.
AWAY_GRACE = 3.0
#: Seconds after that to close the connections, which Faust's services may wait for without end.
AWAY_EXIT = 5.0
#: Seconds after the grace period to close connections; then the process exits, whatever still hangs.
EXIT_SECONDS = 15.0
#: Seconds to wait for apps that are still starting when a model could not be loaded.
START_SECONDS = 15.0
#: Seconds within which the broker must list the members of the groups.
GROUP_SECONDS = 5.0


def exit_after(seconds: float, code: int = 1) -> None:
    """Starts a timer that exits the process, even if an inference or a store request hangs.

    Records that are not acknowledged by then are delivered again.
    """

    def end() -> None:
        log.error("not stopped within %.0f s: exiting anyway", seconds)
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def import_models(tasks: Sequence[str]) -> None:
    """Imports what the models of some tasks need, in one thread: imports in several wait for each other."""
    for task in tasks:
        model_class(task)


class WorkerFailed(RuntimeError):
    """A stage failed; the process must exit, so that the broker assigns its partitions to another worker."""


def describe(reason: BaseException | None) -> str:
    """Why a stage failed, with the setting where that is the cause."""
    if isinstance(reason, InvalidSessionTimeoutError):
        return (
            "the broker refuses PV_SESSION_TIMEOUT: it takes sessions from its group.min.session.timeout.ms, "
            "6 seconds by default, to its group.max.session.timeout.ms, 30 minutes by default"
        )
    return explained(reason) or f"{type(reason).__name__}: {reason}"


class Worker:
    """Stages that run in this process and share its inference workers."""

    def __init__(self, stages: Sequence[Stage[Any, Any]], settings: Settings, *, alone: bool = False) -> None:
        """`alone`: no other process works in the groups of these stages, as on an embedded broker."""
        self.stages = stages
        self.settings = settings
        self.handles: dict[str, Handle] = {}
        self.http_port = 0
        self._apps: list[StageApp] = []
        self._inference = InferenceWorkers.of(settings.workers, settings.threads, settings.device)
        # The records of an embedded broker end with the process.
        self._in_flight = InFlight(None if alone else settings.state_folder / "in_flight")
        self._broker = BrokerWatch(settings)
        self._watchdog = Watchdog(settings.inference_deadline)
        self._exits_process = False
        self._alone = alone
        self._topics_exist = asyncio.Event()
        self._loaded = {stage.name: asyncio.Event() for stage in stages}
        self.beside: list[asyncio.Task[None]] = []
        """What the caller runs and ends, and without which the worker fails."""

    async def load(self, on_loaded: Callable[[str], None] = lambda task: None) -> None:
        """Loads the models that are missing, and what their stages need beside them, off the event loop;
        `on_loaded` gets each task when it is done.

        Raises TopicsError when topics are missing, and ReleaseError when a model cannot be loaded.
        """
        missing = [stage.name for stage in self.stages if stage.name not in self.handles]
        if missing:
            required = (topic for stage in self.stages for topic in stage.topics)
            # What the models import takes longer than to ask the broker.
            importing = asyncio.create_task(self._inference.run(partial(import_models, missing)))
            wanted = (topics.RELEASES, *required)
            await self._broker.until_answered(partial(topics.require, self.settings, wanted))
            self._topics_exist.set()
            remove_abandoned()
            read = partial(announcements.read_announcements, self.settings)
            announced = await self._broker.until_answered(read)
            await importing
            await asyncio.gather(*(self._load(task, announced, on_loaded) for task in missing))
        for loaded in self._loaded.values():
            loaded.set()

    async def _load(
        self, task: str, announced: announcements.Announcements, on_loaded: Callable[[str], None]
    ) -> None:
        generation = announced.generation(task)
        work = partial(load_at_start, task, announced.get(task), self.settings, generation)
        handle = await self._inference.run(work)
        if task == loaded_judge.STAGE:
            generation = announced.generation(JUDGE)
            beside = partial(loaded_judge.judge_at_start, announced.get(JUDGE), self.settings, generation)
            handle.judge = await self._inference.run(beside)
            if handle.judge is not None:
                self.handles[JUDGE] = handle.judge
        self.handles[task] = handle
        for stage in self.stages:
            if stage.name == task and stage.prepare is not None:
                await self._inference.run(stage.prepare)
        self._loaded[task].set()
        on_loaded(task)

    def readiness(self) -> dict[str, bool]:
        """For each stage whether it can process: model loaded, partitions assigned, no rebalance, the broker
        answers.
        """
        ready = {
            name: self._broker.up and self._loaded[name].is_set() and a.assigned and not a.app.rebalancing
            for name, a in ((a.stage.name, a) for a in self._apps)
        }
        for stage in self.stages:
            metrics.READY.labels(stage.name).set(ready.get(stage.name, False))
        return ready

    def releases(self) -> dict[str, Any]:
        """For each task the live release and the refused one."""
        return {task: handle.status() for task, handle in self.handles.items()}

    @asynccontextmanager
    async def running(self, on_loaded: Callable[[str], None] = lambda task: None) -> AsyncIterator[None]:
        """Runs the stages inside the block, and drains them at its end: records already read are finished and
        acknowledged. Before the block it joins the groups and meanwhile loads the missing models, as `load`.

        Raises WorkerFailed as soon as a stage fails.
        """
        self._apps = [self._stage_app(stage) for stage in self.stages]
        self._watchdog.progress = [a.progress for a in self._apps]
        runner, self.http_port = await http.start(
            self.settings.http_host,
            self.settings.http_port,
            self.readiness,
            self.releases,
            self._watchdog.stalled,
        )
        body = asyncio.current_task()
        assert body is not None
        lag = LagWatch(self.settings, self._apps)
        beat = asyncio.create_task(self._watchdog.beat())
        broker = asyncio.create_task(self._broker.run())
        background = [asyncio.create_task(lag.run())]
        watch = asyncio.create_task(self._watch(body, [broker, *background, *self.beside], lag))
        try:
            await self._start(on_loaded)
            background.append(asyncio.create_task(Reloader(self.stages, self.handles, self.settings).run()))
            yield
        except asyncio.CancelledError:
            if not watch.done():
                raise
        finally:
            failed = watch.done() and not watch.cancelled()
            await self._stop((watch, *background), broker, failed=failed)
            await runner.cleanup()
            beat.cancel()
            self._watchdog.stop()
        if failed:
            body.uncancel()
            watch.result()

    async def _start(self, on_loaded: Callable[[str], None]) -> None:
        """Joins the groups while the models are loaded, or afterwards if another process is a member, which
        can process the partitions until then. No group is joined before the topics are known to exist. If
        loading fails or this is cancelled, apps that are starting are waited for: an app whose start is
        cancelled does not leave its group.
        """
        self._in_flight.open()
        loading = asyncio.create_task(self.load(on_loaded))
        exist = asyncio.create_task(self._topics_exist.wait())
        starting: list[asyncio.Task[Any]] = []
        try:
            await asyncio.wait((loading, exist), return_when=asyncio.FIRST_COMPLETED)
            if loading.done() or await self._others_work():
                await loading
            starting = [asyncio.create_task(a.app.start()) for a in self._apps]
            await asyncio.gather(loading, *map(asyncio.shield, starting))
        finally:
            if starting:
                # Without a broker there is nothing to leave.
                _, late = await asyncio.wait(starting, timeout=START_SECONDS if self._broker.up else 0)
                for start in late:
                    start.cancel()
            loading.cancel()
            exist.cancel()

    async def _others_work(self) -> bool:
        """Whether another process may be a member of the groups; True where the broker does not answer."""
        if self._alone or self.handles.keys() >= {stage.name for stage in self.stages}:
            return False
        try:
            groups = [group_id(self.settings, stage.name) for stage in self.stages]
            return await asyncio.wait_for(have_members(self.settings, groups), GROUP_SECONDS)
        except (KafkaError, TimeoutError):
            return True

    async def serve(self) -> None:
        """Runs until SIGTERM or SIGINT; raises WorkerFailed when a stage fails, and what `load` raises."""
        self._exits_process = True
        stop = asyncio.Event()
        body = asyncio.current_task()
        assert body is not None
        starting = True

        def end() -> None:
            # Once: a second cancellation would interrupt the stop.
            if starting and not stop.is_set():
                body.cancel()
            stop.set()

        at_signals(end)
        try:
            async with self.running():
                starting = False
                freeze()
                self._watchdog.start()
                log.info("running %s; metrics on port %d", ", ".join(self.handles), self.http_port)
                await stop.wait()
                log.info("stopping: finishing the records already read, within %.0f s", self.settings.grace)
                exit_after(self.settings.grace + EXIT_SECONDS)
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
            body.uncancel()
            exit_after(FAILED_GRACE)

    def _stage_app(self, stage: Stage[Any, Any]) -> StageApp:
        progress = Progress(stage.name, self._watchdog.clock, self._in_flight)
        return StageApp(stage, self.settings, partial(self._handle, stage.name), self._inference, progress)

    async def _handle(self, task: str) -> Handle:
        await self._loaded[task].wait()
        return self.handles[task]

    async def _watch(
        self, body: asyncio.Task[Any], background: Sequence[asyncio.Task[None]], lag: LagWatch
    ) -> None:
        """Updates lag and readiness; when a stage, a background task or this fails, cancels `body` and raises
        the reason.
        """
        try:
            while True:
                await asyncio.sleep(OBSERVE_SECONDS)
                self.readiness()
                for task in background:
                    if task.done():
                        task.result()
                lag.observe()
                for a in self._apps:
                    if a.app.crashed or a.agent_failed:
                        reason = a.agent_failed or a.app.crash_reason
                        raise WorkerFailed(f"{a.stage.name}: {describe(reason)}") from reason
        except Exception:
            body.cancel()
            raise

    async def _stop(
        self, tasks: Sequence[asyncio.Task[None]], broker: asyncio.Task[None], *, failed: bool
    ) -> None:
        """Cancels the background tasks, drains the stages, and cancels the watch of the broker, without which
        they cannot be drained; after a failure the process exits even if that hangs.
        """
        if failed and self._exits_process:
            exit_after(FAILED_GRACE + EXIT_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._drain(FAILED_GRACE if failed else self.settings.grace)
        broker.cancel()
        await asyncio.gather(broker, return_exceptions=True)

    async def _drain(self, grace: float) -> None:
        """Stops every stage within `grace` seconds, or AWAY_GRACE without a broker; records not finished by
        then stay unacknowledged and are delivered again.
        """
        apps, self._apps = self._apps, []
        self.readiness()
        stops = [asyncio.create_task(a.app.stop()) for a in apps if a.app.started]
        if stops:
            late = await self._not_stopped(stops, grace)
            for task in late:
                task.cancel()
        self._inference.close()
        self._in_flight.close()

    async def _not_stopped(self, stops: Sequence[asyncio.Task[Any]], grace: float) -> set[asyncio.Task[Any]]:
        """Waits for the stops of the stages, and gives those that are left."""
        left, waited, away = set(stops), 0.0, 0.0
        while left and waited < grace and away < AWAY_GRACE:
            seconds = min(OBSERVE_SECONDS, grace - waited)
            _, left = await asyncio.wait(left, timeout=seconds)
            waited += seconds
            away = 0.0 if self._broker.up else away + seconds
        if left and away >= AWAY_GRACE:
            log.warning("%d stages are not waited for any longer: the broker is away", len(left))
            if self._exits_process:
                exit_after(AWAY_EXIT, code=0)
        elif left:
            log.warning("%d stages were not drained within %.0f s", len(left), grace)
        return left
