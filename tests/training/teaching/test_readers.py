"""The markup and the files of the teaching corpus: read, written, refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.types import ADE, DRUG, INDICATION, WITHDRAWAL
from training.common.corpora import GoldCoding, GoldText
from training.teaching import batches
from training.teaching.batches import FOLDER, SUFFIX, AcronymContext, held_out
from training.teaching.markup import FLAGS, NONE, Mark, MarkedText, MarkupError, parse, written
from training.teaching.readers import (
    acronym_contexts,
    codings,
    gold_texts,
    idioms,
    marked_texts,
    own_event,
    phrases,
    questions,
    sample,
)

POSTS = """[DRUG#1 Zoloft] gave me [ADE<1 no sleep = Insomnia] and [WD<1 zaps], my mum [ADE<1?other a rash]

[DRUG#1 advil] took the [IND<1?relieved headache = Headache], no [ADE<1?negated nausea], what a [NONE pain]
[DRUG#1 zoloft] then [DRUG#2 advil], [DRUG#1 zoloft] again: [ADE<1,2 bled]
"""
#: Names by the part that they are in.
TRAIN, HELD_OUT = "posts_1.txt", "posts_5.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus with a file of posts in each part, a file of questions and one of phrases."""
    for kind in SUFFIX:
        (tmp_path / kind).mkdir()
    (tmp_path / "posts" / TRAIN).write_text(POSTS, encoding="utf-8")
    (tmp_path / "posts" / HELD_OUT).write_text("kept\n", encoding="utf-8")
    (tmp_path / "questions/questions_1.jsonl").write_text(
        '{"question": "Is it so?", "summary": "So?", "kind": "other"}\n', encoding="utf-8"
    )
    (tmp_path / "phrases/phrases_1.tsv").write_text("Insomnia\tlying awake\n", encoding="utf-8")
    (tmp_path / "acronyms/acronyms_1.tsv").write_text(
        "RA\tright atrium\tThe RA was large.\n", encoding="utf-8"
    )
    (tmp_path / "idioms/idioms_1.tsv").write_text(
        "cold feet\tchilly toes\tI got [cold feet = afraid].\t[Cold feet = Fear] again!\t"
        "A rug for [cold feet].\t-\n",
        encoding="utf-8",
    )
    return tmp_path


def surfaces(text: GoldText) -> list[tuple[str, str]]:
    return [(text.text[m.start : m.end], m.label) for m in text.mentions]


def test_mentions_are_what_a_text_affirms_or_flags_of_the_labels_that_are_asked_for(folder: Path) -> None:
    one, other, third = gold_texts("posts", "train", folder=folder)
    assert one.text == "Zoloft gave me no sleep and zaps, my mum a rash"
    assert surfaces(one) == [("Zoloft", DRUG), ("no sleep", ADE), ("zaps", WITHDRAWAL)]
    assert surfaces(other) == [("advil", DRUG), ("headache", INDICATION)]
    assert (one.relations, other.relations, third.relations) == (((0, 1),), (), ((0, 3), (1, 3), (2, 3)))
    assert [t.id for t in (one, other)] == ["teaching-posts_1-1", "teaching-posts_1-3"]
    flagged, relieved, _ = gold_texts("posts", "train", candidates=True, folder=folder)
    assert surfaces(flagged)[3:] == [("a rash", ADE)]
    assert surfaces(relieved) == [("advil", DRUG), ("headache", INDICATION), ("nausea", ADE)]
    assert flagged.relations == ((0, 1), (0, 3))
    texts = gold_texts("posts", "train", labels=(DRUG, ADE), folder=folder)
    assert [label for t in texts for _, label in surfaces(t)] == [DRUG, ADE, DRUG, DRUG, DRUG, DRUG, ADE]
    assert texts[0].relations == ((0, 1),)
    assert [own_event(m) for _, m in marked_texts("posts", "train", folder)] == [True, False, True]


def test_acronyms_questions_phrases_codings_and_idioms_are_read(folder: Path) -> None:
    (context,) = acronym_contexts("train", folder)
    assert context == AcronymContext("RA", "right atrium", "The RA was large.")
    assert acronym_contexts("held_out", folder) == []
    ((id_, question),) = questions("train", folder)
    assert (id_, question.question, question.summary) == ("teaching-questions_1-1", "Is it so?", "So?")
    assert phrases("train", folder) == (GoldCoding("lying awake", "lying awake", "", ("Insomnia",)),)
    first, second = codings("posts", "train", folder)
    text = "Zoloft gave me no sleep and zaps, my mum a rash"
    assert first == GoldCoding("no sleep", text, "zoloft", ("Insomnia",), 15)
    assert (second.mention, second.drug, second.terms) == ("headache", "advil", ("Headache",))
    (idiom,) = idioms("train", folder)
    assert idioms("held_out", folder) == []
    assert (idiom.expression, idiom.gloss) == ("cold feet", "chilly toes")
    assert idiom.texts() == ["I got cold feet.", "Cold feet again!", "A rug for cold feet."]
    assert [use.put(meaning) for use, meaning in idiom.figurative] == ["I got afraid.", "Fear again!"]
    (use,) = idiom.literal
    assert use.put(idiom.gloss) == "A rug for chilly toes."


def test_a_file_is_as_a_whole_in_training_or_held_out(folder: Path) -> None:
    assert [t.text for t in gold_texts("posts", "held_out", folder=folder)] == ["kept"]
    parts = [{t.id for t in gold_texts("posts", part, folder=folder)} for part in ("train", "held_out")]
    assert not parts[0] & parts[1]
    assert len(parts[0] | parts[1]) == len(list(batches.lines("posts", None, folder)))


@pytest.mark.parametrize(
    ("kind", "name", "content", "message"),
    [
        ("posts", "posts_1.txt", "fine\n[ADE x\n", "posts_1.txt, line 2: a bracket"),
        ("questions", "questions_1.jsonl", "[]\n", "line 1: not an object with question"),
        ("questions", "questions_1.jsonl", '{"question": "a", "summary": "b", "kind": "c"}', "no kind 'c'"),
        ("questions", "questions_1.jsonl", '{"question": "a", "summary": " ", "kind": "other"}', "an empty"),
        ("phrases", "phrases_1.tsv", "Rash\n", "phrases_1.tsv, line 1: not a preferred term and a phrase"),
        ("phrases", "phrases_1.tsv", "Rash\tred\tskin\n", "separated by one tab"),
    ],
)
def test_an_error_names_the_file_and_the_line(
    tmp_path: Path, kind: batches.Kind, name: str, content: str, message: str
) -> None:
    (tmp_path / kind).mkdir()
    (tmp_path / kind / name).write_text(content, encoding="utf-8")
    with pytest.raises(MarkupError, match=message):
        if kind == "posts":
            gold_texts("posts", "train", folder=tmp_path)
        elif kind == "questions":
            questions("train", tmp_path)
        else:
            phrases("train", tmp_path)


def test_a_share_is_a_part_of_a_larger_one_and_no_name_changes_its_part() -> None:
    texts = [GoldText(str(i), "x", ()) for i in range(40)]
    quarter, half = sample(texts, 0.25, 7), sample(texts, 0.5, 7)
    assert (len(quarter), half[:10]) == (10, quarter)
    assert (sample(texts, 0.0, 7), len(sample(texts, 1.0, 7))) == ([], 40)
    kept = [name for name in (f"posts_{i}.txt" for i in range(2000)) if held_out(name)]
    assert 150 < len(kept) < 250
    assert [held_out(name) for name in (TRAIN, HELD_OUT)] == [False, True]


def test_the_corpus_is_read_in_both_parts() -> None:
    train, held = (gold_texts("posts", part) for part in ("train", "held_out"))
    assert len(train) > 4 * len(held) * 0.8 > 0
    assert len(gold_texts("clinical", "train")) > 200
    assert any(t.relations for t in gold_texts("clinical", "train"))
    assert len(questions("train")) > 100
    assert all((FOLDER / kind).is_dir() for kind in SUFFIX)


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
        ("a [ADE?wanted sleep]", "no flag 'wanted' of ADE"),
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
    if sound and all(flag != "wanted" or label == INDICATION for *_, label, flag in pieces):
        assert parse(written(marked)) == marked
    else:
        with pytest.raises(MarkupError):
            written(marked)


def test_marks_that_overlap_cannot_be_written() -> None:
    with pytest.raises(MarkupError, match="cannot express"):
        written(MarkedText("severe rash", (Mark(0, 11, ADE), Mark(7, 11, ADE))))
