"""Texts through the functions of the stages, without Kafka: for the library, and for evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.loading import Loaded
from streams.agents.pipeline import stages_from
from streams.input_reports import report_of
from streams.provenance import Maker, with_provenance
from streams.records import NO_TIMESTAMP, Inbound, Report
from streams.stage import Stage

#: Texts of one call of a model, which groups them further.
BATCH = 64
#: The version of a model that is no release.
NO_RELEASE = "0" * 12


@dataclass(frozen=True, slots=True)
class Annotator:
    """The stages from one input topic to its final topic, with their models."""

    topic: str
    steps: tuple[tuple[Stage[Any, Any], Loaded], ...]

    @classmethod
    def of_models(cls, topic: str, *models: Any) -> Annotator:
        """Makes one of models that are no releases, in the order of the stages to its first results."""
        stages = stages_from(topic)
        loaded = [
            Loaded(s.name, NO_RELEASE, "", m, ([], [], 0.0)) for s, m in zip(stages, models, strict=True)
        ]
        return cls(topic, tuple(zip(stages, loaded, strict=True)))

    @property
    def releases(self) -> dict[str, str]:
        """Stage, and judge, to version of its release."""
        makers = [Maker.of(stage.name, loaded) for stage, loaded in self.steps]
        return {name: version for maker in makers for name, version in maker.releases().items()}

    def predict(self, texts: Iterable[str | Mapping[str, Any] | Report]) -> list[Any]:
        """A record for each text, in order: a `CodedReport` of a post or sentence, a `Summary` of a question
        unless its events are asked for.

        A text may also be an object with the fields of the input topic (`id`, `text`, `drug`, `indication`,
        `created_at`, ...), and needs no id: that is then its number. Raises BadRecord for what is no input,
        such as a text of white space alone, and whatever a model raises for a text.
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
            maker = Maker.of(stage.name, loaded)
            outputs = stage.outputs(loaded, reports)
            reports = [
                with_provenance(output, report, maker, _source(self.topic, report))
                for output, report in zip(outputs, reports, strict=True)
            ]
        return reports


def _as_report(text: str | Mapping[str, Any] | Report, number: int) -> Report:
    if isinstance(text, Report):
        return text
    return report_of({"id": str(number), **({"text": text} if isinstance(text, str) else text)})


def _source(topic: str, report: Report) -> Inbound:
    """A record as it would come from the input topic, without a place there."""
    return Inbound(topic, 0, 0, report.id.encode(), None, NO_TIMESTAMP)
