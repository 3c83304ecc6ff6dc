"""What is stated beside a text of the teaching corpus, and the texts that begin with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.ner.sentences import stated_before
from models.types import ADE, DRUG, INDICATION, Stated
from training.common.corpora import CorpusError
from training.teaching.batches import MARKED
from training.teaching.markup import Mark, MarkedText, parse
from training.teaching.readers import marked_texts
from training.teaching.stated import stated_texts, with_stated

STATED = Stated(("zoloft",), "low mood")


def test_every_row_is_of_a_text_that_is_there() -> None:
    known = {id_ for kind in MARKED for id_, _ in marked_texts(kind, "train")}
    rows = stated_texts()
    assert rows.keys() <= known
    assert len(rows) > 1000
    assert all(s.drugs and s.indication for s in rows.values())


@pytest.mark.parametrize("line", ["posts_1-1\tzoloft", "posts_1-1\tzoloft\t ", "posts_1-1\ta\tb\tc", ""])
def test_a_row_of_another_form_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "stated.tsv"
    path.write_text(f"posts_1-1\tzoloft\tlow mood\n{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="line 2"):
        stated_texts(path)


@pytest.mark.parametrize(
    ("line", "stated", "marks"),
    [
        ("a [ADE rash]", STATED, [("zoloft", DRUG, ()), ("low mood", INDICATION, ()), ("rash", ADE, ())]),
        (
            "[DRUG#2 Zoloft] and a [ADE<2 rash]",
            STATED,
            [
                ("zoloft", DRUG, (2,)),
                ("low mood", INDICATION, (2,)),
                ("Zoloft", DRUG, (2,)),
                ("rash", ADE, (2,)),
            ],
        ),
        ("fine", Stated(("zoloft", "aspirin")), [("zoloft", DRUG, ()), ("aspirin", DRUG, ())]),
        ("fine", Stated((), "flu"), [("flu", INDICATION, ())]),
        ("a [ADE rash]", Stated(), [("rash", ADE, ())]),
    ],
)
def test_a_text_begins_with_what_is_stated(
    line: str, stated: Stated, marks: list[tuple[str, str, tuple[int, ...]]]
) -> None:
    made = with_stated(parse(line), stated)
    assert made.text == stated_before(stated) + parse(line).text
    assert [(made.text[m.start : m.end], m.label, m.numbers) for m in made.marks] == marks


def test_flags_and_terms_are_kept() -> None:
    marked = MarkedText("no rash", (Mark(3, 7, ADE, (), "negated", "Rash"),))
    *_, last = with_stated(marked, STATED).marks
    assert (last.flag, last.term) == ("negated", "Rash")
