from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.types import Candidate, Expansion, LongForm, Mention, Neighbour, Relation, ShortQuestion, Span
from streams.codec import BadRecord, adapter, decode, encode, schema
from streams.provenance import without_text
from streams.records import (
    MAX_TEXT,
    Announcement,
    CodedEvent,
    CodedReport,
    Cursor,
    ExpandedReport,
    Lease,
    Limits,
    Masked,
    Origin,
    Report,
    Review,
    ReviewedEvent,
    Signal,
    Summary,
    TaggedReport,
    WatchState,
    WindowStatistics,
)
from streams.reviews.chain import follows, linked
from streams.topics import TOPICS
from tests.wire import wire_bytes

WHEN = datetime(2026, 3, 4, 9, 15, tzinfo=UTC)
TEXT = "Zoloft gave me insomnia 😴"
CORE: dict[str, Any] = {
    "id": "post-1",
    "text": TEXT,
    "created_at": WHEN,
    "drug": "sertraline",
    "source": "posts",
    "received_at": WHEN,
    "releases": {"ner": "0123456789ab"},
    "record_id": "posts/post-1/ner@0123456789ab",
}
EXPANSION = Expansion(0, 6, "Zoloft", "sertraline", 1.0, "text")
MENTIONS = (Mention(0, 6, "Zoloft", "DRUG", 1.0, "sertraline"), Mention(15, 23, "insomnia", "ADE", 0.9876))
CANDIDATE = Candidate("Can't sleep", "Insomnia", "Psychiatric disorders", 0.91)
EVENT = CodedEvent(
    mention=1,
    drugs=("sertraline",),
    drug_evidence="relation",
    llt="Can't sleep",
    pt="Insomnia",
    soc="Psychiatric disorders",
    score=0.91,
    nil=False,
    candidates=(CANDIDATE,),
)
# coded-v2, with the fields of the assertion, which coded-v1 does not have.
WITH_ASSERTION = replace(EVENT, negated=True, hypothetical=True, other_experiencer=True)
# coded-v3, with the phrase and the weight of the context, which coded-v2 does not have.
WITH_CONTEXT = replace(
    WITH_ASSERTION, context_weight=0.4, candidates=(replace(CANDIDATE, phrase="cannot shut my eyes"),)
)
RELATION = Relation(0, 1, 0.8, (Neighbour("ade-17", 0.12),))
# The fields of the producer that are passed through, which report-v1 and the records of its time do not have.
META: dict[str, Any] = {"meta": {"likes": 3}, "meta_dropped": 1, "created_at_assumed_utc": True}
# The place of the source record and the generations, which the records before them do not have.
ORDER: dict[str, Any] = {"origin": Origin("posts", 3, 17), "generations": {"ner": 5}}
# What a source states and what its intake adds, which the records before them do not have.
SOURCE: dict[str, Any] = {
    "language": "es",
    "permalink": "https://example.org/post/1",
    "author": "0123456789abcdef" * 4,
    "country": "NL",
    "duplicate_of": "post-0",
    "masked": (Masked("user", 0, 5), Masked("url", 6, 11)),
}
FIRST: dict[str, Report] = {
    "report-v1": Report(**CORE),
    "expanded-v1": ExpandedReport(**CORE, expansions=(EXPANSION,)),
    "tagged-v1": TaggedReport(**CORE, expansions=(EXPANSION,), mentions=MENTIONS, relations=(RELATION,)),
    "coded-v3": CodedReport(**CORE, mentions=MENTIONS, relations=(RELATION,), events=(WITH_CONTEXT,)),
    "summary-v1": Summary(**CORE, summary=ShortQuestion(TEXT, "extractive", 0.75, 0, len(TEXT))),
}


def next_version(records: dict[str, Report], **added: Any) -> dict[str, Report]:
    """The records under names with the version raised by 1, with the fields that it added."""
    changed = {}
    for name, record in records.items():
        kind, version = name.split("-v")
        changed[f"{kind}-v{int(version) + 1}"] = replace(record, **added)
    return changed


SECOND = next_version(FIRST, **META)
THIRD = next_version(SECOND, **ORDER)
THIRD |= {n: replace(THIRD[n], language="es") for n in ("tagged-v3", "coded-v5")}
OLD = FIRST | SECOND | THIRD
GOLDEN = next_version(THIRD, **SOURCE)
# The status of an effect and whether a term is serious, which records before them do not have.
JUDGED = (MENTIONS[0], replace(MENTIONS[1], status="own", status_score=0.97))
LATEST: dict[str, dict[str, Any]] = {
    "tagged-v4": {},
    "coded-v6": {"events": (replace(WITH_CONTEXT, serious=True),)},
}
for name, added in LATEST.items():
    GOLDEN[name] = replace(GOLDEN[name], read=False, mentions=JUDGED, **added)  # type: ignore[call-arg]
# Acronyms that the stage did not decide on, which records before them do not have.
UNDECIDED = replace(
    EXPANSION, source="dictionary", candidates=(LongForm("sertraline", 0.5), LongForm("z", 0.4))
)
OLD |= {name: GOLDEN.pop(name) for name in ("expanded-v4", *LATEST)}
GOLDEN |= next_version({name: OLD[name] for name in ("expanded-v4", *LATEST)}, undecided=(UNDECIDED,))
# What a question is about, where it was inserted, which summary-v4 does not have.
OLD["summary-v4"] = GOLDEN.pop("summary-v4")
ABOUT = ShortQuestion("Zoloft: is it safe?", "extractive", 0.75, 7, len(TEXT), "Zoloft", 0, 6)
GOLDEN["summary-v5"] = replace(OLD["summary-v4"], summary=ABOUT)  # type: ignore[call-arg]
# Several drugs that the source states, where report-v4 has one or none.
OLD["report-v4"] = GOLDEN.pop("report-v4")
GOLDEN["report-v5"] = replace(OLD["report-v4"], drug=("sertraline", "Wellbutrin XL"))
# A suspect that the words of a post name, which coded-v7 does not have.
OLD["coded-v7"] = GOLDEN.pop("coded-v7")
GOLDEN["coded-v8"] = replace(
    OLD["coded-v7"],
    events=(replace(WITH_CONTEXT, serious=True, drug_evidence="text"),),  # type: ignore[call-arg]
)
# What the drug was taken for, which records before them do not have.
OLD |= GOLDEN
GOLDEN = next_version(GOLDEN, indication="low mood")
# A drug that is a class, which records before them do not have.
GROUP = replace(MENTIONS[0], generic="SSRI", kind="class", members=("sertraline", "citalopram"))
for name in ("tagged-v6", "coded-v9"):
    OLD[name] = GOLDEN.pop(name)
    GOLDEN |= next_version({name: OLD[name]}, mentions=(GROUP, *JUDGED[1:]))
# Where a text is read in another form, and how sure its language is, which records before them do not have.
OLD |= GOLDEN
GOLDEN = next_version(GOLDEN, folded=(Span(0, 6),))
for name in ("tagged-v8", "coded-v11"):
    GOLDEN[name] = replace(GOLDEN[name], language_score=0.004)  # type: ignore[call-arg]
# Of similar texts the first, which records before them do not have.
OLD |= GOLDEN
GOLDEN = next_version(GOLDEN, duplicate_of=None, similar_to="post-0", reworded=True)
AGGREGATE = without_text(replace(OLD["coded-v7"], aggregate_only=True, indication="low mood"))


@pytest.mark.parametrize("name", OLD)
def test_records_of_an_earlier_version_are_still_read(name: str) -> None:
    assert decode(type(OLD[name]), wire_bytes(name)) == OLD[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_are_written_and_read_back(name: str) -> None:
    golden = wire_bytes(name)
    assert encode(GOLDEN[name]) == golden
    assert decode(type(GOLDEN[name]), golden) == GOLDEN[name]


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
    golden, latest = wire_bytes("signal-v4"), replace(earlier, windows={"all": counted})
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


@pytest.mark.parametrize(("version", "event"), [("v1", EVENT), ("v2", WITH_ASSERTION)])
def test_an_event_without_the_assertion_or_the_phrase_is_still_read(version: str, event: CodedEvent) -> None:
    old = decode(CodedReport, wire_bytes(f"coded-{version}"))
    assert old == replace(OLD["coded-v3"], events=(event,))  # type: ignore[call-arg]


def test_an_earlier_record_with_a_language_was_not_read_and_one_without_was() -> None:
    assert [THIRD[n].was_read for n in ("tagged-v3", "coded-v5")] == [False, False]  # type: ignore[attr-defined]
    assert [SECOND[n].was_read for n in ("tagged-v2", "coded-v4")] == [True, True]  # type: ignore[attr-defined]
    assert replace(THIRD["tagged-v3"], read=True).was_read  # type: ignore[call-arg, attr-defined]


def test_a_final_record_without_its_text_is_written_and_read_back() -> None:
    assert decode(CodedReport, wire_bytes("coded-v7-aggregate")) == AGGREGATE
    golden = encode(AGGREGATE)
    assert decode(CodedReport, golden) == AGGREGATE
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
        ("folded", "%s"), ("events", "%s"), ("events", '[{"candidates":%s}]'), ("events", '[{"drugs":%s}]'),
        ("relations", '[{"neighbours":%s}]'), ("expansions", '[{"candidates":%s}]'), ("drug", "%s"),
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
    tagged = orjson.loads(encode(GOLDEN["tagged-v9"]))
    with pytest.raises(BadRecord, match="ends after the text"):
        decode(TaggedReport, orjson.dumps(tagged | {"text": "short"}))
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
