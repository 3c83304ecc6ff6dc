"""Every stage reads the form of a text, and its records name places of the text as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from models.types import (
    ADE,
    DRUG,
    Case,
    Coding,
    Expansion,
    LongForm,
    Mention,
    Query,
    Relation,
    ShortQuestion,
    Span,
)
from streams.agents.pipeline import stage_named
from streams.codec import decode, encode
from streams.input_reports import report_of
from streams.reading_form import Read
from streams.records import CodedReport, ExpandedReport, Report, TaggedReport
from streams.records.reports import MAX_FOLDED
from tests.fakes import loaded

WRITTEN = (
    "<p>\U0001d5e3\U0001d5ff\U0001d5fc\U0001d607\U0001d5ee\U0001d5f0 &amp; MTX gave me na\u2060us\u0435a<br>"
    "and it was bad {}</p>".format("y" * 300)
)
READ = f"\nProzac & MTX gave me nausea\nand it was bad {'y' * 16}\u2026{'y' * 16}\n"


def named(text: str, surface: str, label: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 1.0)


class Model:
    """Of every task; finds names in what it is given and keeps that."""

    def __init__(self) -> None:
        self.given: list[Any] = []


class Tagger(Model):
    def __init__(self, drug: str = "Prozac") -> None:
        super().__init__()
        self.drug = drug

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        self.given += batch
        return [[named(t, self.drug, DRUG), named(t, "nausea", ADE)] for t in batch]


class Expander(Model):
    def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
        self.given += batch
        at = [t.index("MTX") for t in batch]
        sure = [Expansion(i, i + 3, "MTX", "methotrexate", 1.0, "dictionary") for i in at]
        return [[e, replace(e, candidates=(LongForm("x", 0.4),))] for e in sure]


class Relater(Model):
    def predict(self, batch: Sequence[Case]) -> list[list[Relation]]:
        self.given += batch
        return [[Relation(0, 1, 1.0)] for _ in batch]


class Coder(Model):
    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        self.given += batch
        return [Coding((), nil=True) for _ in batch]


class Summarizer(Model):
    def predict(self, batch: Sequence[str]) -> list[ShortQuestion]:
        self.given += batch
        start = batch[0].index("gave")
        end, focus = batch[0].index("\nand"), batch[0].index("Prozac")
        text = f"Prozac: {batch[0][start:end]}"
        return [ShortQuestion(text, "extractive", 1.0, start, end, "Prozac", focus, focus + 6)]


def output(name: str, model: Model, report: Report) -> Any:
    (made,) = stage_named(name).outputs(loaded(model), [report])
    assert made.text == report.text
    assert decode(type(made), encode(made)) == made
    return made


def quoted(record: TaggedReport) -> list[str]:
    for m in record.mentions:
        assert record.text[m.start : m.end] == m.text
    return [m.text for m in record.mentions]


REPORT = Report(id="r", text=WRITTEN, drug="Pro\u200bzac", indication="low&nbsp;mood")


def test_the_stages_of_a_post_read_its_form_and_quote_its_text() -> None:
    tagger, coder = Tagger(), Coder()
    tagged = output("ner", tagger, REPORT)
    assert tagger.given == [READ]
    assert quoted(tagged) == [WRITTEN[3:9], "na\u2060us\u0435a"]
    assert (tagged.drug, tagged.indication) == (REPORT.drug, REPORT.indication)
    coded = output("normalization", coder, tagged)
    assert isinstance(coded, CodedReport)
    assert [(q.text, q.surface) for q in coder.given] == [(READ, "nausea")]
    assert coded.mentions == tagged.mentions
    assert [e.drugs for e in coded.events] == [("fluoxetine",)]
    assert coded.folded == tagged.folded
    assert [WRITTEN[s.start : s.end] for s in tagged.folded] == [
        WRITTEN[:9], "&amp;", "\u2060", "\u0435", "<br>", "y" * 268, "</p>",
    ]  # fmt: skip


def test_the_stages_of_a_sentence_read_its_form_and_quote_its_text() -> None:
    expanded = output("acronym", Expander(), REPORT)
    assert isinstance(expanded, ExpandedReport)
    tagger, relater = Tagger("methotrexate"), Relater()
    tagged = output("ner", tagger, replace(expanded, releases={"acronym": "0" * 12}))
    related = output("relation", relater, tagged)
    assert tagger.given == [READ.replace("MTX", "methotrexate")] == [case.text for case in relater.given]
    assert [[m.text for m in case.mentions] for case in relater.given] == [["methotrexate", "nausea"]]
    assert related.folded == tagged.folded == expanded.folded
    for record in (expanded, tagged, related):
        (own,), (open_,) = record.expansions, record.undecided
        assert WRITTEN[own.start : own.end] == WRITTEN[open_.start : open_.end] == own.short_form == "MTX"
    assert quoted(related) == ["MTX", "na\u2060us\u0435a"]
    coder = Coder()
    coded = output("normalization", coder, related)
    assert coded.mentions == related.mentions
    assert coded.expansions == related.expansions


def test_a_short_question_is_shown_as_it_is_read_and_says_where_it_stands() -> None:
    short = output("summarization", Summarizer(), REPORT).summary
    assert short.text == "Prozac: gave me nausea"
    assert WRITTEN[short.start : short.end] == "gave me na\u2060us\u0435a"
    assert WRITTEN[short.focus_start : short.focus_end] == short.focus == WRITTEN[3:9]


def test_what_a_text_states_of_a_case_is_read_in_its_form_and_stands_where_it_was_written() -> None:
    text = "Prozac 2\u200b0&nbsp;mg, nausea <b>2 da\u00adys</b> after starting it"
    tagged = output("ner", Tagger(), Report(id="r", text=text))
    assert [(f.field, f.value, text[f.start : f.end]) for f in tagged.case_fields] == [
        ("dose", "20 mg", "2\u200b0&nbsp;mg"), ("onset", "P2D", "2 da\u00adys"),
    ]  # fmt: skip
    assert output("normalization", Coder(), tagged).case_fields == tagged.case_fields
    sentence = output("acronym", Expander(), Report(id="r", text="A 9-year-old boy, MTX, nausea"))
    clinical = replace(sentence, releases={"acronym": "0" * 12})
    related = output("relation", Relater(), output("ner", Tagger("methotrexate"), clinical))
    assert [(f.field, f.value) for f in related.case_fields] == [("age", "9"), ("sex", "male")]


def test_a_text_that_is_its_own_form_is_passed_on_untouched() -> None:
    report = Report(id="r", text="Prozac gave me nausea", drug=("Prozac", "MTX"))
    assert Read.of(report).read is report
    assert output("ner", Tagger(), report).folded == ()


def test_a_record_names_a_bounded_number_of_places_and_no_producer_does() -> None:
    text = "Prozac, nausea. " + "n\u200ba " * 500 + "end"
    folded = output("ner", Tagger(), Report(id="r", text=text)).folded
    assert len(folded) == MAX_FOLDED
    assert folded[0] == Span(17, 18)
    assert folded[-1].end == len(text) - len("a end")
    assert report_of({"id": "r", "text": "x", "folded": [{"start": 0, "end": 1}]}).folded == ()


def test_a_mention_of_an_earlier_version_stays_within_the_text() -> None:
    text = "\u200b na\u00adus\ufb01a"
    for start, end in ((0, 1), (3, 4), (4, 5), (8, 9)):
        mention = Mention(start, end, text[start:end], ADE, 1.0)
        tagged = TaggedReport(id="r", text=text, mentions=(mention,))
        assert quoted(output("normalization", Coder(), tagged))


def test_outputs_that_are_not_one_for_each_report_are_an_error() -> None:
    stage = replace(stage_named("ner"), predict=lambda _, reports: [*reports, *reports])
    with pytest.raises(RuntimeError, match="2 outputs for 1 reports"):
        stage.outputs(loaded(Tagger()), [REPORT])


def test_of_mentions_in_one_acronym_the_first_effect_stays() -> None:
    text = "Fever and HIT/X on it"
    expansion = Expansion(10, 13, "HIT", "heparin-induced thrombocytopenia", 1.0, "dictionary")
    report = ExpandedReport(id="r", text=text, expansions=(expansion,), releases={"acronym": "0" * 12})

    class Several(Model):
        def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
            long = [named(batch[0], name, label) for name, label in (("heparin", DRUG), ("induced", ADE))]
            return [[named(batch[0], "Fever", ADE), *long, named(batch[0], "thrombocytopenia", ADE)]]

    tagged = output("ner", Several(), report)
    assert [(m.text, m.label) for m in tagged.mentions] == [("Fever", ADE), ("HIT", ADE)]
    assert [(m.start, m.end) for m in tagged.mentions] == [(0, 5), (10, 13)]
    assert tagged.expansions == report.expansions and tagged.folded == ()


@pytest.mark.parametrize(
    ("long_form", "is_read"),
    [
        ("gastrointestinal bleeding", True),
        ("Stevens-Johnson syndrome", True),
        ("nausea and vomiting", True),
        ("methotrexate", True),
        ("patient", False),
        ("international normalized ratio", False),
        ("stroke volume", False),
        ("liver transplantation", False),
    ],
)
def test_long_forms_that_name_events_and_drugs_are_read(long_form: str, is_read: bool) -> None:
    expansions = (
        Expansion(0, 2, "XX", long_form, 1.0, "dictionary"),
        Expansion(3, 5, "YY", "rash", 1.0, "dictionary"),
        Expansion(4, 5, "Y", "hives", 1.0, "dictionary"),
    )
    report = ExpandedReport(id="r", text="XX YY", expansions=expansions)
    read = Read.of(report, long_forms=True).read
    assert read.text == f"{long_form if is_read else 'XX'} rash", "of two at one place the first is read"
    assert Read.of(report).read is report
