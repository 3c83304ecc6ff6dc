"""Decisions, differences, changes of coding and scores of replays, and the reading of gold files."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.types import Candidate, Expansion, Mention, Relation, ShortQuestion
from streams.records import CodedEvent, CodedReport, Summary
from streams.replay.comparison import Chain, Source, as_json, compare
from streams.replay.diff import CodingChange, coding_changes, decisions, differences, recoded
from streams.replay.gold import Gold, GoldError, read_gold
from streams.replay.markup import describe
from streams.replay.run import DeadLetter, ReplayResult
from streams.replay.scoring import score_replays

TEXT = "lexapro gave me an itch and a rash"
DRUG = Mention(0, 7, "lexapro", "DRUG", 0.9)
ITCH = Mention(19, 23, "itch", "ADE", 0.8)
RASH = Mention(30, 34, "rash", "ADE", 0.7)


def coded(id_: str, *mentions: Mention, pt: str | None = "Pruritus", text: str = TEXT) -> CodedReport:
    """A report that has every adverse event coded to `pt`."""
    events = tuple(event(i, pt) for i, m in enumerate(mentions) if m.label == "ADE")
    return CodedReport(id=id_, text=text, source="posts", mentions=mentions, events=events)


def event(mention: int, pt: str | None) -> CodedEvent:
    near = (Candidate("Itching", "Pruritus", "Skin", 0.8),)
    llt = pt and f"{pt} llt"
    return CodedEvent(
        mention=mention, drugs=(), drug_evidence="none", llt=llt, pt=pt, soc=pt and "Skin", score=0.8,
        nil=pt is None, candidates=near,
    )  # fmt: skip


def gold_of(*records: dict[str, Any]) -> Gold:
    return read_gold(io.BytesIO(b"\n".join(orjson.dumps(r) for r in records)))


def spans(*mentions: Mention) -> list[dict[str, Any]]:
    return [{"start": m.start, "end": m.end, "label": m.label} for m in mentions]


def result(*records: Any, dead: tuple[str, ...] = ()) -> ReplayResult:
    letters = [DeadLetter(key, "posts", 0, i, "ner", "poison", "ValueError") for i, key in enumerate(dead)]
    return ReplayResult(list(records), letters)


def values(replay: ReplayResult, gold: Gold) -> dict[str, float]:
    return {s.name: s.values[0].value for s in score_replays([replay], gold)}


def test_decisions_of_every_kind_are_listed_without_scores() -> None:
    record = replace(
        coded("a", DRUG, ITCH),
        relations=(Relation(0, 1, 0.9),),
        expansions=(Expansion(0, 7, "LEX", "lexapro", 0.5, "text"),),
    )
    found = decisions(record)
    assert found == {
        ("mention", 0, 7, "DRUG"),
        ("mention", 19, 23, "ADE"),
        ("relation", 0, 7, 19, 23),
        ("expansion", 0, 7, "lexapro"),
        ("event", 19, 23, "Pruritus"),
        ("term", 19, 23, "Pruritus llt"),
    }
    again = replace(record, mentions=tuple(replace(m, score=0.1) for m in record.mentions))
    assert decisions(again) == found
    assert ("event", 19, 23, "NIL") in decisions(coded("a", ITCH, pt=None))
    summary = Summary(id="q", text="long", summary=ShortQuestion("short", "extractive", 0.3))
    assert decisions(summary) == {("summary", "short")}
    assert decisions(None) == frozenset()


@pytest.mark.parametrize(
    "changed", [{"negated": True}, {"serious": True}, {"drugs": ("escitalopram",)}, {"llt": "Itching"}]
)
def test_another_flag_drug_or_lowest_level_term_is_another_decision(changed: dict[str, Any]) -> None:
    record = coded("a", DRUG, ITCH)
    other = replace(record, events=tuple(replace(e, **changed) for e in record.events))
    (only,) = differences([record], [other], None)
    assert compare(SOURCE, chain(record), chain(other)).agreement == 0
    assert all(describe(d, TEXT).startswith("“itch” at 19, ") for d in only.lost | only.gained)


def test_reports_with_another_code_are_those_of_the_changes_of_coding() -> None:
    def with_(id_: str, **changed: Any) -> CodedReport:
        record = coded(id_, ITCH, RASH)
        return replace(record, events=tuple(replace(e, **changed) for e in record.events))

    base = [coded(id_, ITCH, RASH) for id_ in "abcd"]
    other = [with_("a", llt="Itching"), with_("b", serious=True), with_("c", pt="Rash")]
    changed = differences(base, other, None)
    assert [d.id for d in sorted(changed, key=lambda d: d.id)] == ["a", "b", "c", "d"]
    assert recoded(changed) == 2 and sum(c.count for c in coding_changes(base, other)) == 4


def test_records_with_most_changes_come_first_with_gold_those_that_lost_most_of_it() -> None:
    one, other = replace(ITCH, status="own"), replace(ITCH, status="negated")
    assert len(differences([coded("a", one)], [coded("a", other)], None)) == 1
    named = replace(DRUG, generic="escitalopram")
    assert len(differences([coded("a", named)], [coded("a", DRUG)], None)) == 1
    base = [coded("c", ITCH), coded("b", ITCH), coded("a", DRUG), coded("d", ITCH, RASH)]
    negated = [coded("c"), coded("b"), coded("a", DRUG), coded("d")]
    assert [d.id for d in differences(base, negated, None)] == ["d", "b", "c"]
    gold = gold_of(*({"id": id_, "mentions": spans(ITCH)} for id_ in "abc"))
    base = [coded("a"), coded("b", ITCH), coded("c", RASH), coded("d", ITCH, RASH)]
    negated = [coded("a", ITCH), coded("b"), coded("c"), coded("d")]
    assert [d.id for d in differences(base, negated, gold)] == ["b", "c", "d", "a"]


def test_a_dead_letter_in_one_chain_is_a_difference_even_without_decisions() -> None:
    (only,) = differences([coded("a")], [], None)
    assert (only.base, only.other, only.lost) == (coded("a"), None, frozenset())
    (only,) = differences([], [coded("a", ITCH)], None)
    assert (only.base, only.text) == (None, TEXT)
    assert len(only.gained) == 3


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([DRUG, ITCH, RASH])), max_size=8))
def test_a_replay_never_differs_from_itself(pairs: list[tuple[str, Mention]]) -> None:
    records = [coded(id_, mention) for id_, mention in pairs]
    assert differences(records, list(records), None) == []
    assert coding_changes(records, records) == []
    assert compare(SOURCE, chain(*records), chain(*records)).agreement == 1.0


def test_only_the_last_of_repeated_records_and_identical_summaries_are_correct() -> None:
    gold = gold_of({"id": "a", "mentions": spans(ITCH)})
    once, repeated = result(coded("a", ITCH)), result(coded("a", RASH), coded("a", ITCH))
    assert values(repeated, gold) == values(once, gold) == {"mentions": 1.0}
    assert differences(repeated.outputs, once.outputs, None) == []
    gold = gold_of({"id": "a", "summary": "short"}, {"id": "b", "summary": "short"})
    summaries = [
        Summary(id=i, text="x", source="questions", summary=ShortQuestion(t, "extractive", 0.1))
        for i, t in (("a", "short"), ("b", "Short"))
    ]
    assert values(result(*summaries), gold) == {"summaries": 0.5}
    gold = gold_of({"id": "elsewhere", "mentions": spans(ITCH)})
    assert score_replays([result(coded("a", ITCH))], gold) == []
    assert score_replays([result()], gold) == []
    assert values(result(coded("a")), gold_of({"id": "a", "mentions": []})) == {}


def test_scores_equal_those_counted_by_hand() -> None:
    gold = gold_of(
        {
            "id": "a",
            "mentions": spans(DRUG, ITCH, RASH),
            "relations": [[0, 1], [0, 2]],
            "events": [{"start": 19, "end": 23, "pt": "Pruritus"}, {"start": 30, "end": 34, "pt": None}],
        },
        {"id": "b", "mentions": []},
        {"id": "not in the range", "mentions": spans(ITCH)},
    )
    other_label = replace(DRUG, label="SYMPTOM")
    records = (
        replace(coded("a", DRUG, ITCH), relations=(Relation(0, 1, 0.5),)),
        coded("b", RASH, other_label),
        coded("without gold", ITCH),
    )
    found = values(result(*records), gold)
    assert found == pytest.approx(
        {
            "mentions": 2 * 2 / (3 + 3),  # 2 correct, 3 predicted (SYMPTOM left out), 3 gold
            "mentions ADE": 2 * 1 / (2 + 2),
            "mentions DRUG": 1.0,
            "relations": 2 * 1 / (1 + 2),
            "coded events": 1.0,
        }
    )
    for score in score_replays([result(*records)], gold):
        assert score.values[0].low <= score.values[0].value <= score.values[0].high
        assert "correct if" in score.definition or "Share" in score.definition or "F1" in score.definition
        assert score.difference is None
    assert "left out" in score_replays([result(*records)], gold)[0].definition


def test_a_dead_letter_counts_as_a_record_without_predictions() -> None:
    gold = gold_of(*({"id": i, "mentions": spans(ITCH)} for i in "ab"))
    one = result(coded("a", ITCH), dead=("b",))
    assert values(one, gold)["mentions"] == pytest.approx(2 / 3)
    both = score_replays([result(coded("a", ITCH), coded("b", ITCH)), one], gold)[0]
    assert both.records == 2
    assert both.difference is not None
    assert both.difference.value == pytest.approx(2 / 3 - 1)
    assert both.difference.low <= both.difference.value <= both.difference.high <= 0


def test_changes_of_coding_are_counted_by_mention_text_and_terms_most_frequent_first() -> None:
    base = [coded(i, ITCH, pt="Old") for i in "abcd"] + [coded("e", RASH, pt=None), coded("f", RASH)]
    other = [coded(i, ITCH, pt="New") for i in "abcd"] + [coded("e", RASH, pt="New"), coded("f", RASH)]
    assert coding_changes(base, other) == [
        CodingChange("itch", "Old", "Old llt", "New", "New llt", 4, ("a", "b", "c")),
        CodingChange("rash", None, None, "New", "New llt", 1, ("e",)),
    ]
    assert coding_changes(base, [coded("a", RASH), coded("g", ITCH)]) == [], (
        "mentions that only one of them codes are left out"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"no json", "line 2: Invalid JSON"),
        (b"[]", "line 2: "),
        (b'{"mentions": []}', "line 2: id"),
        (b'{"id": 7}', "line 2: id"),
        (b'{"id": "b", "mention": []}', "line 2: mention: Unexpected"),
        (b'{"id": "b", "mentions": [{"start": 1, "end": "2", "label": "ADE"}]}', r"line 2: mentions\.0\.end"),
        (b'{"id": "b", "mentions": [{"start": 2, "end": 2, "label": "ADE"}]}', "empty or negative"),
        (b'{"id": "b", "relations": [[0, 1]]}', "a relation refers to a mention that does not exist"),
        (b'{"id": "b", "mentions": [], "relations": [[-1, 0]]}', "does not exist"),
        (b'{"id": "a"}', "line 2: duplicate id"),
        (b'\xff{"id": "secret words"}', "line 2: "),
    ],
)
def test_an_invalid_line_of_gold_is_reported_by_its_number_and_not_quoted(line: bytes, message: str) -> None:
    with pytest.raises(GoldError, match=message) as refusal:
        read_gold(io.BytesIO(b'{"id": "a"}\n' + line + b"\n"))
    assert "\n" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_a_byte_order_mark_before_the_first_line_of_gold_is_left_out() -> None:
    gold = read_gold(io.BytesIO(b'\xef\xbb\xbf{"id": "a", "summary": "short"}\r\n{"id": "b"}\r\n'))
    assert gold.verdict("a", ("summary", "short")) is True
    assert set(gold.records) == {"a", "b"}
    assert read_gold(io.BytesIO(b"\xef\xbb\xbf\n")).records == {}


SOURCE = Source("posts", "beginning", "end", 2)


def chain(*records: Any, dead: tuple[str, ...] = ()) -> Chain:
    return Chain({"ner": "0123456789ab"}, result(*records, dead=dead))


def test_the_json_has_no_text_unless_requested_and_of_one_replay_no_differences() -> None:
    gold = gold_of({"id": "a", "mentions": spans(ITCH)})
    comparison = compare(
        SOURCE, chain(coded("a", ITCH), coded("b")), chain(coded("a", RASH), dead=("b",)), gold
    )
    without_text = orjson.dumps(as_json(comparison)).decode()
    assert "itch" not in without_text and "rash" not in without_text
    plain = orjson.loads(without_text)
    assert (plain["compared"], plain["changed"], plain["agreement"]) == (2, 2, 0.0)
    assert plain["chains"][1]["dead"][0]["reason"] == "poison"
    assert plain["scores"][0]["difference"]["value"] == -1.0
    assert plain["source"]["topic"] == "posts"
    assert orjson.loads(orjson.dumps(as_json(comparison, text=True)))["differences"][0]["text"] == TEXT
    plain = as_json(compare(SOURCE, chain(coded("a", ITCH))))
    assert "changed" not in plain and plain["scores"] == []
