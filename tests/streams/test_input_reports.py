"""Reports as producers write them: formats that are accepted, and fields that are not theirs to set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.types import Stated
from streams.codec import BadRecord
from streams.input_reports import MAX_META_BYTES, MAX_META_FIELDS, as_input, read_report
from streams.records import Masked, Report

MOMENT = datetime(2026, 3, 4, 9, 15, 30, tzinfo=UTC)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def read(**fields: Any) -> Report:
    return read_report(orjson.dumps({"id": "a", "text": "b"} | fields))


@pytest.mark.parametrize(
    ("written", "expected", "assumed"),
    [
        ("2026-03-04T10:15:30+01:00", MOMENT, False),
        ("2026-03-04T09:15:30", MOMENT, True),
        ("Wed, 04 Mar 2026 10:15:30 CET", MOMENT, False),
        (int(MOMENT.timestamp() * 1000), MOMENT, False),
        (None, None, False),
        ("", None, False),
    ],
)
def test_the_time_of_a_report_is_read(written: object, expected: datetime | None, assumed: bool) -> None:
    report = read(created_at=written)
    assert (report.created_at, report.created_at_assumed_utc, report.meta) == (expected, assumed, {})
    assert read_report(as_input(report)) == report


@pytest.mark.parametrize(
    "written",
    ["last Tuesday", "3/4/2026", True, [], {"at": 1}, 1e300, 0, "1792-06-01T00:00:00Z", "2226-03-04"],
)
def test_a_time_that_is_not_believed_stays_as_it_was_written_beside_a_report_without_one(
    written: object,
) -> None:
    report = read(created_at=written)
    assert (report.created_at, report.created_at_assumed_utc) == (None, False)
    assert report.meta == {"created_at": written}
    assert read_report(as_input(report)) == report


def test_a_time_after_that_of_the_record_is_not_believed_however_late_it_is_read() -> None:
    line = orjson.dumps({"id": "a", "text": "b", "created_at": "2026-03-04"})
    before, at = MOMENT - timedelta(days=2), MOMENT
    assert read_report(line, received=before).created_at is None
    assert read_report(line, received=at).created_at is not None


def test_a_numeric_id_is_read_and_a_fraction_or_a_truth_value_is_not() -> None:
    assert read(id=1234567890123456789).id == "1234567890123456789"
    for wrong in (1.5, True, None, ["a"]):
        with pytest.raises(BadRecord, match=r"^id"):
            read(id=wrong)


def test_a_producer_cannot_speak_for_the_pipeline() -> None:
    forged = {
        "source": "events",
        "releases": {"ner": "0123456789ab"},
        "received_at": "1999-01-01T00:00:00Z",
        "record_id": "forged",
        "meta": {"forged": 1},
        "meta_dropped": 7,
        "created_at_assumed_utc": True,
        "origin": {"topic": "posts", "partition": 0, "offset": 10**12},
        "generations": {"ner": 10**12},
    }
    assert read(**forged) == Report(id="a", text="b")


HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("written", "stated", "indication", "taken_for"),
    [
        ("Zoloft", ("Zoloft",), "gout ", "gout"),
        (["Zoloft", "Wellbutrin"], ("Zoloft", "Wellbutrin"), "x" * 256, "x" * 256),
        (None, (), " ", None),
        ("", (), None, None),
        ([" ", "x" * 256], ("x" * 256,), None, None),
    ],
)
def test_a_source_states_one_drug_or_a_list_and_what_it_was_taken_for(
    written: object, stated: tuple[str, ...], indication: object, taken_for: str | None
) -> None:
    report = read(drug=written, indication=indication)
    assert (report.stated_drugs, report.stated) == (stated, Stated(stated, taken_for))
    assert read_report(as_input(report)) == report


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (7, "drug"),
        (["x", 7], "drug"),
        (["x"] * 9, "drug"),
        ("x" * 257, "drug"),
        (["x" * 257], "drug"),
        (7, "indication"),
        (["gout"], "indication"),
        ({"name": "gout"}, "indication"),
        ("x" * 257, "indication"),
    ],
)
def test_a_drug_or_indication_in_another_form_is_an_unknown_field(written: object, name: str) -> None:
    report = read(**{name: written})
    assert (getattr(report, name), report.meta) == (None, {name: written})


def test_a_producer_may_state_what_a_source_states_in_the_same_form() -> None:
    stated: dict[str, Any] = {"language": "en", "permalink": "https://example.org/1", "author": HASH}
    stated |= {
        "country": "NL",
        "duplicate_of": "z",
        "similar_to": "y",
        "reworded": True,
        "aggregate_only": True,
    }
    report = read(**stated, masked=[{"kind": "user", "start": 0, "end": 1}])
    assert {name: getattr(report, name) for name in stated} == stated
    assert report.masked == (Masked("user", 0, 1),)
    assert read_report(as_input(report)) == report
    other = {"language": 7, "permalink": ["x"], "country": {"code": "NL"}, "drug": {"name": "x"}}
    assert read(**other).meta == other


@pytest.mark.parametrize("author", ["@alice", {"name": "alice"}, 7, ""])
def test_an_author_that_is_no_hash_goes_no_further(author: object) -> None:
    report = read(author=author)
    assert (report.author, report.meta, report.meta_dropped) == (None, {}, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"secret", b'["secret"]', b'{"id": "a", "text": {"secret": 1}}',
        b'{"id": {"secret": 2}, "text": "b"}',
        # A mark that forbids keeping the text is not misread.
        b'{"id": "a", "text": "b", "aggregate_only": "secret"}',
        b'{"id": "a", "text": "b", "aggregate_only": 1}',
    ],
)  # fmt: skip
def test_no_word_of_the_producer_is_in_a_refusal(data: bytes) -> None:
    with pytest.raises(BadRecord) as refused:
        read_report(data)
    assert "secret" not in str(refused.value)


def test_unknown_fields_are_kept_up_to_the_bounds() -> None:
    assert read(likes=3, place={"country": "NL"}).meta == {"likes": 3, "place": {"country": "NL"}}
    long = read(first="x" * 100, second="x" * MAX_META_BYTES, third=1)
    assert (long.meta, long.meta_dropped) == ({"first": "x" * 100}, 2)
    many = read(**{f"field_{i}": i for i in range(MAX_META_FIELDS + 5)})
    assert (len(many.meta), many.meta_dropped) == (MAX_META_FIELDS, 5)


@pytest.mark.parametrize("field", ["x", "text", "id", "drug"])
@pytest.mark.parametrize("levels", [210, 260, 1000])
def test_lists_in_lists_are_refused_as_deep_as_they_are_read(field: str, levels: int) -> None:
    deep = b"[" * levels + b"]" * levels
    with pytest.raises(BadRecord):
        read_report(b'{"id": "a", "text": "b", "%s": %s}' % (field.encode(), deep))


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=6), JSON, JSON)
def test_any_object_becomes_a_report_or_is_refused(fields: dict[str, Any], created_at: Any, id_: Any) -> None:
    try:
        report = read_report(orjson.dumps({"text": "b"} | fields | {"created_at": created_at, "id": id_}))
    except BadRecord:
        return
    except orjson.JSONEncodeError:
        return
    assert report.id
    assert len(orjson.dumps(report.meta)) <= MAX_META_BYTES
