"""Records that hypothesis draws, in every stage: each has one outcome, in order, and none stops the stage."""

from __future__ import annotations

import asyncio
import json
from typing import Any, get_args

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.types import ADE, DRUG, Expansion, Mention
from streams import stage as stages
from streams.agents.pipeline import STAGES
from streams.codec import encode
from streams.dead_letters.headers import Reason
from streams.records import ExpandedReport, Inbound, Origin, TaggedReport
from streams.stage import Stage, run_stage
from streams.topics import EXPANDED, MENTIONS, TAGGED, Topic
from tests.fakes import FakePorts, batches_of
from tests.stubs import POISON, stub

TEXT = "Zoloft made me so dizzy that I fell."
NOW, MAX_OUTPUT_BYTES, DEEP = 1_760_000_000.0, 10_000, 3000
SHARED: dict[str, Any] = {"id": "r1", "text": TEXT, "source": "posts", "origin": Origin("posts", 0, 1)}
MENTION = (Mention(0, 6, "Zoloft", DRUG, 0.9), Mention(18, 23, "dizzy", ADE, 0.8))
SOUND = {
    EXPANDED.name: encode(
        ExpandedReport(**SHARED, expansions=(Expansion(0, 6, "Zoloft", "x", 0.9, "text"),))
    ),
    MENTIONS.name: encode(TaggedReport(**SHARED, mentions=MENTION, read=True)),
    TAGGED.name: encode(TaggedReport(**SHARED, mentions=MENTION, read=True)),
}
PRODUCED = orjson.dumps(
    {"id": "r1", "text": TEXT, "created_at": "2026-03-04T09:15:00Z", "drug": "sertraline"}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = [
    "id", "text", "created_at", "drug", "indication", "author", "language", "masked", "expansions", "meta",
    "origin", "source", "mentions", "relations", "releases", "x",
]  # fmt: skip
#: Values that hypothesis hardly finds.
ODD = (
    1e400, 10**400, -1, "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:00", "2026-02-30", "\n",
    "i" * 300, f"a text that is {POISON}", "\x00", "a\u202e\u200d\U0001f9ec", "word " * 3000,
    {"x" * 9: "y" * 40_000},
)  # fmt: skip
SPECIAL = (
    b"[" * DEEP + b"]" * DEEP, b'{"id":"a","text":"b","x":' + b"[" * DEEP + b"]" * DEEP + b"}", b"",
    b'{"id":"\\ud800","text":"lone \\udfff surrogate"}', b'{"id":"a","text":"\\ud83d alone"}',
    b'{"id":"a","id":"b","text":"twice"}', b'{"id":"a","text":NaN}', b"\xef\xbb\xbf{}",
)  # fmt: skip


@st.composite
def values(draw: st.DrawFn, sound: bytes) -> bytes:
    """A sound record with other fields, with bytes cut out or put in, or anything else."""
    changed = {
        **orjson.loads(sound),
        **draw(st.dictionaries(st.sampled_from(NAMES), JSON | st.sampled_from(ODD))),
    }
    # As Python writes it: with NaN, and integers of any size.
    value = draw(
        st.sampled_from([json.dumps(changed).encode(), *SPECIAL]) | st.binary() | JSON.map(json_bytes)
    )
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(value))] * 2)))
    return draw(st.sampled_from([value, value[:start] + draw(st.binary(max_size=9)) + value[end:]]))


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


@st.composite
def batches(draw: st.DrawFn, topic: str) -> list[Inbound]:
    sound = SOUND.get(topic, PRODUCED)
    keys = st.sampled_from([b"k", b"k", b"", None, b"\xff\xfe", b"k" * 2000])
    times = st.sampled_from([NOW, NOW, NOW, 0.0, -1.0, -7e10, 7e15, float("inf"), float("nan")])
    names = st.sampled_from(["origin", "traceparent", "pv-attempts", "pv-reason", "", "\\xff"])
    headers = st.lists(st.tuples(names, st.none() | st.binary()), max_size=3).map(tuple)
    made = []
    for offset in range(draw(st.integers(1, 6))):
        value = draw(st.none() | values(sound))
        made.append(Inbound(topic, 0, offset, draw(keys), value, draw(times), draw(headers)))
    return [*made, Inbound(topic, 0, len(made), b"k", sound, NOW, ())]


def check(stage: Stage[Any, Any], source: Topic[Any], batch: list[Inbound]) -> None:
    """Each record is sent on, becomes a dead letter with its reason and place, or has nothing to be sent."""
    ports = FakePorts(stub(stage.name))
    ports.max_output_bytes = MAX_OUTPUT_BYTES
    asyncio.run(run_stage(stage, batches_of(batch), ports))
    assert ports.acked == [record.offset for record in batch]
    kept = [record for record in batch if record.key is not None or record.value is not None]
    for record, (topic, _, value, headers) in zip(kept, ports.sent, strict=True):
        if topic == source.dead_letters.name:
            letter = dict(headers)
            assert (letter["pv-reason"] or b"").decode() in get_args(Reason) and letter["pv-detail"]
            assert letter["pv-offset"] == str(record.offset).encode()
        else:
            assert topic == stage.sink_of(source.name).name
            assert (value is None) == (record.value is None)
    assert ports.sent[-1][0] == stage.sink_of(source.name).name, (
        "a sound record is an output, whatever stands beside it"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "source"),
    [pytest.param(s, source, id=f"{s.name} of {source.name}") for s in STAGES for source in s.sources],
)
def test_each_record_that_is_drawn_has_one_outcome(stage: Stage[Any, Any], source: Topic[Any]) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(batches(source.name))
    def draw(batch: list[Inbound]) -> None:
        check(stage, source, batch)

    draw()


def test_a_stage_that_sends_nothing_for_a_deletion_or_dies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> Any:
        return asyncio.sleep(0)

    stage = STAGES[0]
    batch = [Inbound("posts", 0, n, b"k", value, NOW, ()) for n, value in enumerate((None, PRODUCED))]
    check(stage, stage.source, batch)
    with monkeypatch.context() as patched:
        patched.setattr(stages._Run, "_pass_tombstone", nothing)
        with pytest.raises(AssertionError):
            check(stage, stage.source, batch)

    def broken(*_: Any) -> Any:
        raise UnicodeError("not isolated")

    monkeypatch.setattr(stages, "tombstone_headers", broken)
    with pytest.raises(UnicodeError):
        check(stage, stage.source, batch)
