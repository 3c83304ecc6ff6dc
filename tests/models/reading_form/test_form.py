"""The reading form of any text: what is folded and what stays, offsets, and time."""

from __future__ import annotations

import json
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.reading_form.form import reading_form
from models.types import Span
from streams.cli.demo.run import samples
from tests.models.hostile_texts import repeated

#: What the steps look for, so that random texts have it.
PIECES = [
    "&amp;", "&lt;b&gt;", "&#8203;", "&#x26;", "&", "#38;", ";", "amp", "&aacute;", "<b>", "</b>", "<", ">",
    "<p>", "\u00ad", "\u200b", "\u200d", "\u2060", "\ufe0f", "\u20e3", "5", "\u0301", "\u0323", "\u0336",
    "\u0332", "\uff06", "\uff1c",
    "\uff42", "\uff1e", "\U0001d5e3", "\ufb01", "\u00a0", " ", "\n", "\u0430", "\u0440",
    "\u0444", "\u03b1", "\u03bf", "\u1100", "\u1161", "\u11a8", "\uff76", "\uff9e", "\u2764", "\U0001f469",
    "\u1d18", "\U0001f17f", "\ufdfa", "\u212b", "\u00e9", "\u2019", "\u2026", "a", "n", "Z", "e",
    "rash", " took ", " " * 40, "y" * 140, "." * 70, "\u0301" * 40,
]  # fmt: skip
ANY = st.characters(max_codepoint=0x10FFFF, exclude_categories=())
TEXTS = st.lists(st.sampled_from(PIECES) | ANY, max_size=40).map("".join)
SETTINGS = settings(deadline=None, max_examples=400)


@SETTINGS
@given(TEXTS)
@example("&am\u00adp;amp;lt;b&gt;")
@example("\uff06\uff41mp;#65286;amp;")
@example("&" + "amp;" * 30)
def test_the_form_of_a_form_is_that_form_without_a_map(text: str) -> None:
    form = reading_form(reading_form(text).text)
    assert form.text is form.written
    assert form.is_written and form.changed() == []


@SETTINGS
@given(TEXTS, st.data())
def test_every_span_of_the_form_is_a_span_of_the_text_and_back(text: str, data: st.DataObject) -> None:
    form = reading_form(text)
    spans = [form.in_written(i, i + 1) for i in range(len(form.text))]
    assert all(span.end <= len(text) for span in spans)
    assert all(a.start <= b.start and a.end <= b.end for a, b in pairwise(spans))
    assert len(form.starts) == len(form.ends) == (0 if form.is_written else len(form.text))
    if form.text:
        start = data.draw(st.integers(0, len(form.text) - 1))
        written = form.in_written(start, data.draw(st.integers(start + 1, len(form.text))))
        again = form.in_form(written.start, written.end)
        assert form.in_written(again.start, again.end) == written
        first = data.draw(st.integers(0, len(text) - 1))
        read = form.in_form(first, data.draw(st.integers(first + 1, len(text))))
        assert read.end <= len(form.text)


@SETTINGS
@given(TEXTS)
def test_what_is_not_changed_stands_in_the_form_and_says_where_it_is(text: str) -> None:
    form = reading_form(text)
    changed = {i for span in form.changed() for i in range(span.start, span.end)}
    kept = [c for i, c in enumerate(text) if i not in changed]
    whole = [form.in_written(i, i + 1) for i in range(len(form.text))]
    assert [form.text[i] for i, w in enumerate(whole) if w.start not in changed] == kept
    assert all(a.end < b.start for a, b in pairwise(form.changed()))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        # Invisible characters in words.
        ("Pro\u200bzac, in\u00adsom\u00adnia", "Prozac, insomnia"),
        ("\ufeffnau\u2060sea\u200b and Pro\u200dzac\ufe0f", "nausea and Prozac"),
        # Those between words.
        (
            "Prozac\u200bgave\u200b\u200bme nausea\u200band\u200bakathisia",
            "Prozac gave me nausea and akathisia",
        ),
        ("I\u200bfelt\u200bdizzy, so sick", "I felt dizzy, so sick"),
        (
            "heart\u200bburn, over\u200bdose, night\u200bmares, head\u200bache",
            "heartburn, overdose, nightmares, headache",
        ),
        (
            "light\u200bheadedness, in\u200bso\u200bmn\u200bia, n\u200ba\u200bu\u200bs\u200be\u200ba",
            "lightheadedness, insomnia, nausea",
        ),
        ("Zo\u200bloft 50\u200bmg\u200b, rash,\u200bitchy", "Zoloft 50mg, rash,itchy"),
        ("na\u200cu\u180esea \u202eand\u202c \u2066rash\u2069", "nausea and rash"),
        # Styled letters and digits.
        (
            "\U0001d5e3\U0001d5ff\U0001d5fc\U0001d607\U0001d5ee\U0001d5f0 \U0001d7f1\U0001d7ec mg",
            "Prozac 50 mg",
        ),
        ("\uff4e\uff41\uff55\uff53\uff45\uff41\uff01", "nausea!"),
        ("\ufb01ts, di\ufb03culty", "fits, difficulty"),
        ("\u24df\u24e1\u24de\u24e9\u24d0\u24d2 \u1d18\u0280\u1d0f\u1d22\u1d00\u1d04", "prozac prozac"),
        ("\U0001f17f\U0001f181\U0001f17e\U0001f189\U0001f170\U0001f172", "PROZAC"),
        ("5\u338e, 2\u3396", "5mg, 2ml"),
        # Marks.
        ("nai\u0308ve, ibuprofe\u0301n", "na\u00efve, ibuprof\u00e9n"),
        ("n\u0332a\u0332u\u0332sea", "nausea"),
        # Struck out.
        (
            "not r\u0336a\u0336s\u0336h\u0336 but <s>flu, <b>rash</b></s> <del>cold</del> fever",
            "not  but   fever",
        ),
        # Look-alikes.
        ("\u0420r\u043ez\u0430\u0441 gave me n\u0430us\u0435\u0430", "Prozac gave me nausea"),
        ("took \u0430 pill, \u0391mbien, Z\u03bfloft, n\u03b1usea", "took a pill, Ambien, Zoloft, nausea"),
        # Entities and tags.
        ("hot &amp; cold, can&#39;t sleep&nbsp;&lt; 3&#x20;h", "hot & cold, can't sleep < 3 h"),
        # Without a semicolon.
        (
            "hot &amp cold, don&#39t, I&#8217m&nbspsick &lt 3 h, &quot bad&quot.",
            'hot & cold, don\'t, I\u2019m sick < 3 h, " bad".',
        ),
        ("can&#x27t &#x2019s it&#X27", "can't \u2019s it'"),
        ("R&amp;amp;D, caf&eacute;, dia&shy;rrhea", "R&D, caf\u00e9, diarrhea"),
        ("<p>Took <b>Prozac</b><br>now <a href='x?a=1&amp;b'>sick</a></p>", "\nTook Prozac\nnow sick\n"),
        ("&lt;i&gt;sick&lt;/i&gt; <!-- x -->", "sick "),
        # Blanks and hyphens.
        ("20\u00a0mg\u2003co\u2011codamol \u22125", "20 mg co-codamol -5"),
    ],
)
def test_what_is_written_otherwise_is_read_as_meant(written: str, read: str) -> None:
    assert reading_form(written).text == read


@pytest.mark.parametrize(
    "text",
    [
        "I took 20 mg of Prozac & felt sick: <3, BP < 90/60 > 40, R&D; AT&T; x<y>z",
        "AE&copy &unknown; &# &#; &;",
        "x?a=1&lt=2&quote=3&gt=4&amp=5, &ampere &ltd &#1 fan, B&#x &#xg &notes &regret",
        "patient <A> and <B>, <drug> of <user>, a <b c> d",
        "\u201cdon\u2019t\u201d \u2013 caf\u00e9, na\u00efve, Sj\u00f6gren \u2026 \U0001f922",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f 5\ufe0f\u20e3",
        "\U0001f469\U0001f3fd\u200d\u2695\ufe0f",
        "IFN\u03b3, NF\u03baB, \u03b1-blocker, \u03b2blocker, TNF\u03b1, \u039439, 5 \u00b5g, \u03bcg",
        "10\u2079/L, 1\u00bd, 38\u00ba, 38\u2103, \u2116 5, Prozac\u2122, \u2460 rash, Lipitor\u00ae",
        "\u041f\u043e\u0441\u043b\u0435 Prozac\u0430 \u0438"
        " \u0420\u0410\u0421 \u0441\u043e\u043d",
        "\u039c\u03b5\u03c4\u03ac Zoloft \u03b4\u03b5\u03bd, \u039f\u0391",
        "Zoloft ba\u015f\u0131m d\u00f6n\u00fcyor, h\u1ec7 th\u1ed1ng",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0915\u094d\u200d\u0937",
        "\uc138\ub974\ud2b8\ub784\ub9b0 \u85ac",
        "a <s>b, ~~fever~~, \u0444\u0336 \u2260 5",
        "\u200b", "\ufe0f", "&nbsp;", "<p></p>", "", " \n",
    ],
)  # fmt: skip
def test_what_stands_for_itself_stays(text: str) -> None:
    assert reading_form(text).text is text


def test_prose_and_ordinary_texts_stay_without_a_map() -> None:
    lines = [line for path in samples().values() for line in path.read_text(encoding="utf-8").splitlines()]
    for text in (json.loads(line)["text"] for line in lines):
        assert reading_form(text).text is text


def test_a_span_covers_what_was_left_out_in_it_but_not_around_it() -> None:
    form = reading_form("\u200bna\u00adus\u00adea\u200b &lt;3 \ufb01ts")
    assert form.text == "nausea <3 fits"
    assert form.in_written(0, 6) == Span(1, 9)
    assert form.in_written(7, 9) == Span(11, 16)
    assert form.in_written(11, 12) == Span(17, 18) == form.in_written(10, 11)
    assert form.in_form(17, 18) == Span(10, 12)
    assert form.changed() == [Span(0, 1), Span(3, 4), Span(6, 7), Span(9, 10), Span(11, 15), Span(17, 18)]


def test_of_a_run_that_nobody_writes_the_ends_are_read() -> None:
    for unit in (" ", "\n", "a", ".", "a-", "\u00e9", "a\u200b", "\uff41"):
        form = reading_form(f"I took it {repeated(unit, 50_000)} and got a rash.")
        assert form.text.endswith(" and got a rash."), unit
        assert len(form.text) < 100, unit
    form = reading_form(f"a{' ' * 99}b {'y' * 300}")
    assert form.text == f"a{' ' * 32}b {'y' * 16}\N{HORIZONTAL ELLIPSIS}{'y' * 16}"
    assert reading_form("Name            Dose  no.......... NO!!!!!!!!!! pain" + "n" * 60).is_written


@pytest.mark.parametrize(
    "unit",
    [
        "&", "&amp;", "&am", "<", "<b ", "<a x=", "<a x='", "<b>", "<!--", ">", ";", "a\u0301",
        "\u0301\u0323", "\u200b", "\ufe0f", "\u0430", "n\u0430 ", "\u03b1", "\uff41", "\ufdfa ",
        "\U0001d5e3 ", "\u1161\u11a8", "a", "a ", " \n", ".\u2026",
    ],
)  # fmt: skip
def test_a_form_takes_linear_time(unit: str) -> None:
    start = process_time()
    reading_form(repeated(unit, 60_000))
    assert process_time() - start < 6
