"""The HTML report and the console table of a comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from models.types import LABELS, Expansion, Mention, ShortQuestion
from streams.html import TEMPLATES
from streams.provenance import without_text
from streams.records import CodedReport, Summary
from streams.replay import report
from streams.replay.comparison import Chain, Comparison, Source, as_json, compare
from streams.replay.diff import NOT_KEPT
from streams.replay.gold import Gold
from streams.replay.markup import describe, highlighted
from streams.replay.run import DeadLetter, ReplayResult
from tests.streams.replay.test_diff import DRUG, ITCH, RASH, SOURCE, TEXT, coded, gold_of, spans

HOSTILE = "<script>alert(1)</script> \"' onload=x & &lt; </mark></style>\u202e"
VOID = {"meta"}
STYLE = (TEMPLATES / "document.html").read_text(encoding="utf-8")


class Page(HTMLParser):
    """Parses a page, fails on a tag that closes another one than the open one, keeps text and attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    @property
    def all_text(self) -> str:
        return "".join(self.text)


def chain(*records: object, release: str = "0123456789ab") -> Chain:
    return Chain({"ner": release}, ReplayResult(list(records), []))


def comparison(base: CodedReport, other: CodedReport | None, gold: Gold | None = None) -> Comparison:
    second = [] if other is None else [other]
    return compare(
        Source("posts", "beginning", "end", 1), chain(base), chain(*second, release="b" * 12), gold
    )


def test_a_page_shows_what_was_replayed_its_scores_and_its_changes() -> None:
    gold = gold_of({"id": "a", "mentions": spans(DRUG, ITCH)})
    page = Page(
        report.html(comparison(coded("a", DRUG, ITCH, pt="Old"), coded("a", ITCH, RASH, pt="New"), gold))
    )
    for words in (
        "Replay of posts", "beginning to end", "ner 0123456789ab", "ner " + "b" * 12,
        "1.000 [1.000, 1.000]", "a predicted mention is correct if",
        "lost: DRUG “lexapro” at 0, in gold (worse)",
        "gained: ADE “rash” at 30, not in gold (worse)",
        "lost: “itch” at 19 coded to Old", "Old (Old llt)", "New (New llt)", "Changes of coding",
    ):  # fmt: skip
        assert words in page.all_text, words
    assert ("lang", "en") in page.attributes and ("charset", "utf-8") in page.attributes
    assert {("data-label", "DRUG"), ("class", "drug"), ("data-label", "ADE")} <= set(page.attributes)


def test_the_facts_count_reports_decided_otherwise_and_gold_in_the_range() -> None:
    found = dict(report.facts(comparison(coded("a", ITCH), coded("a", RASH))))
    assert found["Records"] == "1"
    assert found["Different decisions"] == "1 of 1 reports; agreement 0.0%"
    # Gold with other ids gives no scores, which would look like a replay without gold.
    gold = gold_of({"id": "a", "mentions": []}, {"id": "b", "summary": "x"}, {"id": "A", "mentions": []})
    letter = DeadLetter("b", "posts", 0, 0, "ner", "poison", "ValueError")
    one = Chain({"ner": "b" * 12}, ReplayResult([coded("a", ITCH)], [letter]))
    compared = compare(Source("posts", "beginning", "end", 2), one, gold=gold)
    assert dict(report.facts(compared))["Gold"] == "2 of its 3 records are in the range"
    assert as_json(compared)["gold"] == {"records": 3, "in_range": 2}
    assert "Gold" not in dict(report.facts(comparison(coded("a", ITCH), None)))


def test_a_page_has_no_script_and_no_external_resource() -> None:
    markup = report.html(comparison(coded("a", ITCH), coded("a", RASH)))
    page = Page(markup)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "form", "a", "base"})
    assert {name for name, _ in page.attributes} <= {
        "lang", "charset", "name", "content", "class", "data-label", "dir", "scope",
    }  # fmt: skip
    assert not re.search(r"https?:|//|url\(|@import", markup)
    assert "prefers-color-scheme: dark" in markup


def test_hostile_text_stays_text_everywhere_on_the_page() -> None:
    evil = Mention(0, len(HOSTILE), HOSTILE, '"><script>x', 0.5)
    base = coded(HOSTILE, evil, replace(ITCH, end=22), text=HOSTILE, pt=HOSTILE)
    other = coded(HOSTILE, replace(evil, label="ADE"), text=HOSTILE, pt=HOSTILE + "2")
    found = compare(
        Source(HOSTILE, HOSTILE, HOSTILE, 1), chain(base, release=HOSTILE), chain(other, release=HOSTILE)
    )
    page = Page(report.html(found))
    assert page.tags.isdisjoint({"script"})
    assert {name for name, _ in page.attributes}.isdisjoint({"onload", "x"})
    assert page.all_text.count(HOSTILE) >= 5


def test_summaries_and_dead_letters_are_shown() -> None:
    long = Summary(id="q", text="long\r\nquestion", summary=ShortQuestion("short?", "extractive", 0.5))
    page = Page(report.html(compare(Source("questions", "0", "9", 1), chain(long), chain())))
    assert all(words in page.all_text for words in ("short?extractive", "long\r\nquestion", "Dead letter"))


def test_decisions_on_a_text_that_must_not_be_kept_are_compared_and_shown_without_its_words() -> None:
    def coded_otherwise(id_: str, drug: str, long_form: str, pt: str) -> CodedReport:
        record = replace(coded(id_, DRUG, ITCH, pt=pt), aggregate_only=id_ == "x")
        events = tuple(replace(e, drugs=(drug,), drug_evidence="relation") for e in record.events)
        return replace(record, events=events, expansions=(Expansion(19, 23, "it", long_form, 1.0, "text"),))

    def partly_kept(**values: str) -> Chain:
        whole = [coded_otherwise(id_, **values) for id_ in "xo"]
        return Chain({"ner": "0" * 12}, ReplayResult([without_text(r) for r in whole], [], whole))

    one = partly_kept(drug="homebrew", long_form="indigo tea", pt="Old")
    found = compare(SOURCE, one, partly_kept(drug="tincture", long_form="iron tonic", pt="New"))
    hidden, kept = sorted(found.differences, key=lambda d: d.id != "x")
    assert sorted(hidden.lost) == [
        ("event", 19, 23, "Old"),
        ("expansion", 19, 23, NOT_KEPT),
        ("suspect", 19, 23, NOT_KEPT),
        ("term", 19, 23, "Old llt"),
    ]
    assert ("suspect", 19, 23, "tincture") in kept.gained and kept.text == TEXT
    assert [(c.text, c.count, c.examples) for c in found.coding] == [
        (NOT_KEPT, 1, ("x",)),
        ("itch", 1, ("o",)),
    ]
    only = [replace(found, differences=[hidden], coding=found.coding[:1])]
    for page in (*map(report.html, only), *(orjson.dumps(as_json(c, text=True)).decode() for c in only)):
        assert not any(word in page for word in ("lexapro", "homebrew", "tincture", "indigo", "tonic"))
        assert NOT_KEPT in page and "itch" not in page


def test_summaries_that_must_not_be_kept_are_scored_and_compared_whole() -> None:
    def summarized(text: str) -> Chain:
        whole = Summary(
            id="q", text=TEXT, source="questions", aggregate_only=True,
            summary=ShortQuestion(text, "edited", 0.5),
        )  # fmt: skip
        return Chain({"summarization": "0" * 12}, ReplayResult([without_text(whole)], [], [whole]))

    gold = gold_of({"id": "q", "summary": "Does lexapro itch?"})
    found = compare(SOURCE, summarized("Is a rash bad?"), summarized("Does lexapro itch?"), gold)
    assert [e.value for e in found.scores[0].values] == [0.0, 1.0]
    assert found.agreement == 0.0
    page = Page(report.html(found)).all_text
    assert f"lost: summary “{NOT_KEPT}”, not in gold (better)" in page
    assert f"gained: summary “{NOT_KEPT}”, in gold (better)" in page
    assert "itch" not in page and "rash" not in page
    assert compare(SOURCE, summarized("Same?"), summarized("Same?")).differences == []


def test_records_beyond_a_limit_count_and_one_replay_has_no_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RECORDS_SHOWN", 2)
    base, other = [coded(i, ITCH) for i in "abcde"], [coded(i) for i in "abcde"]
    found = compare(Source("posts", "0", "end", 5), chain(*base), chain(*other))
    markup = report.html(found)
    assert markup.count("<article>") == 2
    assert "3 more reports are not shown" in markup
    gold = gold_of({"id": "a", "mentions": spans(ITCH)})
    found = compare(Source("posts", "0", "end", 1), chain(coded("a", ITCH)), gold=gold)
    page = Page(report.html(found))
    assert "Difference" not in page.all_text and "different decisions" not in page.all_text
    assert "mentions" in page.all_text


@st.composite
def texts_and_mentions(draw: st.DrawFn) -> tuple[str, list[Mention]]:
    text = draw(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
    )
    spans_ = st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text))).filter(lambda s: s[0] < s[1])
    labels = st.sampled_from([*LABELS, "NEW", '" onclick="'])
    found = draw(st.lists(st.tuples(spans_, labels), max_size=6))
    return text, [Mention(s, e, text[s:e], label, 0.5) for (s, e), label in found]


@given(texts_and_mentions())
def test_a_highlighted_text_without_its_tags_is_the_text(case: tuple[str, list[Mention]]) -> None:
    text, mentions = case
    page = Page(highlighted(text, mentions))
    assert page.all_text == text
    assert page.tags <= {"mark"}
    shown = " ".join(value or "" for name, value in page.attributes if name == "data-label")
    assert sorted(shown) == sorted(" ".join(m.label for m in mentions)), "each label is shown once"


def test_every_label_has_a_readable_colour_in_light_and_in_dark_mode() -> None:
    for label in LABELS:
        colours = re.findall(rf"--{label.lower()}: (#[0-9a-f]{{6}})", STYLE)
        assert len(colours) == 2
        for text, behind in zip(("#1b1b1b", "#ececec"), colours, strict=True):
            assert contrast(text, behind) > 7, (label, behind)
        assert f"mark.{label.lower()}" in STYLE


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours as WCAG defines it: 1 to 21; its strictest level requires 7."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_console_table_has_a_row_for_each_score_and_prints_names_unchanged() -> None:
    gold = gold_of({"id": "a", "mentions": [{"start": 0, "end": 1, "label": "[bold]X"}, *spans(ITCH)]})
    console = Console(width=200)
    with console.capture() as capture:
        console.print(report.table(comparison(coded("a", ITCH), coded("a", RASH), gold)))
    shown = capture.get()
    assert "mentions [bold]X" in shown
    assert "worse" in shown and "-0.667 [-0.667, -0.667]" in shown


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (("mention", 0, 2, "ADE"), "ADE “it” at 0"),
        (("relation", 0, 2, 3, 5), "“it” caused “ch”"),
        (("expansion", 0, 2, "information"), "“it” means “information”"),
        (("event", 0, 2, "NIL"), "“it” at 0 coded to NIL"),
        (("event", 0, 2, "Pruritus"), "“it” at 0 coded to Pruritus"),
        (("summary", "short?"), "summary “short?”"),
    ],
)
def test_a_decision_is_described_in_words(decision: tuple[object, ...], words: str) -> None:
    assert describe(decision, "it ch") == words
