"""The models without Kafka: texts in, the records of the final topics out, by the functions of the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.loading import Loaded
from streams.agents.pipeline import FINAL_TOPICS, STAGES
from streams.batch.provenance import Maker, with_provenance
from streams.input_reports import report_of
from streams.records import NO_TIMESTAMP, Inbound, Report
from streams.rollout.opening import load_release
from streams.settings import Settings
from streams.stage import Stage

#: Texts of one call of a model, which groups them further.
BATCH = 64


@dataclass(frozen=True, slots=True)
class Annotator:
    """The stages from one input topic to its final topic, with their models."""

    topic: str
    steps: tuple[tuple[Stage[Any, Any], Loaded], ...]

    @property
    def releases(self) -> dict[str, str]:
        """Stage to version of its release."""
        return {stage.name: loaded.version for stage, loaded in self.steps}

    def predict(self, texts: Iterable[str | Mapping[str, Any] | Report]) -> list[Any]:
        """A record for each text, in order: a `CodedReport` of a post or sentence, a `Summary` of a question.

        A text may also be an object with the fields of the input topic (`id`, `text`, `drug`, `created_at`,
        ...), and needs no id: that is then its number. Raises BadRecord for what is no input, such as a text
        of white space alone, and whatever a model raises for a text.
        """
        return list(self.stream(texts))

    def stream(self, texts: Iterable[str | Mapping[str, Any] | Report]) -> Iterator[Any]:
        """Yields what `predict` returns, a batch at a time: for more texts than memory holds."""
        batch: list[Report] = []
        for number, text in enumerate(texts):
            batch.append(_as_report(text, number))
            if len(batch) == BATCH:
                yield from self._batch(batch)
                batch = []
        yield from self._batch(batch)

    def _batch(self, reports: Sequence[Any]) -> Sequence[Any]:
        for stage, loaded in self.steps if reports else ():
            maker = Maker(stage.name, loaded.version, loaded.generation, keep_text=True)
            outputs = stage.predict(loaded.model, reports)
            reports = [
                with_provenance(output, report, maker, _source(self.topic, report))
                for output, report in zip(outputs, reports, strict=True)
            ]
        return reports


def load(
    topic: str = "posts",
    *,
    releases: Mapping[str, str | Path] | None = None,
    settings: Settings | None = None,
) -> Annotator:
    """The models that read the texts of an input topic: `posts`, `sentences` or `questions`.

    `releases`: stage to version or folder; the others are the bundled ones. `settings` are by default those
    of the environment (PV_DEVICE, PV_POST_THRESHOLD and so on). Raises ReleaseError, and KeyError for another
    topic.
    """
    settings, chosen = settings or Settings(), dict(releases or {})
    steps = tuple((s, load_release(s.name, chosen.pop(s.name, None), settings)) for s in stages_of(topic))
    if chosen:
        raise KeyError(f"no stage of {topic}: {', '.join(chosen)}")
    for stage, _ in steps:
        if stage.prepare is not None:
            stage.prepare()
    return Annotator(topic, steps)


def stages_of(topic: str) -> tuple[Stage[Any, Any], ...]:
    """The stages that a record of an input topic passes; raises KeyError."""
    if topic not in FINAL_TOPICS:
        raise KeyError(f"no input topic {topic!r}; they are {', '.join(FINAL_TOPICS)}")
    passed: list[Stage[Any, Any]] = []
    while topic != FINAL_TOPICS[passed[0].source.name if passed else topic].name:
        passed.append(next(stage for stage in STAGES if stage.source.name == topic))
        topic = passed[-1].sink.name
    return tuple(passed)


def _as_report(text: str | Mapping[str, Any] | Report, number: int) -> Report:
    if isinstance(text, Report):
        return text
    return report_of({"id": str(number), **({"text": text} if isinstance(text, str) else text)})


def _source(topic: str, report: Report) -> Inbound:
    """A record as it would come from the input topic, without a place there."""
    return Inbound(topic, 0, 0, report.id.encode(), None, NO_TIMESTAMP)
