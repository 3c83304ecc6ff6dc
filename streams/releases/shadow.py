"""A candidate release beside the live one on a share of the records.

It runs in a process of its own, of the lowest priority, on what the live model has already answered, and
drops work rather than let it queue up: whatever happens there, the live path neither waits nor fails.
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
from multiprocessing.connection import Connection
from typing import Any

from aiokafka import AIOKafkaProducer

from models.releases.manifest import StoreError
from streams import metrics
from streams.codec import encode
from streams.dead_letters.headers import describe
from streams.releases.announcements import Refusal, started
from streams.releases.opening import load_release
from streams.replay.diff import decisions
from streams.settings import Settings
from streams.stage import Done, Stage, stamp

log = logging.getLogger(__name__)
#: Batches that may wait; what comes beyond them is left out and counted.
WAITING = 2
#: Seconds that a batch may take, from the candidate's turn until its outputs are confirmed.
BATCH_SECONDS = 60.0
#: Seconds until a process that ended is replaced, or a topic that failed is tried again.
RETRY_SECONDS = 30.0


class Shadow:
    """Use `start` and `stop`; `offer` is called from the live path."""

    def __init__(self, stage: Stage[Any, Any], version: str, share: float, settings: Settings) -> None:
        self.version = version
        self.share = share
        self.refused: Refusal | None = None
        self.loaded = False
        """Whether there is a process that answers."""
        self.counts = dict.fromkeys(("agreed", "differed", "failed", "skipped"), 0)
        self._stage = stage
        self._settings = settings
        self._queue: asyncio.Queue[Sequence[Done]] = asyncio.Queue(WAITING)
        self._task: asyncio.Task[None] | None = None

    def offer(self, done: Sequence[Done]) -> None:
        """Takes the chosen records of a batch, or leaves them out where the shadow is behind."""
        chosen = [d for d in done if is_chosen(d.report.id, self.share)]
        if not chosen:
            return
        try:
            self._queue.put_nowait(chosen)
        except asyncio.QueueFull:
            self._count("skipped", len(chosen))

    def described(self) -> dict[str, Any]:
        """For /releases; agreement is the share of compared records with the same decisions."""
        compared = self.counts["agreed"] + self.counts["differed"]
        agreement = round(self.counts["agreed"] / compared, 4) if compared else None
        return {
            "version": self.version,
            "share": self.share,
            "agreement": agreement,
            "refused": self.refused,
            "loaded": self.loaded,
            **self.counts,
        }

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends the process; what waits is left out."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self.refused is None:
            try:
                await self._serve()
            except Exception as error:
                # Of whatever kind: nothing here is the live path's business.
                log.warning(
                    "shadow of %s: %s; again in %.0f s", self._stage.name, describe(error), RETRY_SECONDS
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def _serve(self) -> None:
        """Answers batches until something fails; a refused release ends it for good."""
        async with started(AIOKafkaProducer(**self._settings.client(), acks="all", linger_ms=5)) as producer:
            candidate = await asyncio.to_thread(Candidate, self._stage.name, self.version, self._settings)
            try:
                refusal = await candidate.loaded()
                if refusal is not None and refusal.passing:
                    raise StoreError(refusal.reason)
                self.refused = refusal
                if self.refused is not None:
                    metrics.RELOADS.labels(self._stage.name, "refused").inc()
                    log.error("shadow %s is refused: %s", self.version, self.refused.reason)
                    return
                self.loaded = True
                while True:
                    batch = await self._queue.get()
                    try:
                        async with asyncio.timeout(BATCH_SECONDS):
                            await self._answer(batch, candidate, producer)
                    except BaseException:
                        self._count("failed", len(batch))
                        raise
            finally:
                self.loaded = False
                await asyncio.to_thread(candidate.end)

    async def _answer(self, batch: Sequence[Done], candidate: Candidate, producer: Any) -> None:
        answers = await candidate.predict([d.report for d in batch])
        if answers is None:
            self._count("failed", len(batch))
            return
        outputs = [
            stamp(answer, d.report, self._stage.name, self.version, d.record)
            for answer, d in zip(answers, batch, strict=True)
        ]
        sink = self._stage.sink.shadow.name
        sends = [await producer.send(sink, key=o.id.encode(), value=encode(o)) for o in outputs]
        await asyncio.gather(*sends)
        same = sum(decisions(o) == decisions(d.output) for o, d in zip(outputs, batch, strict=True))
        self._count("agreed", same)
        self._count("differed", len(batch) - same)

    def _count(self, outcome: str, n: int) -> None:
        self.counts[outcome] += n
        metrics.SHADOW.labels(self._stage.name, outcome).inc(n)


class Candidate:
    """A process that loads a release and answers batches; it ends when this object or its parent does."""

    def __init__(self, task: str, version: str, settings: Settings) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_candidate, args=(theirs, task, version, settings), name=f"shadow-{task}", daemon=True
        )
        self._process.start()
        theirs.close()

    async def loaded(self) -> Refusal | None:
        """Waits until the release is loaded, or refused."""
        refusal: Refusal | None = await asyncio.to_thread(self._pipe.recv)
        return refusal

    async def predict(self, reports: Sequence[Any]) -> Sequence[Any] | None:
        """None where the model raises; EOFError where the process is gone."""
        try:
            await asyncio.to_thread(self._pipe.send, reports)
            answers: Sequence[Any] | None = await asyncio.to_thread(self._pipe.recv)
        except OSError as error:
            raise EOFError("the shadow's process is gone") from error
        return answers

    def end(self) -> None:
        """Frees whoever waits for an answer, too."""
        self._process.kill()
        self._process.join(5)
        self._pipe.close()


def is_chosen(id_: str, share: float) -> bool:
    """Whether a report belongs to the share: always the same ones, so that a repeat is chosen again."""
    return zlib.crc32(id_.encode()) < share * 2**32


def _candidate(pipe: Connection, task: str, version: str, settings: Settings) -> None:
    """The process: loads, says whether it could, and answers until the pipe closes."""
    import torch  # noqa: PLC0415  the live process must not wait for what only this one needs

    from streams.pipeline import stage_named  # noqa: PLC0415

    os.nice(19)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    with suppress(EOFError, BrokenPipeError):
        try:
            model = load_release(task, version, settings).model
        except Exception as error:
            pipe.send(Refusal(version, str(error), isinstance(error, StoreError)))
            return
        pipe.send(None)
        predict = stage_named(task).predict
        while True:
            reports = pipe.recv()
            try:
                answers = predict(model, reports)
            except Exception:
                answers = None
            pipe.send(answers)
