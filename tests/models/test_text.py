"""Words and sentences of any text: offsets within the text, and only white space outside of the spans."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.rules.sentences import sentences, whole_sentences
from models.text import MOST_MARKS, PlacedWords, word_texts, words, words_to_read
from models.types import Span

# Random text rarely has full stops before spaces, so half of the examples consist of sentence ends.
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            [*".!?\"')]( \n\r\t\0aD", "Dr", "e.g", "no", "pain", "\U0001f600", "e\u0301", "\u00a0"]
        ),
        max_size=60,
    ).map("".join),
)
SETTINGS = settings(deadline=None, max_examples=200)


def strings(text: str, spans: list[Span]) -> list[str]:
    return [text[s.start : s.end] for s in spans]


def outside(text: str, spans: list[Span]) -> str:
    """The characters of the text that are in no span; the spans are in order."""
    edges = [0, *(e for s in spans for e in (s.start, s.end)), len(text)]
    return "".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


def in_order_and_inside(text: str, spans: list[Span]) -> bool:
    return all(s.end <= len(text) for s in spans) and all(a.end <= b.start for a, b in pairwise(spans))


@SETTINGS
@given(TEXTS)
@example("\0")
@example("\U0001f468\u200d\U0001f469\u200d\U0001f467 ok")
def test_words_are_in_order_and_contain_all_but_white_space(text: str) -> None:
    spans = words(text)
    assert in_order_and_inside(text, spans)
    assert outside(text, spans).strip() == ""
    assert not any(c.isspace() for word in strings(text, spans) for c in word)


@SETTINGS
@given(TEXTS)
@example("Dr.\r\n")
@example("a. " * 5)
def test_sentences_are_in_order_trimmed_and_contain_all_but_white_space(text: str) -> None:
    spans = sentences(text)
    assert in_order_and_inside(text, spans)
    assert outside(text, spans).strip() == ""
    assert all(piece == piece.strip() for piece in strings(text, spans))


@SETTINGS
@given(TEXTS)
def test_the_words_of_the_sentences_are_the_words_of_the_text(text: str) -> None:
    by_sentence = [
        Span(s.start + w.start, s.start + w.end)
        for s in sentences(text)
        for w in words(text[s.start : s.end])
    ]
    assert by_sentence == words(text)


@SETTINGS
@given(TEXTS, st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_placed_words_are_those_of_the_text(text: str, first: int, start: int, length: int) -> None:
    spans, placed, span = words(text), PlacedWords.of(text), Span(start, start + length)
    assert placed == PlacedWords.of(text, spans)
    assert (placed.starts, placed.ends) == ([s.start for s in spans], [s.end for s in spans])
    assert placed.texts == strings(text, spans) == word_texts(text)
    assert placed.part(first, first + 2) == PlacedWords.of(text, spans[first : first + 2])
    inside = [i for i, s in enumerate(spans) if s.start < span.end and span.start < s.end]
    assert list(placed.overlapping(span)) == inside
    both = placed.part(0, 2)
    both.add(placed.part(2, len(spans)))
    assert both == placed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("I can't sleep.", ["I", "can", "'", "t", "sleep", "."]),
        ("5-FU (100mg)", ["5", "-", "FU", "(", "100mg", ")"]),
        ("caf\u00e9 \u2014 na\u00efve", ["caf\u00e9", "\u2014", "na\u00efve"]),
        ("\u75db\u307f \U0001f600\U0001f600", ["\u75db\u307f", "\U0001f600", "\U0001f600"]),
        ("a\0b", ["a", "\0", "b"]),
    ],
)
def test_words_are_runs_of_letters_and_single_marks(text: str, expected: list[str]) -> None:
    assert strings(text, words(text)) == word_texts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Seen by Dr. Lee on Mon. Then home.", ["Seen by Dr. Lee on Mon.", "Then home."]),
        ("NSAIDs, e.g. ibuprofen, i.e. pills. Done.", ["NSAIDs, e.g. ibuprofen, i.e. pills.", "Done."]),
        ("Lee J. et al. saw it. So did we.", ["Lee J. et al. saw it.", "So did we."]),
        ("Approx. 5 mg vs. 10 mg.", ["Approx. 5 mg vs. 10 mg."]),
        ("Prozac 20 mg. daily made me sick.", ["Prozac 20 mg. daily made me sick."]),
        ("I take 20mg. it helps. I sleep", ["I take 20mg.", "it helps.", "I sleep"]),
        ("A 4 cm. cyst, 6 wks. ago. Pain", ["A 4 cm. cyst, 6 wks. ago.", "Pain"]),
        ("it took 3 hrs. mom slept", ["it took 3 hrs.", "mom slept"]),
        ("Pt. c/o pain. pt. has fever", ["Pt. c/o pain.", "pt. has fever"]),
        ("In Jan. 2019. In Dec. of 2020.", ["In Jan. 2019.", "In Dec. of 2020."]),
        ("Vit. D by Prof. Lee.", ["Vit. D by Prof. Lee."]),
        ("Room No. 3. Pain? No. Headaches!", ["Room No. 3.", "Pain?", "No.", "Headaches!"]),
        ("I have MS. Ms. Lee too.", ["I have MS.", "Ms. Lee too."]),
        ("Seen by Dr.\nThen home.", ["Seen by Dr.", "Then home."]),
        ("first line\n\n  second line\r\nthird", ["first line", "second line", "third"]),
        ('He said "stop." Then he stopped.', ['He said "stop."', "Then he stopped."]),
        ("(It hurt.) It hurt more.", ["(It hurt.)", "It hurt more."]),
        ("Took 2.5 mg at 3.30 daily.", ["Took 2.5 mg at 3.30 daily."]),
        ("It hurt... a lot.", ["It hurt...", "a lot."]),
        ("sick \U0001f922. tired \U0001f634!", ["sick \U0001f922.", "tired \U0001f634!"]),
    ],
)
def test_sentences_end_at_marks_and_lines_not_after_abbreviations(text: str, expected: list[str]) -> None:
    assert strings(text, sentences(text)) == expected


LINE = "He was started on trimethoprim-sulfamethoxazole for a urinary"
LISTED = "metoprolol succinate 50 mg tablet by mouth once daily with food"
DENIED = "denies any chest pain, shortness of breath, fever or chills"
DOSE = "metformin 500 mg twice a day with meals and after breakfast"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{LINE}\ninfection. Then\nhome.", [f"{LINE}\ninfection.", "Then", "home."]),
        (f"{LINE}\r\n  tract and\ngot fever", [f"{LINE}\r\n  tract and", "got fever"]),
        (f"It hurt. {LINE}\n{LINE.lower()}\ntract.", ["It hurt.", f"{LINE}\n{LINE.lower()}\ntract."]),
        (f"{LINE}\n\ninfection", [LINE, "infection"]),
        (f"{LINE}\nInfection", [LINE, "Infection"]),
        (f"{LINE}:\ninfection", [f"{LINE}:", "infection"]),
        (f"{LISTED}\n2. lisinopril", [LISTED, "2.", "lisinopril"]),
        (f"{DENIED}\nreports rash", [DENIED, "reports rash"]),
        (f"{DENIED}\nor rash", [f"{DENIED}\nor rash"]),
        (f"{DOSE}\naspirin 81 mg", [DOSE, "aspirin 81 mg"]),
        (f"{LINE} and\naspirin 81 mg", [f"{LINE} and\naspirin 81 mg"]),
        ("", []),
    ],
)
def test_a_sentence_that_was_cut_for_the_length_of_its_line_is_one(text: str, expected: list[str]) -> None:
    assert strings(text, whole_sentences(text)) == expected


def test_offsets_count_code_points_and_of_marks_in_a_row_the_first_are_read() -> None:
    text = "\U0001f922\U0001f922 after Zoloft. Never again."
    assert text.index("Zoloft") == 9
    assert Span(9, 15) in words(text)
    assert sentences(text) == [Span(0, 16), Span(17, 29)]
    # 100,000 of them took a worker of relation a minute, and one of summarization nearly two.
    faces = "\U0001f600?" * 9
    marks = f"ok{'.' * 50} then{faces} end"
    assert words_to_read("a, b (c).") == words("a, b (c).")
    read = [marks[s.start : s.end] for s in words_to_read(marks)]
    assert read == ["ok", *"." * MOST_MARKS, "then", *faces, "end"]
    assert words_to_read(marks, Span(0, 6)) == words(marks, Span(0, 6))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 2), (-1, 4)])
def test_an_empty_or_negative_span_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="empty or negative"):
        Span(start, end)
