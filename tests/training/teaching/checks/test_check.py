"""The check of the teaching corpus."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from models.drugs import DrugLexicon
from training.common import UserError
from training.teaching.__main__ import main
from training.teaching.batches import SUFFIX
from training.teaching.checks import evaluation_texts
from training.teaching.checks.check import findings, read
from training.teaching.checks.personal import personal_data

APP = typer.Typer()
APP.command()(main)
IN_TREE = evaluation_texts.IN_TREE
CHALLENGE = Path(__file__).parents[3] / "data/challenge/posts.jsonl"
IDIOM = (
    "in a pickle\tinside a gherkin\tMy aunt was [in a pickle = in trouble] over the rent.\t"
    "ugh [in a pickle = stuck] again\tThere is a seed [in a pickle] like this.\t-"
)
POST = "Third night on [DRUG#1 zoloft] and I was [ADE<1 awake til dawn = Insomnia] counting cracks"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with one post, phrase, idiom and sentence with an acronym; no evaluation texts beside it."""
    monkeypatch.setattr(evaluation_texts, "IN_TREE", ())
    for kind in SUFFIX:
        (tmp_path / "corpus" / kind).mkdir(parents=True)
    add(tmp_path / "corpus", "posts/posts_1.txt", POST)
    add(tmp_path / "corpus", "acronyms/acronyms_1.tsv", "RA\tright atrium\tA large RA was seen on echo.")
    add(tmp_path / "corpus", "idioms/idioms_1.tsv", IDIOM)
    add(tmp_path / "corpus", "phrases/phrases_1.tsv", "Insomnia\tstaring at the ceiling till dawn")
    return tmp_path / "corpus"


def add(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def told(folder: Path, data: Path | None = None) -> list[str]:
    return [str(f) for f in findings(read(folder), data)]


def test_nothing_is_wrong_with_a_sound_corpus(folder: Path) -> None:
    assert told(folder) == []


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("posts/posts_2.txt", "a [ADE rash", "posts_2.txt, line 1: a bracket that opens or closes no mark"),
        ("posts/posts_2.txt", "so [ADE itchy = Itchyness]", "line 1: no preferred term 'Itchyness'"),
        ("posts/posts_2.txt", "two [DRUG epipen]s a year", "a mark that cuts a word: 'epipen'"),
        ("posts/posts_2.txt", "write to jane.doe@mail.com", "an e-mail address: jane.doe@mail.com"),
        (
            "posts/posts_2.txt",
            POST.replace("Third night on", "third NIGHT, on"),
            "the same words as posts_1.txt",
        ),
        (
            "posts/posts_2.txt",
            POST.replace("Third", "Fourth"),
            "a near-duplicate of posts_1.txt, line 1 (Jac",
        ),
        ("clinical/clinical_1.txt", "", ""),
        ("questions/questions_1.jsonl", '{"question": "x", "summary": "y", "kind": "z"}', "no kind 'z'"),
        ("phrases/phrases_2.tsv", "Insomniac\tno shut-eye at all", "no preferred term 'Insomniac'"),
        (
            "phrases/phrases_2.tsv",
            "Fatigue\tStaring at the ceiling till dawn",
            "phrases_1.tsv, line 1, for 'Insomnia'",
        ),
        (
            "phrases/phrases_2.tsv",
            "Insomnia\tstaring at the ceiling, till dawn",
            "line 1: the phrase of phrases_1.tsv",
        ),
        (
            "phrases/phrases_2.tsv",
            "Insomnia\tkeep staring at the ceiling till dawn",
            "nearly the phrase of phrases_1.tsv",
        ),
        ("phrases/phrases_2.tsv", "Insomnia\tinsomnia", "a name of its own term"),
        (
            "acronyms/acronyms_2.tsv",
            "RA\tThe RA was large.",
            "acronyms_2.tsv, line 1: not a short form, a long",
        ),
        ("acronyms/acronyms_2.tsv", "RA\tright atrium\tA RAA, RA and RA.", "'RA' is 2 times in its sentence"),
        (
            "acronyms/acronyms_2.tsv",
            "RA\tright atrium\tThe RA, or Right Atrium.",
            "writes out 'right atrium'",
        ),
        (
            "acronyms/acronyms_2.tsv",
            "RA\tright-atriums\tDilated RA.",
            "spelling of 'right atrium' of acronyms_1",
        ),
        ("phrases/phrases_2.tsv", "Insomnia\tNausea", "a name of 'Nausea'"),
        ("idioms/idioms_2.tsv", "in a jam\tin fruit", "not an expression, a gloss and four sentences"),
        ("idioms/idioms_2.tsv", "a\t\tx [a = b]\tx [a = b]\t-\t-", "an empty cell"),
        ("idioms/idioms_2.tsv", "a\tc\tx [a = b]\tx [a]\t-\t-", "a sentence without exactly one mark"),
        ("idioms/idioms_2.tsv", "a\tc\tx [a = b]\tx [a = b] y [a]\t-\t-", "without exactly one mark"),
        ("idioms/idioms_2.tsv", "a\tc\tx [a = b]\ty [a = b]\t[a = b]\t-", "without exactly one mark"),
        ("idioms/idioms_2.tsv", "in a jam\tin a jam\tx [so = b]\ty [so = b]\t-\t-", "a gloss that repeats"),
        (
            "idioms/idioms_2.tsv",
            "in a jam\tin fruit\tx [Jam = jam]\ty [a = b]\t-\t-",
            "a meaning that repeats",
        ),
        ("idioms/idioms_2.tsv", "In a pickle\tin it\tx [so = b]\ty [so = b]\t-\t-", "the idiom of idioms_1"),
        (
            "idioms/idioms_2.tsv",
            "sour note\tacid tone\tMy aunt was [in a pickle = in a mess] over the rent.\ta [b = c]\t-\t-",
            "the same words as idioms_1.tsv, line 1",
        ),
    ],
)
def test_what_is_wrong_is_found(folder: Path, name: str, line: str, message: str) -> None:
    add(folder, name, line)
    found = told(folder)
    assert len(found) == bool(line)
    assert message in " ".join(found)


def test_phrases_of_opposite_terms_may_be_alike(folder: Path) -> None:
    add(
        folder,
        "phrases/phrases_2.tsv",
        "Weight increased\tgained four stone",
        "Weight decreased\tgone down four stone",
    )
    add(
        folder,
        "phrases/phrases_3.tsv",
        "Weight decreased\tlost four stone",
        "Weight increased\tgot four stone",
    )
    assert told(folder) == []


def test_a_text_of_the_challenge_set_is_found_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_texts, "IN_TREE", IN_TREE)
    text = max((json.loads(line)["text"] for line in CHALLENGE.read_text().splitlines()), key=len)
    add(folder, "posts/posts_2.txt", f"Well {text}")
    (found,) = told(folder)
    assert "line 1: a near-duplicate of posts.jsonl, text " in found
    assert text not in found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("posts.jsonl", json.dumps({"id": 1, "rows": [{"text": "{}"}]})),
        ("deep/rows.json", json.dumps([{"tokens": ["{}"]}])),
        ("rows.csv", 'id,text\n1,"{}"\n'),
        ("ner_test.conll", "{}"),
        ("DRUG-AE.rel", "1|{}|x|0|1"),
        ("negatives.txt", "12 NEG {}"),
        ("rows.tsv", "text\tcode\n{}\t1"),
    ],
)
def test_all_files_of_the_folder_are_compared(folder: Path, tmp_path: Path, name: str, content: str) -> None:
    copied = "third night on zoloft and was awake til dawn counting cracks"
    if name.endswith("conll"):
        content = "\n".join(f"{word}\tO" for word in copied.split())
    elif "tokens" in content:
        content = json.dumps([{"tokens": copied.split()}])
    add(tmp_path / "data", name, content.replace("{}", copied))
    (found,) = told(folder, tmp_path / "data")
    assert f"posts_1.txt, line 1: a near-duplicate of {name}, text " in found


def test_a_file_in_an_unknown_form_is_not_passed_over(folder: Path, tmp_path: Path) -> None:
    add(tmp_path / "data", "posts.parquet", "x")
    code, output = run("--folder", str(folder), "--data", str(tmp_path / "data"))
    assert code == 1
    assert output.endswith("posts.parquet: a file of evaluation data in an unknown form\n"), output


def test_a_phrase_that_is_a_mention_of_a_corpus_is_found(folder: Path, corpus: Path) -> None:
    add(folder, "phrases/phrases_2.tsv", "Nausea\tHorrid nausea")
    found = told(folder, corpus)
    names = set(evaluation_texts.mentions(corpus))
    assert {("ade", "horrid nausea"), ("ner_dev.conll", "no sleep")} <= names
    assert [f for f in found if "a mention in ade" in f], found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("call 212-867-5309 now", "a telephone number: 212-867-5309"),
        ("call +44 20 7946 0958", "a telephone number: +44 20 7946 0958"),
        ("see https://rx.shop/buy", "a web address: https://rx.shop/buy"),
        ("cheap at rxshop.com", "a web address: rxshop.com"),
        ("thanks @jane_doe", "a handle that may be real: @jane_doe (use @user and a number)"),
        ("in 2019-2021, 20-40 mg, 10 000 U/L, 1-800 mg", None),
        ("see http://pillz.example @user12 @xanax_user3 @ozempic", None),
    ],
)
def test_personal_data_is_found_and_plain_numbers_are_not(text: str, found: str | None) -> None:
    assert list(personal_data(text, DrugLexicon.load())) == ([found] if found else [])


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(APP, arguments)
    said = f"error: {result.exception}\n" if isinstance(result.exception, UserError) else ""
    return result.exit_code, result.output + said


def test_the_check_prints_its_findings_and_fails_on_one(folder: Path, tmp_path: Path) -> None:
    assert run("--folder", str(folder)) == (0, "0 findings\n")
    add(folder, "posts/posts_2.txt", "a [ADE rash")
    code, output = run("--folder", str(folder))
    assert code == 1
    assert output.endswith("closes no mark\n1 findings\n")
    (tmp_path / "none").mkdir()
    assert run("--folder", str(tmp_path / "none")) == (1, f"error: no texts in {tmp_path / 'none'}\n")
    assert run("--folder", str(tmp_path / "nowhere"))[0] == 2


def test_a_line_that_repeats_one_of_another_kind_is_found(folder: Path) -> None:
    asked = "Can I drink two cups of black coffee while I take zoloft every morning?"
    row = {"question": asked, "summary": "Can I drink coffee with zoloft?", "kind": "interaction"}
    add(folder, "questions/questions_1.jsonl", json.dumps(row))
    add(folder, "posts/posts_7.txt", asked.replace("zoloft", "[DRUG zoloft]"), f"hi all! {asked}")
    assert len({line.partition(": ")[0] for line in told(folder)}) == 2


def test_a_byte_order_mark_is_no_part_of_the_first_text_of_a_file(folder: Path) -> None:
    lines = b"\xef\xbb\xbf[DRUG#1 advil] again\r\nso [ADE sick] of it all\r\n"
    (folder / "posts/posts_8.txt").write_bytes(lines)
    (marked,) = [m for line, m in read(folder).marked.items() if line.place == "posts_8.txt, line 1"]
    assert marked.text == "advil again"


@pytest.mark.parametrize("place", ["posts/posts_7.txt", "data/a.json", "data/a.csv", "data/a.txt"])
def test_a_file_that_is_not_in_utf_8_is_named_in_one_line(folder: Path, place: str) -> None:
    add(folder, place).write_bytes(b'["the caf\xe9 was closed"]')
    code, output = run("--folder", str(folder), "--data", str(folder / place.partition("/")[0]))
    assert code == 1
    said = f"error: {folder / place} is not in the form of its corpus: Unicode"
    assert output.splitlines()[-1].startswith(said)


@pytest.mark.slow
def test_the_corpus_is_sound_and_shares_nothing_with_the_public_corpora() -> None:
    """They are sought in PV_TEST_DATA, in `data`, and in `shared/data` next to the checkout. Skipped without
    them, after the corpus was found sound by itself.
    """
    root = Path(__file__).parents[4]
    named = os.environ.get("PV_TEST_DATA")
    folders = [Path(named)] if named else [root / "data", root.parent / "shared/data"]
    data = next((f for f in folders if f.is_dir()), None)
    code, output = run(*(("--data", str(data)) if data else ()))
    assert code == 0, output
    if data is None:
        pytest.skip(f"sound by itself; no public corpora in {' or '.join(map(str, folders))}")
