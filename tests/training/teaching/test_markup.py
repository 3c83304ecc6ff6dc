"""The markup of the teaching corpus: read, written, refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.types import ADE, DRUG, INDICATION, WITHDRAWAL
from training.teaching.markup import FLAGS, NONE, Mark, MarkedText, MarkupError, parse, written

LINE = (
    "#[DRUG#1 Zoloft] took [IND<1?relieved the dread = Anxiety] but [ADE<1,2 no sleep = Insomnia] with "
    "[DRUG#2 adderall]; [ADE?other his rash], [WD<1 zaps]. This is [NONE a headache] \U0001f922"
)


def test_a_line_is_text_without_markup_and_marks_with_their_offsets() -> None:
    marked = parse(LINE)
    assert marked.text == (
        "#Zoloft took the dread but no sleep with adderall; his rash, zaps. This is a headache \U0001f922"
    )
    assert [(marked.text[m.start : m.end], m.label, m.numbers, m.flag, m.term) for m in marked.marks] == [
        ("Zoloft", DRUG, (1,), None, None),
        ("the dread", INDICATION, (1,), "relieved", "Anxiety"),
        ("no sleep", ADE, (1, 2), None, "Insomnia"),
        ("adderall", DRUG, (2,), None, None),
        ("his rash", ADE, (), "other", None),
        ("zaps", WITHDRAWAL, (1,), None, None),
        ("a headache", NONE, (), None, None),
    ]


@pytest.mark.parametrize("line", [LINE, "no mark at all", "[ADE rash]", "5 < 6 = no [DRUG x-1] # ? term"])
def test_what_is_read_is_written_as_it_was(line: str) -> None:
    assert written(parse(line)) == line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a [ADE rash", "bracket"),
        ("a rash] it was", "bracket"),
        ("a [ADE red [ADE rash]]", "bracket"),
        ("a [PAIN rash]", "not a label.*'PAIN'"),
        ("a [ADE<x rash]", "not a label"),
        ("a [ADE]", "no words"),
        ("a [ADE  rash]", "no words"),
        ("a [ADE rash ] x", "no words"),
        ("a [ADE?denied rash]", "no flag 'denied'"),
        ("a [ADE#1 rash] by [DRUG#1 x]", "option that ADE does not have"),
        ("[DRUG?other x]", "option that DRUG does not have"),
        ("[DRUG#1 x] [NONE<1 y]", "option that NONE does not have"),
        ("a [ADE<2 rash] by [DRUG#1 x]", "no medicine has the number 2"),
        ("a [ADE rash =  Rash]", "a term that is empty"),
        ("a [DRUG zoloft = Sertraline]", "a term that is empty or not expected"),
        (" a [ADE rash]", "white space around"),
        ("", "empty"),
    ],
)
def test_a_line_that_is_not_in_the_markup_is_refused(line: str, message: str) -> None:
    with pytest.raises(MarkupError, match=message):
        parse(line)


WORDS = st.text("abc ,.#?<=\U0001f922", min_size=1, max_size=9)


@given(
    st.lists(st.tuples(WORDS, WORDS, st.sampled_from([ADE, WITHDRAWAL, INDICATION]), st.sampled_from(FLAGS)))
)
def test_every_text_with_marks_is_read_as_it_was_written(pieces: list[tuple[str, str, str, str]]) -> None:
    text, marks = "x ", [Mark(0, 1, DRUG, (1,))]
    for between, words, label, flag in pieces:
        text += between
        marks.append(Mark(len(text), len(text) + len(words), label, (1,), flag, "Rash"))
        text += words
    marked = MarkedText(text, tuple(marks))
    sound = text == text.strip() and all(w == w.strip() and " = " not in f"{w} " for _, w, _, _ in pieces)
    if sound:
        assert parse(written(marked)) == marked
    else:
        with pytest.raises(MarkupError):
            written(marked)


def test_marks_that_overlap_cannot_be_written() -> None:
    with pytest.raises(MarkupError, match="cannot express"):
        written(MarkedText("severe rash", (Mark(0, 11, ADE), Mark(7, 11, ADE))))
