from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from streams.codec import BadRecord, adapter, decode, decode_any, encode, schema
from streams.provenance import without_text
from streams.records import (
    MAX_TEXT,
    Announcement,
    Assignment,
    CodedReport,
    Cursor,
    ExpandedReport,
    History,
    Lease,
    Limits,
    Report,
    Review,
    ReviewedEvent,
    Signal,
    SignalDecision,
    SignalStatus,
    Summary,
    TaggedReport,
    WatchState,
    WindowStatistics,
)
from streams.reviews.chain import follows, linked
from streams.topics import REVIEWS, TOPICS
from tests.wire import WIRE, wire_bytes

WHEN = datetime(2026, 3, 4, 9, 15, tzinfo=UTC)
TEXT = "Zoloft gave me insomnia 😴"
KINDS: dict[str, type[Report]] = {
    "report": Report, "expanded": ExpandedReport, "tagged": TaggedReport, "coded": CodedReport,
    "summary": Summary,
}  # fmt: skip
#: Every record that a version has written: `coded-v3`.
WRITTEN = [f"{kind}-{path.stem}" for kind in KINDS for path in sorted((WIRE / kind).iterdir())]
LATEST = {f"{kind}-v{len(list((WIRE / kind).glob('v*[0-9].json')))}" for kind in KINDS}


def golden_record(name: str) -> Any:
    return decode(KINDS[name.split("-", maxsplit=1)[0]], wire_bytes(name))


def is_kept(old: Any, new: Any) -> bool:
    """Whether everything that stands in a JSON value stands in another, which may have more fields."""
    if isinstance(old, dict):
        return all(name in new and is_kept(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(map(is_kept, old, new))
    return bool(old == new)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_record_of_any_version_is_read_whole_and_the_latest_is_written_to_the_byte(name: str) -> None:
    golden, record = wire_bytes(name), golden_record(name)
    again = encode(record)
    assert is_kept(orjson.loads(golden), orjson.loads(again))
    assert decode(type(record), again) == record
    if name in LATEST:
        assert again == golden


SIGNAL = Signal(
    drug="sertraline", term="Insomnia", level="pt", computed_at=WHEN, caveat="No evidence of a cause.",
    windows={
        "all": WindowStatistics(
            n=28, expected=1.3469, prr=Limits(53.4055, 29.332, 97.2365), chi_square=544.7096,
            chi_square_yates=524.4647, ror=Limits(54.9632, 29.9808, 100.7627), ic=Limits(3.9, 3.3, 4.4),
            ebgm=Limits(18.1, 12.9, 24.2), criteria=("evans", "ic025"),
        )
    },
    watch=WatchState(
        weeks=("2026-02-23",), n=(3,), expected=(0.5,), ratio=2.8753, critical=3.4, signalled=False
    ),
)  # fmt: skip


def test_golden_bytes_of_a_signal_are_written_and_read_back() -> None:
    assert decode(Signal, wire_bytes("signal-v1")) == SIGNAL
    earlier = replace(SIGNAL, known_use=True)
    assert decode(Signal, wire_bytes("signal-v2")) == earlier
    stated = replace(earlier.windows["all"], ebgm_prior="published")
    assert decode(Signal, wire_bytes("signal-v3")) == replace(earlier, windows={"all": stated})
    counted = replace(stated, all_reports=31, unique_reports=28)
    assert decode(Signal, wire_bytes("signal-v4")) == replace(earlier, windows={"all": counted})
    history = History(weeks=("2026-02-23",), n=(28,), ic025=(3.3,), eb05=(12.9,))
    decided = replace(earlier, state="closed", history=history)
    golden, latest = wire_bytes("signal-v5"), replace(decided, windows={"all": counted})
    assert encode(latest) == golden
    assert decode(Signal, golden) == latest


BEFORE = ReviewedEvent(
    llt="Sleepless", pt="Insomnia", soc="Psychiatric disorders", negated=False, hypothetical=False,
    other_experiencer=False, serious=True,
)  # fmt: skip
REVIEW = Review(
    sequence=0, report_id="post-1", start=15, end=23, fingerprint="0123abcd", reviewer="ann",
    decided_at=WHEN, action="correct", before=BEFORE, reason="reads so",
    after=replace(BEFORE, llt=None, pt=None, soc=None, serious=False, negated=True, review="correct"),
)  # fmt: skip
ON_SIGNAL = SignalDecision(
    sequence=0, drug="sertraline", term="Insomnia", reviewer="ann", decided_at=WHEN,
    before=SignalStatus(), after=SignalStatus(state="closed", owner="bob", due=date(2026, 4, 1)),
    reason="listed", comment="see the label", reports=28, ic025=3.3, eb05=12.9,
)  # fmt: skip
ASSIGNED = Assignment(sequence=0, report_id="post-1", reviewer="ann", decided_at=WHEN, before="", owner="bob")
SECOND_REVIEW = replace(
    REVIEW, reading=2, after=replace(BEFORE, start=0, end=6, drugs=("sertraline",), review="correct")
)


def test_golden_bytes_of_decisions_and_their_hashes_stay() -> None:
    first = decode(Review, wire_bytes("review-v1"))
    assert first == linked(REVIEW, None) and follows(first, None)
    golden = wire_bytes("review-v2")
    assert encode(linked(SECOND_REVIEW, first)) == golden
    second = decode(Review, golden)
    assert second == linked(SECOND_REVIEW, first) and follows(second, first)
    for changed in (replace(second, reading=1), replace(second, after=replace(second.after, drugs=None))):
        assert not follows(changed, first)
    golden, on_signal = wire_bytes("signal_decision-v1"), linked(ON_SIGNAL, second)
    assert encode(on_signal) == golden and decode_any(REVIEWS.kinds, golden) == on_signal
    assert follows(on_signal, second)
    assert not follows(replace(on_signal, reason="another"), second)
    golden, assigned = wire_bytes("assignment-v1"), linked(ASSIGNED, on_signal)
    assert encode(assigned) == golden and decode_any(REVIEWS.kinds, golden) == assigned
    assert not follows(replace(assigned, owner="cy"), on_signal)


def test_an_earlier_record_with_a_language_was_not_read_and_one_without_was() -> None:
    names = ("tagged-v2", "tagged-v3", "coded-v4", "coded-v5")
    assert [golden_record(name).was_read for name in names] == [True, False, True, False]
    assert replace(golden_record("tagged-v3"), read=True).was_read


def test_a_final_record_without_its_text_is_written_and_read_back() -> None:
    stated = golden_record("coded-v14").case_fields
    whole = replace(golden_record("coded-v7"), aggregate_only=True, indication="low mood", case_fields=stated)
    aggregate = without_text(whole)
    assert golden_record("coded-v7-aggregate") == aggregate
    golden = encode(aggregate)
    assert decode(CodedReport, golden) == aggregate
    assert TEXT.encode() not in golden
    with pytest.raises(BadRecord, match="text"):
        decode(TaggedReport, golden)


def test_a_report_needs_only_id_and_text_and_unknown_fields_are_ignored() -> None:
    assert decode(Report, b'{"id": "a", "text": "b"}') == Report(id="a", text="b")
    assert decode(Report, b'{"id": "a", "text": "b", "likes": 3}') == Report(id="a", text="b")


@pytest.mark.parametrize(
    "value",
    [
        None, b"", b"not json", b"\xff\xfe", b"[]", b"null", b'"text"', b'{"text": "no id"}',
        b'{"id": "no text"}', b'{"id": 7, "text": "number for an id"}', b'{"id": "a", "text": 7}',
        b'{"id": "a", "text": null}', b'{"id": "", "text": "b"}', b'{"id": " ", "text": "b"}',
        b'{"id": "a\\u0000", "text": "b"}', b'{"id": "a", "text": ""}',
        b'{"id": "a", "text": " \\n\\t"}', b'{"id": "a", "text": "lone \\ud83d surrogate"}',
        b'{"id": "a", "text": "b", "created_at": "yesterday"}',
        b'{"id": "a", "text": "b", "created_at": true}', b'{"id": "a", "text": "b"',
        b'{"id": "a", "text": "raw \x00 control"}',
        orjson.dumps({"id": "a", "text": "x" * (MAX_TEXT + 1)}),
        orjson.dumps({"id": "x" * 257, "text": "b"}),
    ],
)  # fmt: skip
def test_bytes_that_are_not_a_report_are_refused_in_one_short_line(value: bytes | None) -> None:
    with pytest.raises(BadRecord) as caught:
        decode(Report, value)
    assert "\n" not in str(caught.value)
    assert 0 < len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("masked", "%s"), ("mentions", "%s"), ("relations", "%s"), ("expansions", "%s"), ("undecided", "%s"),
        ("case_fields", "%s"), ("folded", "%s"), ("events", "%s"), ("events", '[{"candidates":%s}]'),
        ("events", '[{"drugs":%s}]'), ("relations", '[{"neighbours":%s}]'),
        ("expansions", '[{"candidates":%s}]'), ("drug", "%s"),
    ],
)  # fmt: skip
def test_of_a_long_list_only_the_first_wrong_item_is_an_error(name: str, inside: str) -> None:
    """With each of them, a megabyte took seconds and a gigabyte of memory."""
    items = inside % f"[{','.join(['{}'] * 1000)}]"
    value = f'{{"id":"a","text":"b","{name}":{items}}}'
    with pytest.raises(ValidationError) as caught:
        adapter(CodedReport).validate_json(value, strict=True)
    assert caught.value.error_count() < 20
    of_decision = orjson.dumps({"before": {"drugs": [{}] * 1000}, "after": {"drugs": [{}] * 1000}})
    with pytest.raises(ValidationError) as caught:
        adapter(Review).validate_json(of_decision, strict=True)
    assert caught.value.error_count() < 30


@pytest.mark.parametrize("text", ["😀😀", "a\u0000b", "\u202eright to left", "e\u0301", "x" * MAX_TEXT])
def test_any_valid_unicode_text_is_accepted(text: str) -> None:
    assert decode(Report, orjson.dumps({"id": "a", "text": text})).text == text


def test_a_mention_past_the_end_of_the_text_and_a_relation_to_none_are_refused() -> None:
    tagged = orjson.loads(wire_bytes("tagged-v9"))
    with pytest.raises(BadRecord, match="ends after the text"):
        decode(TaggedReport, orjson.dumps(tagged | {"text": "short"}))
    stated = orjson.loads(wire_bytes("tagged-v11")) | {"text": "short", "mentions": [], "relations": []}
    with pytest.raises(BadRecord, match="field of a case ends after"):
        decode(TaggedReport, orjson.dumps(stated))
    tagged["relations"][0]["tail"] = 2
    with pytest.raises(BadRecord, match="does not exist"):
        decode(TaggedReport, orjson.dumps(tagged))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_report_or_a_bad_record(data: bytes) -> None:
    try:
        record = decode(Report, data)
    except BadRecord:
        return
    assert record.text.strip()


def test_every_topic_with_records_has_a_schema_with_its_required_fields() -> None:
    others: dict[object, set[str]] = {
        Announcement: {"task", "version"},
        Cursor: {"source", "position"},
        Signal: {"drug", "term"},
        Review: {"report_id", "action", "before", "after"},
        Lease: {"report_id", "holder", "seconds"},
    }
    for topic in TOPICS:
        if topic.record is not None:
            required = schema(topic.record)["required"]
            assert others.get(topic.record, {"id", "text"}) <= set(required), topic.name
    assert "summary" in schema(Summary)["required"]
