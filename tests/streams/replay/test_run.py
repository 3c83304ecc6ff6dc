"""Replays of records: the same outputs as the live stages, and the dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.loading import Loaded
from models.types import Candidate, Coding, Mention, Query
from streams.agents.pipeline import stage_named, stages_from
from streams.broker.ranges import parse_bound
from streams.codec import encode
from streams.records import Inbound
from streams.replay.run import DeadLetter, ReplayResult, run_chain
from streams.stage import StageBroken, run_stage
from streams.topics import EVENTS, MENTIONS, POSTS, QUESTIONS, SENTENCES, TopicsError
from tests.fakes import FakePorts, batches_of, inbound
from tests.fakes import loaded as fake_loaded


class WordTagger:
    """Tags each `itch` as an adverse event; fails on the word `poison`, and on every text if `failing`."""

    task = "ner"

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing
        self.sizes: list[int] = []

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        self.sizes.append(len(batch))
        if self.failing or any("poison" in text for text in batch):
            raise ValueError("cannot")
        return [
            [Mention(i, i + 4, "itch", "ADE", 0.9) for i in range(len(text)) if text[i : i + 4] == "itch"]
            for text in batch
        ]


class OneTerm:
    """Codes everything to one term."""

    task = "normalization"

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        return [Coding((Candidate("Itching", "Pruritus", "Skin", 0.8),), False) for _ in batch]


def models(tagger: Any = None) -> dict[str, Loaded]:
    coder = replace(fake_loaded(OneTerm(), "ba9876543210"), task="normalization", canary=([], [], 0.0))
    return {"ner": fake_loaded(tagger or WordTagger()), "normalization": coder}


def posts(*texts: str) -> list[Inbound]:
    return [inbound(i, orjson.dumps({"id": f"r{i}", "text": text})) for i, text in enumerate(texts)]


async def replay(
    records: Sequence[Inbound], chain: Mapping[str, Loaded] | None = None, batch: int = 2
) -> ReplayResult:
    steps: list[tuple[int, int]] = []
    result = await run_chain(
        records, POSTS, chain or models(), batch, lambda n, total: steps.append((n, total))
    )
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]
    return result


async def test_a_record_goes_through_every_stage_after_its_topic() -> None:
    result = await replay(posts("an itch", "fine", "itch itch"))
    assert [r.id for r in result.outputs] == ["r0", "r1", "r2"]
    assert [len(r.events) for r in result.outputs] == [1, 0, 2]
    assert result.outputs[0].events[0].pt == "Pruritus"
    assert result.outputs[0].releases == {"ner": "0123456789ab", "normalization": "ba9876543210"}
    assert result.outputs[0].source == "posts"
    assert result.outputs[0].received_at == datetime.fromtimestamp(1_760_000_000, UTC), "the source's time"
    assert result.dead == []


async def test_a_replay_gives_the_same_bytes_as_the_live_stages() -> None:
    records = posts("an itch", "fine", "itch itch")
    ner = FakePorts(models()["ner"])
    await run_stage(stage_named("ner"), batches_of(records[:2], records[2:]), ner)
    mentions = [
        Inbound("mentions", 0, i, key, value, 1_760_000_000.0)
        for i, (key, value, _) in enumerate(ner.to("mentions"))
    ]
    coder = FakePorts(models()["normalization"])
    await run_stage(stage_named("normalization"), batches_of(mentions), coder)
    live = [value for _, value, _ in coder.to("events")]
    assert [encode(r) for r in (await replay(records)).outputs] == live


@settings(deadline=None)
@given(
    texts=st.lists(st.sampled_from(["itch", "fine", "poison", "an itch"]), max_size=9),
    batch=st.integers(1, 9),
)
async def test_outputs_do_not_depend_on_the_batch_size(texts: list[str], batch: int) -> None:
    large, small = await replay(posts(*texts), batch=64), await replay(posts(*texts), batch=batch)
    assert [encode(r) for r in large.outputs] == [encode(r) for r in small.outputs]
    assert large.dead == small.dead
    assert len(large.outputs) + len(large.dead) == len(texts)


async def test_batches_are_cut_by_position() -> None:
    tagger = WordTagger()
    await replay(posts(*["fine"] * 7), models(tagger), batch=3)
    assert tagger.sizes == [3, 3, 1]


async def test_dead_letters_are_reported_without_their_text() -> None:
    records = [*posts("itch", "some poison"), inbound(2, b"\xff")]
    result = await replay(records)
    assert [r.id for r in result.outputs] == ["r0"]
    assert result.dead[0] == DeadLetter("key-1", "posts", 0, 1, "ner", "poison", result.dead[0].detail)
    reasons = [(d.offset, d.reason) for d in result.dead]
    assert reasons == [(1, "poison"), (2, "bad_record")]
    assert "some poison" not in repr(result.dead)


async def test_an_output_larger_than_may_be_sent_becomes_a_dead_letter() -> None:
    result = await run_chain(
        posts("itch", "x" * 2000), POSTS, models(), 2, lambda n, total: None, max_output_bytes=1200
    )
    assert [(d.key, d.reason) for d in result.dead] == [("key-1", "output_too_large")]
    assert [r.id for r in result.outputs] == ["r0"]
    large = [inbound(0, orjson.dumps({"id": "r0", "text": "x" * 2000, "aggregate_only": True}))]
    last = [replace(r, topic="mentions") for r in large]
    result = await run_chain(last, MENTIONS, models(), 2, lambda n, total: None, max_output_bytes=1500)
    assert result.dead == [] and len(result.compared[0].text) == 2000


async def test_a_text_that_must_not_be_kept_is_in_the_outputs_for_comparison_alone() -> None:
    kept = inbound(2, orjson.dumps({"id": "kept", "text": "an itch"}))
    secret = inbound(0, orjson.dumps({"id": "secret", "text": "my itch", "aggregate_only": True}))
    poison = inbound(1, orjson.dumps({"id": "bad", "text": "poison", "aggregate_only": True}))
    records = [secret, inbound(3, None), poison, kept]
    result = await replay(records)
    assert [(r.id, r.text) for r in result.outputs] == [("secret", ""), ("kept", "an itch")]
    assert [(r.id, r.text) for r in result.compared] == [("secret", "my itch"), ("kept", "an itch")]
    assert [r.mentions[0].text for r in result.compared] == ["itch", "itch"]
    allowed = await run_chain(records, POSTS, models(), 2, lambda n, total: None, keep_text=True)
    assert allowed.whole is None and [r.text for r in allowed.outputs] == ["my itch", "an itch"]


async def test_repeats_are_kept_and_a_tombstone_or_no_record_gives_nothing() -> None:
    result = await replay([*posts("itch"), *posts("itch")])
    first, again = result.outputs
    assert encode(first) == encode(again)
    result = await replay([*posts("itch"), inbound(1, None)])
    assert [r.id for r in result.outputs] == ["r0"]
    assert result.dead == []
    assert await replay([]) == ReplayResult([], [])


async def test_a_model_that_fails_its_canary_and_a_stage_without_a_release_end_it() -> None:
    with pytest.raises(StageBroken, match="canary"):
        await replay(posts("itch"), models(WordTagger(failing=True)))
    with pytest.raises(KeyError, match="no release for normalization"):
        await replay(posts("itch"), {"ner": fake_loaded(WordTagger())})


@pytest.mark.parametrize(
    ("topic", "results", "stages"),
    [
        (POSTS, None, ["ner", "normalization"]),
        (SENTENCES, None, ["acronym", "ner", "relation", "normalization"]),
        (MENTIONS, None, ["normalization"]),
        (QUESTIONS, None, ["summarization"]),
        (QUESTIONS, "summaries", ["summarization"]),
        (QUESTIONS, "events", ["ner", "normalization"]),
    ],
)
def test_the_stages_are_those_after_a_topic(topic: Any, results: str | None, stages: list[str]) -> None:
    assert [s.name for s in stages_from(topic.name, results)] == stages


def test_results_that_a_topic_lacks_and_a_topic_that_no_stage_reads_are_refused() -> None:
    with pytest.raises(TopicsError, match="records of posts give no summaries, but events"):
        stages_from(POSTS.name, "summaries")
    with pytest.raises(TopicsError, match="no stage reads events; there are posts"):
        stages_from(EVENTS.name)


async def test_the_events_of_questions_are_replayed_where_they_are_asked_for() -> None:
    asked = [replace(r, topic="questions") for r in posts("aspirin itch", "poison")]
    result = await run_chain(asked, QUESTIONS, models(), 2, lambda n, total: None, results="events")
    assert [(r.id, r.source, len(r.mentions)) for r in result.outputs] == [("r0", "questions", 1)]
    assert [(d.topic, d.stage) for d in result.dead] == [("questions", "ner")]


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("beginning", "beginning"),
        ("end", "end"),
        ("0", 0),
        ("12345", 12345),
        ("2026-03-02", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-03-02T06:41:12", datetime(2026, 3, 2, 6, 41, 12, tzinfo=UTC)),
        ("2026-03-02T06:41:12Z", datetime(2026, 3, 2, 6, 41, 12, tzinfo=UTC)),
        ("2026-03-02T06:41:12+02:00", datetime(2026, 3, 2, 6, 41, 12, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_a_bound_is_a_word_an_offset_or_a_time(text: str, bound: object) -> None:
    assert parse_bound(text) == bound


@pytest.mark.parametrize("text", ["", "-1", "1.5", "yesterday", "Beginning", "1969-12-31", "0001-01-01", "²"])
def test_any_other_bound_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is before") as refusal:
        parse_bound(text)
    assert "\n" not in str(refusal.value)
