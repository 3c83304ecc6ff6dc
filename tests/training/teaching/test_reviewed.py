"""What reviewers decided, as training data of the tagger and of normalization."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from models.releases.store import open_release
from models.types import ADE, DRUG, Mention
from streams.codec import encode
from streams.records import Inbound, Review, ReviewedEvent
from streams.reviews.examples import example_lines
from streams.settings import Settings as StreamSettings
from streams.store.follow import Follower
from streams.store.open_database import open_database
from tests.models import tiny
from tests.streams.store.messages import NOON, event, message, report
from tests.training.normalization.small_terms import write_corpus
from tests.training.recipes.runs import made
from training.common.corpora import GoldCoding, GoldMention, own_texts
from training.evaluation.reference import read_texts
from training.ner.data import read
from training.ner.settings import Settings
from training.normalization.data import read as read_codes
from training.teaching.markup import Mark
from training.teaching.reviewed import read_reviewed, reviewed_codings

#: Texts in which the first word is a drug and "felt sick" the event that the models found.
TEXTS = {
    "kept": "zoloft and then i felt sick", "rejected": "zoloft so good i felt sick dance moves",
    "moved": "zoloft and i felt sick to my stomach", "denied": "zoloft but i never felt sick",
    "open": "zoloft and i felt sick again",
}  # fmt: skip
FOUND = ReviewedEvent(
    llt="Nausea", pt="Nausea", soc="Gastrointestinal disorders", negated=False, hypothetical=False,
    other_experiencer=False,
)  # fmt: skip


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of a store with four decisions; the fifth report is not decided."""
    folder = tmp_path_factory.mktemp("reviews")
    database = open_database(StreamSettings(database=str(folder / "x.duckdb")), write=True)
    follower = Follower(StreamSettings(), database)
    places = {}
    for i, (id_, text) in enumerate(TEXTS.items()):
        at = text.index("felt sick")
        places[id_] = at, at + 9
        mentions = (
            Mention(at, at + 9, "felt sick", ADE, 0.9),
            Mention(0, 6, "zoloft", DRUG, 0.9, generic="sertraline"),
        )
        coded = replace(
            report(id_, i, event(), text=text, record_id=f"posts/{id_}/f/normalization@1"), mentions=mentions
        )
        follower.apply([message(i, coded)])
    end = TEXTS["moved"].index("stomach") + len("stomach")
    outcomes: dict[str, dict[str, Any]] = {
        "kept": {"review": "accept"}, "rejected": {"review": "reject"},
        "moved": {"review": "correct", "llt": "Stomach upset", "start": places["moved"][0], "end": end},
        "denied": {"review": "correct", "negated": True},
    }  # fmt: skip
    for sequence, (id_, outcome) in enumerate(outcomes.items()):
        start, end = places[id_]
        decided = Review(
            sequence=sequence, report_id=id_, start=start, end=end, fingerprint="f", reviewer="ann",
            decided_at=NOON, action=outcome["review"], before=FOUND, after=replace(FOUND, **outcome),
        )  # fmt: skip
        follower.apply([Inbound("reviews", 0, sequence, id_.encode(), encode(decided), 0.0)])
    path = folder / "reviews.jsonl"
    path.write_bytes(b"".join(example_lines(database)))
    database.close()
    return path


def spans(id_: str, *words: str) -> list[tuple[int, int]]:
    return [(TEXTS[id_].index(w), TEXTS[id_].index(w) + len(w)) for w in words]


def test_decisions_become_marks(reviews: Path) -> None:
    marked = read_reviewed(reviews)
    assert set(marked) == {f"reviewed-{id_}" for id_ in ("kept", "rejected", "moved", "denied")}
    ((start, end),) = spans("kept", "felt sick")
    drug = Mark(0, 6, DRUG, (1,))
    assert marked["reviewed-kept"].marks == (drug, Mark(start, end, ADE, (1,), None, "Nausea"))
    assert marked["reviewed-denied"].marks[1].flag == "negated"
    assert marked["reviewed-rejected"].marks[1].label == "NONE"


@pytest.mark.parametrize("candidates", [False, True])
def test_the_tagger_learns_texts_and_no_rejected_label(corpus: Path, reviews: Path, candidates: bool) -> None:
    found = read(corpus, Settings(heads=candidates), reviews)["reviewed"]
    labels = {t.id.removeprefix("reviewed-"): [m for m in t.mentions if m.label != DRUG] for t in found.train}
    ((start, end),) = spans("moved", "felt sick to my stomach")
    assert labels["moved"] == [GoldMention(start, end, ADE)]
    assert labels["rejected"] == []
    assert bool(labels["denied"]) == candidates
    assert "open" not in labels and found.valid == []


def test_a_text_of_a_test_part_is_left_out(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    tested = "Since day 13 of zoloft no sleep ."
    rows = [{"id": str(i), "text": text, "marks": []} for i, text in enumerate([tested, "another text"])]
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    assert [t.text for t in read(corpus, Settings(), path)["reviewed"].train] == ["another text"]


def test_a_corrected_code_is_a_pair_if_not_held_out(corpus: Path, reviews: Path, tmp_path: Path) -> None:
    data = write_corpus(tmp_path) / "data"
    codings = reviewed_codings(read_reviewed(reviews))
    words, text = "felt sick to my stomach", TEXTS["moved"]
    pair = GoldCoding(words, text, "zoloft", ("Stomach upset",), text.index(words))
    assert pair in codings and len(codings) == 3
    before, after = read_codes(data), read_codes(data, codings)
    assert pair in after.train and pair not in before.train
    assert (after.valid, after.test) == (before.valid, before.test)
    held = before.test[0]
    again = replace(held, sentence="another sentence")
    assert again not in read_codes(data, [again]).train


@pytest.mark.slow
def test_both_programs_train_with_reviews_and_name_them(corpus: Path, reviews: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    made("ner", data=corpus, output=tmp_path, base=base, epochs=2, batch=4, reviews=reviews)
    folder = write_corpus(tmp_path)
    options: dict[str, Any] = {"epochs": 1, "terms": str(folder / "terms.tsv")}
    made("normalization", data=folder / "data", output=tmp_path, base=base, reviews=reviews, **options)
    for task in ("ner", "normalization"):
        (path,) = (tmp_path / task).iterdir()
        named = [source.name for source in open_release(path).manifest.training_data]
        assert "reports decided by reviewers, 4 texts" in named


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_text_with_a_line_separator_is_one_line(separator: str, tmp_path: Path) -> None:
    text = f"zoloft{separator}i felt sick"
    path = tmp_path / "file.jsonl"
    path.write_bytes(orjson.dumps({"id": "a", "text": text, "marks": []}) + b"\n")
    assert read_reviewed(path)["reviewed-a"].text == text
    assert list(own_texts(path)) == read_texts(path) == [text]


def test_another_file_is_refused_in_one_line(tmp_path: Path) -> None:
    mark = '{"start": 0, "end": 2, "label": "ADE", "flag": null, "term": null, "numbers": []}'
    other = mark.replace("0", "1", 1)
    for line in (
        "no JSON", "{}", '{"id": "a", "text": "b", "marks": [{}]}', "[]", '{"text": "b", "marks": []}',
        '{"id": "a", "text": 5, "marks": []}', '{"id": "a", "text": "\\ud83d", "marks": []}',
        f'{{"id": "a", "text": "abc", "marks": [{mark}, {other.replace("2", "3")}]}}',
    ):  # fmt: skip
        path = tmp_path / "file.jsonl"
        path.write_text(line)
        with pytest.raises(typer.BadParameter, match="line 1"):
            read_reviewed(path)
