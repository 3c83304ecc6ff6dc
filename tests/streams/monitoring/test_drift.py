"""Drift of a stage's records: its window, its metrics, and what it leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from models.drift import Reference, make_reference, text_features
from models.encoder.model import Encoder
from models.loading import Loaded, load
from models.releases.manifest import Release
from models.types import Mention
from streams import metrics
from streams.agents import ner
from streams.agents.pipeline import STAGES, expand
from streams.items import Item
from streams.monitoring.drift import AT_LEAST, WINDOW, Drift, Window, found_scores, is_chosen
from streams.records import Inbound, Report, TaggedReport, extend
from tests.fakes import loaded
from tests.tiny_releases import TEXTS
from training.common.reference import scores

SHORT, LONG = "zoloft gave me a rash", "it was a long story about the weather and nothing else at all " * 5
RASH = Mention(17, 21, "rash", "ADE", 0.9)


class Embedding:
    """A model whose encoder is all that counts here."""

    task = "ner"

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        return [[] for _ in batch]


@pytest.fixture
def live(small: Encoder) -> Loaded:
    """A release whose reference is of short texts with one mention."""
    made = make_reference("short texts", text_features(small, [SHORT] * 400), [[0.9]] * 400)
    return replace(loaded(Embedding(small)), reference=made)


@pytest.fixture(autouse=True)
def no_series_of_others() -> Iterator[None]:
    yield
    for gauge in (metrics.DRIFT, metrics.DRIFT_VECTOR, metrics.DRIFT_RECORDS):
        gauge.clear()


def processed(n: int, text: str, release: Loaded, mentions: Sequence[Mention] = (RASH,)) -> list[Item]:
    reports = [Report(id=f"{text[:3]}-{i}", text=text) for i in range(n)]
    outputs = [
        replace(extend(TaggedReport, r, mentions=tuple(mentions)), releases={"ner": release.version})
        for r in reports
    ]
    record = Inbound("posts", 0, 0, None, None, 0.0)
    return [Item(record, r, o) for r, o in zip(reports, outputs, strict=True)]


async def now(work: Callable[[], Any]) -> Any:
    return work()


async def offered(measured: Drift, records: Sequence[Item], release: Loaded) -> None:
    measured.offer(records, release)
    if measured._measuring is not None:
        await measured._measuring


def series() -> dict[tuple[str, str], float]:
    found = [
        s for metric in (metrics.DRIFT, metrics.DRIFT_VECTOR) for f in metric.collect() for s in f.samples
    ]
    return {(s.name, s.labels.get("feature", "")): s.value for s in found}


async def test_records_like_the_reference_have_no_drift_and_others_have(live: Loaded) -> None:
    measured = Drift("ner", 1.0, now, 1)
    await offered(measured, processed(AT_LEAST, SHORT, live), live)
    same = series()
    assert same.keys() == {
        *(("pv_drift_psi", f) for f in ("text_length", "unknown_pieces", "found", "score")),
        ("pv_drift_vector", ""),
    }
    assert max(same.values()) < 0.01
    await offered(measured, processed(WINDOW, LONG, live, ()), live)
    other = series()
    assert other["pv_drift_psi", "text_length"] > 0.25
    assert other["pv_drift_psi", "found"] > 0.25
    assert other["pv_drift_vector", ""] > same["pv_drift_vector", ""] + 0.01
    assert metrics.DRIFT_RECORDS.labels("ner")._value.get() == WINDOW


async def test_of_a_model_without_an_encoder_the_other_features_are_measured() -> None:
    made = make_reference("short texts", text_features(None, [SHORT] * 400), [[0.9]] * 400)
    live = replace(loaded(Mock(encoder=None)), reference=made)
    await offered(Drift("ner", 1.0, now, 1), processed(AT_LEAST, LONG, live, ()), live)
    found = series()
    assert found.keys() == {("pv_drift_psi", "text_length"), ("pv_drift_psi", "found")}
    assert min(found.values()) > 0.25


async def test_nothing_is_said_of_too_few_records(live: Loaded) -> None:
    await offered(measured := Drift("ner", 1.0, now, 1), processed(AT_LEAST - 1, LONG, live), live)
    assert series() == {}
    assert metrics.DRIFT_RECORDS.labels("ner")._value.get() == AT_LEAST - 1
    await offered(measured, processed(1, SHORT, live), live)
    assert series() != {}


async def test_an_index_ends_when_the_window_holds_too_few_scores_again(live: Loaded) -> None:
    measured = Drift("ner", 1.0, now, 1)
    low = replace(RASH, score=0.3)
    await offered(measured, processed(AT_LEAST, SHORT, live, (low,)), live)
    assert series()["pv_drift_psi", "score"] > 0.25
    await offered(measured, processed(WINDOW, SHORT, live, ()), live)
    assert ("pv_drift_psi", "score") not in series()
    assert series()["pv_drift_psi", "found"] > 0.25


async def test_records_that_another_release_has_answered_are_left_out(live: Loaded) -> None:
    older = replace(live, version="000000000000")
    await offered(Drift("ner", 1.0, now, 1), processed(AT_LEAST, LONG, older), live)
    assert [s for f in metrics.DRIFT_RECORDS.collect() for s in f.samples] == []


async def test_the_window_begins_with_another_release_and_ends_without_a_reference(live: Loaded) -> None:
    measured = Drift("ner", 1.0, now, 1)
    await offered(measured, processed(AT_LEAST, LONG, live), live)
    assert series() != {}
    newer = replace(live, version="ba9876543210")
    await offered(measured, processed(5, SHORT, newer), newer)
    assert series() == {}
    assert metrics.DRIFT_RECORDS.labels("ner")._value.get() == 5
    old = replace(live, version="000000000000", reference=None)
    await offered(measured, processed(AT_LEAST, LONG, old), old)
    assert [s for f in metrics.DRIFT_RECORDS.collect() for s in f.samples] == []


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0, 0), (0.1, 60, 140), (1.0, 1000, 1000)])
async def test_only_a_share_of_records_is_measured(share: float, least: int, most: int, live: Loaded) -> None:
    asked: list[int] = []

    async def run(work: Callable[[], Any]) -> Any:
        found = work()
        asked.append(len(found))
        return found

    await offered(Drift("ner", share, run, 1), processed(1000, SHORT, live), live)
    assert least <= sum(asked) <= most


async def test_records_are_measured_together_once_there_are_enough(live: Loaded) -> None:
    measured = Drift("ner", 1.0, now, 16)
    await offered(measured, processed(15, SHORT, live), live)
    assert [s for f in metrics.DRIFT_RECORDS.collect() for s in f.samples] == []
    await offered(measured, processed(2, LONG, live), live)
    assert metrics.DRIFT_RECORDS.labels("ner")._value.get() == 17


async def test_while_a_measurement_runs_no_other_one_waits(live: Loaded) -> None:
    release, asked = asyncio.Event(), []

    async def run(work: Callable[[], Any]) -> Any:
        asked.append(1)
        await release.wait()
        return work()

    measured = Drift("ner", 1.0, run, 1)
    for _ in range(5):
        measured.offer(processed(3, SHORT, live), live)
        await asyncio.sleep(0)
    assert asked == [1]
    release.set()
    await offered(measured, [], live)
    assert metrics.DRIFT_RECORDS.labels("ner")._value.get() == 3


async def test_a_measurement_that_fails_is_logged_and_the_next_one_is_made(
    live: Loaded, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(work: Callable[[], Any]) -> Any:
        raise ValueError(SHORT)

    measured = Drift("ner", 1.0, fails, 1)
    await offered(measured, processed(3, SHORT, live), live)
    assert "ner: drift is not measured: ValueError" in caplog.text
    assert SHORT not in caplog.text
    measured._run = now
    await offered(measured, processed(3, SHORT, live), live)
    assert metrics.DRIFT_RECORDS.labels("ner")._value.get() == 3


def test_what_leaves_the_window_counts_no_more(live: Loaded, small: Encoder) -> None:
    reference = live.reference
    assert isinstance(reference, Reference)
    window = Window(reference)
    (long,), (short,) = text_features(small, [LONG]), text_features(small, [SHORT])
    for _ in range(WINDOW):
        window.add(long, [])
    drifted = window.indexes()["text_length"]
    for _ in range(WINDOW):
        window.add(short, [0.9])
    assert len(window) == WINDOW
    assert window.indexes()["text_length"] < 0.01 < drifted
    distance = window.distance()
    assert distance is not None
    assert distance < 1e-6


def test_every_stage_has_scores_of_what_it_finds() -> None:
    output: Any = type(
        "Output", (), {name: (RASH, RASH) for name in ("mentions", "relations", "events", "expansions")}
    )
    output.summary, output.undecided = RASH, ()
    counts = {stage.name: len(found_scores(stage.name, output)) for stage in STAGES}
    assert counts == {"ner": 2, "relation": 2, "acronym": 2, "normalization": 2, "summarization": 1}
    with pytest.raises(ValueError, match="no stage"):
        found_scores("idiom", output)


@pytest.mark.usefixtures("tiny_bundled")
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_stage_finds_what_its_reference_counts(stage: Any, tiny: dict[str, Release]) -> None:
    """The reference is made by training, without the records of the stages."""
    model: Any = load(tiny[stage.name]).model
    classes = "my statins and antibiotics"  # that no release finds, but a table
    texts = [Report(id=str(i), text=text) for i, text in enumerate([*TEXTS * 20, classes])]
    tagger: Any = load(tiny["ner"]).model
    reports: Any = ner.predict(tagger, texts) if stage.name in {"normalization", "relation"} else texts
    expected = scores(stage.name, model, [r.text for r in reports])
    found = [found_scores(stage.name, output) for output in stage.predict(model, reports)]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    assert any(found) or stage.name == "relation", "the tiny tagger finds no pair"


@pytest.mark.usefixtures("tiny_bundled")
def test_undecided_acronyms_are_found_as_its_reference_counts_them(
    tiny: dict[str, Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = load(tiny["acronym"]).model
    monkeypatch.setattr("models.acronym.model.MOST_ASKED", 0)
    texts = [Report(id=str(i), text=text) for i, text in enumerate(TEXTS)]
    outputs = expand(model, texts)
    assert any(output.undecided for output in outputs)
    expected = [sorted(found) for found in scores("acronym", model, [t.text for t in texts])]
    assert [sorted(found_scores("acronym", output)) for output in outputs] == [
        pytest.approx(found, abs=1e-4) for found in expected
    ]


async def test_deletions_are_not_sampled(live: Loaded) -> None:
    measured = Drift("ner", 1.0, now, 1)
    records = processed(3, SHORT, live)
    deletions = [replace(p, report=None, output=None) for p in records]
    await offered(measured, [*deletions, *records], live)
    await offered(measured, deletions, live)


def test_the_choice_is_the_same_on_every_machine_and_near_the_share() -> None:
    ids = [f"post-{i}" for i in range(10_000)]
    assert [is_chosen(i, 0.3) for i in ids[:8]] == [False, False, False, True, False, False, False, True]
    small, large = ({i for i in ids if is_chosen(i, share)} for share in (0.1, 0.5))
    assert 700 < len(small) < 1300 and small < large
    assert all(is_chosen(i, 1.0) for i in ids)
