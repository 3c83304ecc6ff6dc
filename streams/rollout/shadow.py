"""A shadow: a candidate release that also processes a share of the live records, for comparison.

It runs in its own process of the lowest priority, on records that the live model has already processed. When
it is busy it skips records instead of queueing them: the live stage neither waits for it nor fails with it.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from aiokafka import AIOKafkaProducer

from models.loading import Loaded
from models.releases.manifest import PassingError
from models.types import JUDGE
from streams import metrics
from streams.broker.client_logs import configure_logging
from streams.broker.consumer import running_client
from streams.broker.trace_context import trace_headers
from streams.dead_letters.headers import describe_error
from streams.items import Item, finished
from streams.order import tombstone_headers
from streams.provenance import Maker
from streams.records import Headers
from streams.replay.diff import decisions
from streams.rollout.announcements import Refusal, is_passing
from streams.rollout.opening import load_release
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import broker_name, request_bytes

log = logging.getLogger(__name__)
#: Batches that may wait; further ones are skipped and counted.
MAX_WAITING_BATCHES = 2
#: Batches with tombstones only that wait beyond those, while the candidate is started again.
MAX_WAITING_DELETIONS = 10_000
#: Seconds that a batch may take, from the start of inference until its outputs are confirmed.
BATCH_SECONDS = 60.0
#: Seconds until the candidate's process and the producer are started again after an error.
RETRY_SECONDS = 30.0


class Shadow:
    """Use `start` and `stop`; the live stage calls `offer`."""

    def __init__(  # noqa: PLR0913  what is announced, and what is live
        self,
        stage: Stage[Any, Any],
        version: str,
        share: float,
        settings: Settings,
        generation: int = 0,
        *,
        judge: Loaded | None = None,
    ) -> None:
        """`judge`: the live one, which judges what the candidate finds too."""
        self.version = version
        self.share = share
        self.generation = generation
        """That of the announcement of the shadow, which orders the outputs of successive shadows."""
        self.refused: Refusal | None = None
        self.loaded = False
        """Whether the candidate's process is running and has loaded its model."""
        self.counts = dict.fromkeys(("agreed", "differed", "failed", "skipped"), 0)
        self._stage = stage
        self._judge = None if judge is None else (judge.version, judge.generation)
        self._settings = settings
        self._queue: asyncio.Queue[Sequence[Item]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def offer(self, done: Sequence[Item]) -> None:
        """Queues the chosen records of a batch, or skips them when too many wait or the candidate is refused;
        but no tombstones while it runs, which delete what the shadow wrote.
        """
        chosen = [p for p in done if p.report is None or is_chosen(p.report.id, self.share)]
        if self.refused is not None or self._queue.qsize() >= MAX_WAITING_BATCHES:
            waiting = [p for p in chosen if p.report is None]
            self._count("skipped", len(chosen) - len(waiting))
            chosen = waiting
        if chosen and self.refused is None and self._queue.qsize() < MAX_WAITING_DELETIONS:
            self._queue.put_nowait(chosen)

    def status(self) -> dict[str, Any]:
        """For /releases; agreement is the share of compared records with the same decisions."""
        compared = self.counts["agreed"] + self.counts["differed"]
        agreement = round(self.counts["agreed"] / compared, 4) if compared else None
        return {
            "version": self.version,
            "share": self.share,
            "agreement": agreement,
            "refused": self.refused.status() if self.refused is not None else None,
            "loaded": self.loaded,
            **self.counts,
        }

    def start(self) -> None:
        """Starts the shadow in the background."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends the candidate's process; batches that wait are dropped."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self.refused is None:
            try:
                await self._process_batches()
            except Exception as error:
                # No error of a shadow may reach the live stage.
                log.warning(
                    "shadow of %s: %s; starting again in %.0f s",
                    self._stage.name,
                    describe_error(error),
                    RETRY_SECONDS,
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def _process_batches(self) -> None:
        """Starts the candidate and processes batches until an error; returns when the release is refused."""
        size = request_bytes(self._settings)
        producer = AIOKafkaProducer(**self._settings.client(), acks="all", linger_ms=5, max_request_size=size)
        async with running_client(producer):
            starting = asyncio.create_task(
                asyncio.to_thread(
                    CandidateProcess,
                    self._stage.name,
                    self.version,
                    self._settings,
                    None if self._judge is None else self._judge[0],
                )
            )
            try:
                # Shielded: if this is cancelled meanwhile, the process must still be known, to be killed.
                candidate = await asyncio.shield(starting)
                self.refused = await self._wait_loaded(candidate)
                if self.refused is not None:
                    return
                self.loaded = True
                while True:
                    batch = await self._queue.get()
                    try:
                        async with asyncio.timeout(BATCH_SECONDS):
                            await self._process(batch, candidate, producer)
                    except BaseException:
                        deletions = [p for p in batch if p.report is None]
                        self._count("failed", len(batch) - len(deletions))
                        if deletions:
                            self._queue.put_nowait(deletions)
                        raise
            finally:
                self.loaded = False
                candidate = await starting
                await asyncio.to_thread(candidate.kill)

    async def _wait_loaded(self, candidate: CandidateProcess) -> Refusal | None:
        """None when the release is loaded, else its refusal; raises PassingError when a later attempt may
        succeed.
        """
        refusal = await candidate.wait_loaded()
        if refusal is not None:
            if refusal.retryable:
                raise PassingError(refusal.reason)
            metrics.RELOADS.labels(self._stage.name, "refused").inc()
            log.error("shadow %s is refused: %s", self.version, refusal.reason)
        return refusal

    async def _process(self, batch: Sequence[Item], candidate: CandidateProcess, producer: Any) -> None:
        """Sends the candidate's outputs to the shadow topic and compares them with the live ones, and passes
        tombstones on, all in the order of the batch.
        """
        reports = [p for p in batch if p.report is not None]
        predictions = await candidate.predict([p.report for p in reports]) if reports else []
        if predictions is None:
            self._count("failed", len(reports))
            predictions, reports = [], []
        maker = Maker(self._stage.name, self.version, self.generation, self._judge)
        keep_text, limit = self._settings.keep_text, self._settings.max_output_bytes
        written = [
            finished(replace(p, output=prediction), maker, keep_text=keep_text, limit=limit)
            for prediction, p in zip(predictions, reports, strict=True)
        ]
        # One with a fault, such as a value that is too large, would be a dead letter of the live release.
        answered = [
            (p, answer) for p, answer in zip(reports, written, strict=True) if answer.value is not None
        ]
        sends: dict[int, tuple[bytes | None, bytes | None, Headers]]
        sends = {
            id(p): (answer.output.id.encode(), answer.value, trace_headers(p.record.headers))
            for p, answer in answered
        }
        for p in batch:
            if p.report is None:
                source = self._stage.source_of(p.record)
                sends[id(p)] = p.record.key, None, tombstone_headers(source, p.record)
        await self._send(producer, [sends[id(p)] for p in batch if id(p) in sends])
        agreed = sum(decisions(answer.output) == decisions(p.output) for p, answer in answered)
        self._count("failed", len(written) - len(answered))
        self._count("agreed", agreed)
        self._count("differed", len(answered) - agreed)

    async def _send(
        self, producer: Any, records: Sequence[tuple[bytes | None, bytes | None, Headers]]
    ) -> None:
        topic = broker_name(self._settings, self._stage.sink.shadow.name)
        deliveries = [
            await producer.send(topic, key=key, value=value, headers=list(h)) for key, value, h in records
        ]
        await asyncio.gather(*deliveries)

    def _count(self, outcome: str, n: int) -> None:
        self.counts[outcome] += n
        metrics.SHADOW.labels(self._stage.name, outcome).inc(n)


class CandidateProcess:
    """A process that loads a release and runs inference on batches; it ends at `kill`, or with its parent."""

    def __init__(self, task: str, version: str, settings: Settings, judge: str | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, child_pipe = context.Pipe()
        self._process = context.Process(
            target=_run_candidate,
            args=(child_pipe, task, version, settings, judge),
            name=f"shadow-{task}",
            daemon=True,
        )
        self._process.start()
        child_pipe.close()

    async def wait_loaded(self) -> Refusal | None:
        """Waits until the release is loaded (None) or refused; raises EOFError when the process has ended."""
        refusal: Refusal | None = await asyncio.to_thread(self._pipe.recv)
        return refusal

    async def predict(self, reports: Sequence[Any]) -> Sequence[Any] | None:
        """The model's outputs, or None when it raises; raises EOFError when the process has ended."""
        try:
            await asyncio.to_thread(self._pipe.send, reports)
            outputs: Sequence[Any] | None = await asyncio.to_thread(self._pipe.recv)
        except OSError as error:
            raise EOFError("the shadow's process has ended") from error
        return outputs

    def kill(self) -> None:
        """Kills the process; a call that waits for its answer raises."""
        self._process.kill()
        self._process.join(5)
        self._pipe.close()


def is_chosen(id_: str, share: float) -> bool:
    """Whether a report is in the share; it depends on the id only, so a repeat is chosen again."""
    return zlib.crc32(id_.encode()) < share * 2**32


def _run_candidate(pipe: Connection, task: str, version: str, settings: Settings, judge: str | None) -> None:
    """The candidate's process: sends None or a Refusal, then outputs for each batch until the pipe closes."""
    import torch  # noqa: PLC0415  only this process needs these imports

    from streams.agents.pipeline import stage_named  # noqa: PLC0415

    configure_logging()
    os.nice(19)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    with suppress(EOFError, BrokenPipeError):
        try:
            loaded = load_release(task, version, settings)
            if judge is not None:
                named = settings.releases.get(JUDGE, judge)
                loaded = replace(loaded, judge=load_release(JUDGE, named, settings))
        except Exception as error:
            pipe.send(Refusal(version, str(error), is_passing(error)))
            return
        pipe.send(None)
        stage = stage_named(task)
        while True:
            reports = pipe.recv()
            try:
                outputs = stage.outputs(loaded, reports)
            except Exception:
                outputs = None
            pipe.send(outputs)
