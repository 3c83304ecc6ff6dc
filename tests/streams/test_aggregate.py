"""What is left of a report whose text must not be kept, once it is coded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from models.types import Candidate, Expansion, Mention, ShortQuestion
from streams.codec import decode, encode
from streams.provenance import without_text
from streams.records import CodedEvent, CodedReport, Masked, Report, Summary, TaggedReport
from streams.stage import Stage, run_stage
from streams.topics import EVENTS, MENTIONS
from tests.fakes import FakePorts, FakeTagger, batches_of, inbound, loaded

TEXT = "secretword zoloft and secretpill gave me secretrash"
EVENT = CodedEvent(
    mention=2, drugs=("sertraline", "secretpill"), drug_evidence="relation", llt="Rash", pt="Rash",
    soc="Skin", score=0.9, nil=False, candidates=(Candidate("Rash", "Rash", "Skin", 0.9),),
)  # fmt: skip
CODED = CodedReport(
    id="1",
    text=TEXT,
    aggregate_only=True,
    permalink="https://secret.example",
    author="ab" * 32,
    indication="secret complaint",
    meta={"user": "secret"},
    masked=(Masked("user", 0, 5),),
    expansions=(Expansion(0, 6, "secret", "secretform", 1.0, "text"),),
    undecided=(Expansion(0, 6, "secret", "secretform", 0.5, "dictionary"),),
    mentions=(
        Mention(11, 17, "zoloft", "DRUG", 1.0, "sertraline"),
        Mention(22, 32, "secretpill", "DRUG", 1.0),
        Mention(41, 51, "secretrash", "ADE", 0.9),
    ),
    events=(EVENT,),
)


def test_codes_and_spans_stay_and_nothing_of_the_text_or_its_author_does() -> None:
    bare = without_text(CODED)
    assert b"secret" not in encode(bare) and b"abab" not in encode(bare)
    assert (bare.events[0].pt, bare.events[0].drugs) == ("Rash", ("sertraline",))
    spans = [(m.start, m.end, m.label) for m in bare.mentions]
    assert spans == [(11, 17, "DRUG"), (22, 32, "DRUG"), (41, 51, "ADE")]
    assert decode(CodedReport, encode(bare)) == bare
    assert without_text(bare) == bare


def test_a_drug_that_the_source_states_is_no_part_of_the_text() -> None:
    event = replace(EVENT, drugs=("paroxetine",), drug_evidence="report")
    assert without_text(replace(CODED, drug="Paxil", events=(event,))).events[0].drugs == ("paroxetine",)


def test_the_members_of_a_regimen_are_of_a_table_and_stay() -> None:
    folfox = Mention(
        0, 6, "secret", "DRUG", 1.0, "FOLFOX", kind="regimen", members=("leucovorin", "oxaliplatin")
    )
    event = replace(EVENT, drugs=("oxaliplatin", "secretpill"), drug_evidence="text")
    coded = replace(CODED, mentions=(folfox, *CODED.mentions[1:]), events=(event,))
    assert without_text(coded).events[0].drugs == ("oxaliplatin",)


def test_a_short_question_is_a_quotation_too() -> None:
    short = ShortQuestion(TEXT, "edited", 1.0, 0, 51, "secretpill", 22, 32)
    summary = Summary(id="1", text=TEXT, aggregate_only=True, summary=short)
    bare = without_text(summary)
    assert b"secret" not in encode(bare)
    assert bare.summary == ShortQuestion("", "edited", 1.0)


def test_other_records_and_records_on_their_way_keep_their_text() -> None:
    for record in (replace(CODED, aggregate_only=False), Report(id="1", text=TEXT, aggregate_only=True)):
        assert without_text(record) == record


@pytest.mark.parametrize("keep_text", [False, True])
async def test_the_last_stage_drops_the_text_unless_there_is_a_right_to_keep_it(keep_text: bool) -> None:
    def code(model: Any, batch: Sequence[TaggedReport]) -> list[CodedReport]:
        return [CODED for _ in batch]

    stage: Stage[TaggedReport, CodedReport] = Stage("normalization", MENTIONS, EVENTS, code)
    ports = FakePorts(loaded(FakeTagger()))
    ports.keep_text = keep_text
    source = TaggedReport(id="1", text=TEXT, aggregate_only=True)
    await run_stage(stage, batches_of([inbound(0, encode(source), "mentions")]), ports)
    ((_, value, _),) = ports.to("events")
    assert (b"secret" in (value or b"")) is keep_text
    assert decode(CodedReport, value).record_id.startswith("mentions/1/"), "the id is that of the whole text"
