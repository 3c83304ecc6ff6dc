"""The records, models and amounts that all parts of the benchmark share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.speed.timing import chunks, side_by_side
from models import language
from models.loading import Loaded
from streams.agents.pipeline import STAGES, stages_from
from streams.cli.demo.run import samples
from streams.codec import decode
from streams.inference_threads import default_workers
from streams.records import Report
from streams.rollout.handle import load_task
from streams.settings import Settings
from streams.stage import Stage

BATCH = Settings.model_fields["batch"].default


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The amounts that are measured."""

    records: dict[str, int]
    """Lines of each input topic."""
    repeats: int
    seconds: float
    """Seconds of each load in the measurement of latencies."""


FULL = Amount(records={"posts": 192, "sentences": 192, "questions": 32}, repeats=3, seconds=40.0)
#: Shows that every part runs.
QUICK = Amount(records={"posts": 12, "sentences": 12, "questions": 2}, repeats=1, seconds=4.0)


def inputs(data: Path, limits: dict[str, int]) -> dict[str, list[bytes]]:
    """The first lines of each stream; of the bundled samples if there is no data."""
    folder = data / "streams"
    files = {t: folder / f"{t}.jsonl" for t in limits} if folder.is_dir() else samples()
    return {t: files[t].read_bytes().splitlines()[: limits[t]] for t in limits}


class Setup:
    """The records of each topic, and the bundled models in the number format of this machine."""

    def __init__(self, data: Path, amount: Amount) -> None:
        self.amount = amount
        self.settings = Settings()
        self.lines = inputs(data, amount.records)
        self.models: dict[str, Loaded] = {s.name: load_task(s.name, self.settings).current for s in STAGES}
        self.workers = default_workers(self.settings.device)
        language.load()
        self.before = self._inputs()
        """The records that each stage reads, by the topic that they came from."""

    @property
    def records(self) -> int:
        return sum(map(len, self.lines.values()))

    @property
    def number_format(self) -> str:
        model: Any = self.models["ner"].model
        return str(model.encoder.model.dtype).removeprefix("torch.")

    def calls(self, stage: str, topic: str) -> list[Callable[[], Any]]:
        """A prediction for each batch of a stage over what came from a topic."""
        (outputs,) = (s.outputs for s in STAGES if s.name == stage)
        return [
            partial(outputs, self.models[stage], batch) for batch in chunks(self.before[topic, stage], BATCH)
        ]

    def forget(self) -> None:
        """Makes the models answer anew what they answered in an earlier run."""
        for model in (loaded.model for loaded in self.models.values()):
            if hasattr(model, "forget"):
                model.forget()

    def _inputs(self) -> dict[tuple[str, str], Sequence[Any]]:
        found: dict[tuple[str, str], Sequence[Any]] = {}
        for topic, lines in self.lines.items():
            records: Sequence[Any] = [decode(Report, line) for line in lines]
            for stage in stages_from(topic):
                found[topic, stage.name] = records
                records = self.answers(topic, stage, records)
        return found

    def answers(self, topic: str, stage: Stage[Any, Any], records: Sequence[Any]) -> list[Any]:
        """What a stage makes of the records that came from a topic."""
        outputs = partial(stage.outputs, self.models[stage.name])
        batches = [partial(outputs, batch) for batch in chunks(records, BATCH)]
        return [r for made in side_by_side(batches, self.workers) for r in made]
