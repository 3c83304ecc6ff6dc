"""Drift: how far a sample of a stage's records is from the reference of its release."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from models.drift import (
    FEATURES,
    Feature,
    Floats,
    Reference,
    TextFeatures,
    cosine_distance,
    stability_index,
    text_features,
    values,
)
from models.loading import Loaded
from streams import metrics
from streams.items import Item

log = logging.getLogger(__name__)
#: Records of the window, and the values of a feature below which nothing is said: with 200 values in ten bins
#: the index of the same population is 0.05 on average.
WINDOW, AT_LEAST = 1000, 200
#: Records that are measured together: a text alone takes twice the time.
TOGETHER = 16


class _Row(NamedTuple):
    bins: tuple[tuple[Feature, int], ...]
    vector: Floats


class Window:
    """The last records of a sample, as counts in the bins of a reference and as the sum of their vectors."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._rows: deque[_Row] = deque()
        self._counts = {f: [0] * len(h.counts) for f, h in reference.histograms.items()}
        self._sum = np.zeros(len(reference.mean))

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, features: TextFeatures, scores: Sequence[float]) -> None:
        """Adds a text with the scores of what was found in it; the oldest one leaves a full window."""
        histograms = self._reference.histograms
        found = values(features, scores)
        bins = tuple((f, histograms[f].bin(x)) for f in histograms for x in found[f])
        self._count(_Row(bins, features.vector), 1)
        if len(self._rows) > WINDOW:
            self._count(self._rows.popleft(), -1)

    def _count(self, row: _Row, sign: int) -> None:
        if sign > 0:
            self._rows.append(row)
        for feature, position in row.bins:
            self._counts[feature][position] += sign
        self._sum += sign * row.vector

    def indexes(self) -> dict[Feature, float]:
        """The population stability index of each feature that both have enough values of."""
        pairs = {f: (h.counts, self._counts[f]) for f, h in self._reference.histograms.items()}
        return {f: stability_index(a, b) for f, (a, b) in pairs.items() if min(sum(a), sum(b)) >= AT_LEAST}

    def distance(self) -> float | None:
        """1 minus the cosine of the mean vectors; None while there are too few, and without an encoder."""
        if len(self) < AT_LEAST or not self._reference.mean:
            return None
        return cosine_distance(self._reference.mean, self._sum)


class Drift:
    """Measures a share of the records of a stage, in an inference thread, beside its batches.

    While a measurement waits or runs, the records of further batches are left out.
    """

    def __init__(
        self,
        stage: str,
        share: float,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        together: int = TOGETHER,
    ) -> None:
        self._stage, self._share, self._run, self._together = stage, share, run, together
        self._chosen: list[Item] = []
        self._version = ""
        self._window: Window | None = None
        self._measuring: asyncio.Task[None] | None = None

    def offer(self, done: Sequence[Item], loaded: Loaded) -> None:
        """Receives the records of a batch that `loaded` has answered; neither waits nor raises."""
        if loaded.version != self._version:
            self._begin(loaded)
        if self._window is None or self._measuring is not None:
            return
        self._chosen += [
            p
            for p in done
            if p.report is not None
            and is_chosen(p.report.id, self._share)
            and p.output.releases.get(self._stage) == self._version
        ]
        if len(self._chosen) >= self._together:
            chosen, self._chosen = self._chosen, []
            self._measuring = asyncio.create_task(self._measure(chosen, loaded, self._window))

    def _begin(self, loaded: Loaded) -> None:
        """Another release has another reference, so its window begins empty."""
        self._version, self._chosen = loaded.version, []
        self._window = Window(loaded.reference) if loaded.reference is not None else None
        for feature in FEATURES:
            with suppress(KeyError):
                metrics.DRIFT.remove(self._stage, feature)
        for gauge in (metrics.DRIFT_VECTOR, metrics.DRIFT_RECORDS):
            with suppress(KeyError):
                gauge.remove(self._stage)

    async def _measure(self, chosen: Sequence[Item], loaded: Loaded, window: Window) -> None:
        model: Any = loaded.model
        try:
            features = await self._run(partial(text_features, model.encoder, [p.report.text for p in chosen]))
            for own, p in zip(features, chosen, strict=True):
                window.add(own, found_scores(self._stage, p.output))
            if window is self._window:
                self._publish(window)
        except Exception as error:
            # A text that the live model has answered; and a record is never lost for a metric.
            log.warning("%s: drift is not measured: %s", self._stage, type(error).__name__)
        finally:
            self._measuring = None

    def _publish(self, window: Window) -> None:
        metrics.DRIFT_RECORDS.labels(self._stage).set(len(window))
        indexes = window.indexes()
        for feature in FEATURES:
            if feature in indexes:
                metrics.DRIFT.labels(self._stage, feature).set(indexes[feature])
            else:
                # A window that moves on may hold too few scores again.
                with suppress(KeyError):
                    metrics.DRIFT.remove(self._stage, feature)
        distance = window.distance()
        if distance is not None:
            metrics.DRIFT_VECTOR.labels(self._stage).set(distance)


def is_chosen(id_: str, share: float) -> bool:
    """Whether a report is in the share; it depends on the id only, so a repeat is chosen again."""
    return zlib.crc32(id_.encode()) < share * 2**32


def found_scores(stage: str, output: Any) -> list[float]:
    """The score of each mention, relation, event, expansion or short question that a stage has found in a
    text; as in a reference, expansions that are undecided count too, and classes of drugs that a table added
    do not.
    """
    match stage:
        case "ner":
            found: Sequence[Any] = [m for m in output.mentions if m.kind is None or m.score < 1]
        case "relation":
            found = output.relations
        case "acronym":
            found = *output.expansions, *output.undecided
        case "normalization":
            found = output.events
        case "summarization":
            found = (output.summary,)
        case _:
            raise ValueError(f"no stage {stage!r}")
    return [one.score for one in found]
