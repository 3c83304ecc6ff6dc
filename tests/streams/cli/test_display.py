"""How records are printed in the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from models.types import ADE, DRUG, Candidate, Mention, Neighbour, Relation, ShortQuestion
from streams.cli.display import highlighted, render
from streams.cli.terminal import Table
from streams.records import (
    Assignment,
    CodedEvent,
    CodedReport,
    Cursor,
    Lease,
    Report,
    Review,
    Signal,
    SignalDecision,
    SignalStatus,
    Summary,
)
from tests.streams.store.messages import FOUND


def printed(topic: str, *records: Any) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        for record in records:
            console.print(render(topic, record))
    return captured.get()


@pytest.mark.parametrize(
    ("phrase", "shown", "not_shown"),
    [(None, "Sleeplessness", "\u201c"), ("eyes wide open", "\u201ceyes wide open\u201d", "Sleeplessness")],
)
def test_the_best_match_is_a_term_or_a_phrase(phrase: str | None, shown: str, not_shown: str) -> None:
    best = Candidate("Sleeplessness", "Insomnia", "-", 0.9, phrase)
    event = CodedEvent(
        mention=0, drugs=(), drug_evidence="none", llt=best.llt, pt=best.pt, soc=best.soc, score=best.score,
        nil=False, candidates=(best,),
    )  # fmt: skip
    mentions = (Mention(0, 8, "no sleep", ADE, 0.9),)
    line = printed("posts", CodedReport(id="r", text="no sleep", mentions=mentions, events=(event,)))
    assert "Insomnia" in line and shown in line
    assert not_shown not in line


def test_questions_unread_posts_and_positions_are_shown_in_one_line() -> None:
    question = ShortQuestion("Is tea?", "abstractive", 0.5)
    line = printed("questions", Summary(id="q", text="Long.  Is tea bad?", summary=question))
    assert "-> Is tea?  (abstractive)" in line
    line = printed("posts", CodedReport(id="r", text="no puedo dormir", language="es"))
    assert "not read: language es" in line and "no adverse event" not in line
    cursor = Cursor(source="rss/01", position={"etag": "a"}, written_at=datetime(2026, 3, 4, tzinfo=UTC))
    assert printed("cursors", cursor) == 'cursors rss/01 {"etag":"a"}, 2026-03-04 00:00:00\n'


def test_a_relation_is_shown_with_the_three_training_pairs_that_are_nearest_to_it() -> None:
    near = (
        Neighbour("ade-1", 0.01, "methimazole", "agranulocytosis", True, "PubMed 12"),
        Neighbour("teaching-1", 0.02, "aspirin", "rash", False, "No rash\x1b[2J on aspirin."),
        Neighbour("ade-17", 0.12),
        Neighbour("ade-18", 0.13),
    )
    mentions = (Mention(0, 9, "Clozapine", DRUG, 1.0, "clozapine"), Mention(14, 18, "rash", ADE, 1.0))
    record = CodedReport(
        id="r", text="Clozapine and rash", mentions=mentions, relations=(Relation(0, 1, 0.67, near),)
    )
    assert [line.strip() for line in printed("events", record).splitlines()[2:6]] == [
        "clozapine -> rash  0.67",
        "0.99 methimazole -> agranulocytosis, ade-1: PubMed 12",
        "0.98 aspirin -> rash, unrelated, teaching-1: No rash\ufffd[2J on aspirin.",
        "0.88 ade-17",
    ]


def test_nothing_in_a_text_commands_the_terminal_and_mentions_keep_their_places() -> None:
    text = "\x1b]52;c;cGxhbnRlZA==\x07\r\n\x9b2J no sleep"
    start = text.index("no sleep")
    mention = Mention(start, start + 8, "no\x1b[8msleep", ADE, 0.9)
    event = CodedEvent(
        mention=0, drugs=("dr\x1b[2Jug",), drug_evidence="text", llt="L", pt="P", soc="S", score=0.5,
        nil=False, candidates=(),
    )  # fmt: skip
    coded = CodedReport(id="r", text=text, mentions=(mention,), events=(event,))
    records = [
        Report(id="r", text=text),
        coded,
        Summary(id="r", text=text, summary=ShortQuestion("Is \x1b[2J?", "abstractive", 0.5)),
    ]
    assert all(c.isprintable() or c == "\n" for c in printed("posts", *records))
    shown = highlighted(coded)
    assert [shown.plain[span.start : span.end] for span in shown.spans] == ["no sleep"]


def test_signals_reviews_and_leases_are_shown_in_one_line() -> None:
    noon = datetime(2026, 3, 4, 12, tzinfo=UTC)
    place: dict[str, Any] = {"report_id": "[/b]", "start": 3, "end": 9, "fingerprint": "0123abcd"}
    on_signal = SignalDecision(
        sequence=1, drug="[/b]", term="Insomnia", reviewer="ann", decided_at=noon, before=SignalStatus(),
        after=SignalStatus(state="closed"),
    )  # fmt: skip
    shown = {
        "signals": Signal(drug="[/b]", term="Insomnia", level="pt", computed_at=noon, windows={}),
        "reviews": Review(
            **place, sequence=0, reviewer="ann", decided_at=noon, action="accept", before=FOUND, after=FOUND
        ),
        "leases": Lease(**place, holder="x", seconds=60),
    }
    assert printed("reviews", on_signal).strip().startswith("reviews [/b] | Insomnia closed, ann, 2026-03-04")
    given = Assignment(sequence=1, report_id="[/b]", reviewer="ann", decided_at=noon, before="", owner="bob")
    line = "reviews [/b] assigned to bob, ann, 2026-03-04 12:00:00"
    assert printed("reviews", given).strip() == line
    assert [printed(topic, record).strip() for topic, record in shown.items()] == [
        "signals [/b] | Insomnia (pt), 2026-03-04 12:00:00",
        "reviews [/b] 3-9 accept, ann, 2026-03-04 12:00:00",
        "leases [/b] 3-9 60 s",
    ]


def test_a_table_breaks_no_word_where_the_longest_fit_beside_each_other_and_loses_none() -> None:
    cells = ("false_posts_other_person", "0.5000", "0.4000 (every name is an event)", "share of posts " * 9)
    heads = ("score", "value", "baseline", "counted")
    words = (f"{head} {cell}".split() for head, cell in zip(heads, cells, strict=True))
    least = sum(max(map(len, column)) for column in words) + 3 * len(cells) + 1
    for width in (*range(least - 12, least + 40), 1000):
        table = Table(*heads)
        table.add_row(*cells)
        console = Console(width=width)
        with console.capture() as captured:
            console.print(table)
        lines = captured.get().splitlines()
        assert max(map(len, lines)) <= width
        columns = [" ".join(line.split("\u2502")[i + 1].strip() for line in lines[3:-1]) for i in range(4)]
        printed = [column.split() for column in columns]
        if width >= least:
            assert printed == [cell.split() for cell in cells]
        assert ["".join(words) for words in printed] == ["".join(cell.split()) for cell in cells]
