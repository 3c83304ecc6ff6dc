"""Readers of the corpora, on small files in the same forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.types import ADE, DRUG, INDICATION, SYMPTOM, WITHDRAWAL
from training.common.corpora import (
    CorpusError,
    GoldCoding,
    GoldMention,
    GoldText,
    hold_out,
    json_lines,
    own_texts,
    read_ade,
    read_ade_abstracts,
    read_ade_fold,
    read_ade_negatives,
    read_negative_abstracts,
    read_psytar,
    read_psytar_codes,
)
from training.evaluation.acronym import read_casi
from training.idiom.data import read_groups
from training.summarization.data import read_mediqa, read_meqsum


def surfaces(text: GoldText) -> list[tuple[str, str]]:
    return [(text.text[m.start : m.end], m.label) for m in text.mentions]


def written(folder: Path, content: str) -> Path:
    path = folder / "some_file.txt"
    path.write_text(content, encoding="utf-8")
    return path


def test_psytar_sentences_are_tokens_joined_by_spaces_with_labels_of_this_project(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "Could\tB-ADR\nnot\tI-ADR\nsleep\tI-ADR\n,\tO\nbrain\tB-WD\nzaps\tI-WD\n\n\n"
        "Took\tO\nit\tO\nfor\tO\nOCD\tB-DI\nand\tO\ncaf\u00e9\tB-SSI\n",
    )
    one, other = read_psytar(path)
    assert one.text == "Could not sleep , brain zaps"
    assert surfaces(one) == [("Could not sleep", ADE), ("brain zaps", WITHDRAWAL)]
    assert other.text == "Took it for OCD and caf\u00e9"
    assert surfaces(other) == [("OCD", INDICATION), ("caf\u00e9", SYMPTOM)]
    assert (one.id, other.id) == ("some_file-0", "some_file-1")
    assert one.relations == ()


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("B-ADR I-ADR O", ["a b"]),
        ("B-ADR B-ADR O", ["a", "b"]),
        ("B-ADR O I-ADR", ["a", "c"]),
        ("I-ADR I-ADR I-ADR", ["a b c"]),
        ("B-ADR I-WD I-WD", ["a", "b c"]),
        ("O O O", []),
    ],
)
def test_psytars_tags_become_mentions(tmp_path: Path, tags: str, wanted: list[str]) -> None:
    lines = [f"{token}\t{tag}" for token, tag in zip("abc", tags.split(), strict=True)]
    (text,) = read_psytar(written(tmp_path, "\n".join(lines)))
    assert [surface for surface, _ in surfaces(text)] == wanted


def test_an_empty_psytar_file_has_no_sentences_and_an_unknown_label_is_refused(tmp_path: Path) -> None:
    assert read_psytar(written(tmp_path, "")) == []
    assert read_psytar(written(tmp_path, "\n \n\n")) == []
    with pytest.raises(CorpusError, match="EF"):
        read_psytar(written(tmp_path, "works\tB-EF\n"))


def test_ade_keeps_overlapping_entities_and_every_relation_as_drug_and_effect(tmp_path: Path) -> None:
    row = {
        "orig_id": 77,
        "tokens": ["Lithium", "toxicity", "after", "caf\u00e9", "lithium", "."],
        "entities": [
            {"type": "Adverse-Effect", "start": 0, "end": 2},
            {"type": "Drug", "start": 0, "end": 1},
            {"type": "Drug", "start": 4, "end": 5},
        ],
        # Whichever of the two is called head.
        "relations": [
            {"type": "Adverse-Effect", "head": 0, "tail": 1},
            {"type": "Adverse-Effect", "head": 2, "tail": 0},
        ],
    }
    (tmp_path / "sentences.json").write_text(json.dumps([row]), encoding="utf-8")
    texts = read_ade(tmp_path)
    assert list(texts) == ["77"]
    text = texts["77"]
    assert text.id == "ade-77"
    assert text.text == "Lithium toxicity after caf\u00e9 lithium ."
    assert surfaces(text) == [("Lithium toxicity", ADE), ("Lithium", DRUG), ("lithium", DRUG)]
    assert text.relations == ((1, 0), (2, 0))


@pytest.mark.parametrize("tag", ["S-ADR", "E-ADR", "L-ADR", "b-ADR"])
def test_a_psytar_tag_of_another_scheme_is_no_begin_of_a_mention(tmp_path: Path, tag: str) -> None:
    with pytest.raises(CorpusError, match=f"'{tag}' begins with neither B nor I"):
        read_psytar(written(tmp_path, f"rash\t{tag}\n"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"entities": [{"type": "Drug", "start": -1, "end": 1}]}, "an entity of the tokens -1 to 1 of 3"),
        ({"entities": [{"type": "Drug", "start": 2, "end": 0}]}, "an entity of the tokens 2 to 0 of 3"),
        ({"entities": [{"type": "Drug", "start": 1, "end": 1}]}, "an entity of the tokens 1 to 1 of 3"),
        ({"entities": [{"type": "Drug", "start": 2, "end": 4}]}, "an entity of the tokens 2 to 4 of 3"),
        ({"relations": [{"head": -1, "tail": 0}]}, "a relation of the entities -1 and 0, "),
        ({"relations": [{"head": 1, "tail": 1}]}, "a relation of the entities 1 and 1, "),
        ({"relations": [{"head": 1, "tail": 2}]}, "a relation of the entities 1 and 2, "),
    ],
)
def test_ade_places_outside_are_refused(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    """A negative place would be one from the end, and an entity with its ends exchanged another one."""
    entities = [{"type": "Drug", "start": 0, "end": 1}, {"type": "Adverse-Effect", "start": 2, "end": 3}]
    row = {"orig_id": 7, "tokens": ["Aspirin", "and", "rash"], "entities": entities, "relations": []}
    path = tmp_path / "sentences.json"
    path.write_text(json.dumps([row | changed]), encoding="utf-8")
    with pytest.raises(CorpusError) as refused:
        read_ade(tmp_path)
    assert str(refused.value).startswith(f"{path}, sentence 7: {said}")


def test_two_ade_sentences_of_one_id_are_refused(tmp_path: Path) -> None:
    row = {"orig_id": 7, "tokens": ["A"], "entities": [], "relations": []}
    (tmp_path / "sentences.json").write_text(json.dumps([row, row]), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"sentences\.json has two sentences 7$"):
        read_ade(tmp_path)


@pytest.mark.parametrize("read", [read_ade_negatives, read_negative_abstracts])
def test_negatives_that_are_not_utf_8_are_refused(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "negatives.txt"
    path.write_bytes(b"1 NEG caf\xe9\n")
    with pytest.raises(CorpusError, match="UnicodeDecodeError"):
        read(path)


def test_a_fold_names_its_training_and_test_sentences(corpus: Path) -> None:
    train, test = read_ade_fold(corpus / "ade", 1)
    assert [t.id for t in train] == [f"ade-{i}" for i in range(16)]
    assert [t.id for t in test] == [f"ade-{i}" for i in range(16, 20)]
    assert surfaces(train[5]) == [("horrid nausea", ADE), ("Aspirin", DRUG)]
    assert all(t.relations == ((1, 0),) for t in train + test)


def test_negatives_are_behind_their_mark_and_codes_without_a_known_name_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, "6460590 NEG Clioquinol intoxication .\n123 NEG A NEG test  \n")
    assert read_ade_negatives(path) == [
        GoldText("neg-0", "Clioquinol intoxication .", ()),
        GoldText("neg-1", "A NEG test", ()),
    ]
    codes = written(
        tmp_path,
        "drug_id,mention,sentence,sider_meddra_terms\r\n"
        'zoloft.12,no sleep,"No sleep, ever.",Insomnia | Sleep disorder |\r\n'
        "lexapro.3,weird,So weird,\r\n"
        "effexor.1,zaps,zaps!, | \r\n",
    )
    assert list(read_psytar_codes(codes)) == [
        GoldCoding("no sleep", "No sleep, ever.", "zoloft", ("Insomnia", "Sleep disorder"))
    ]


@given(st.integers(0, 60), st.floats(0, 1), st.integers(0, 9))
def test_holding_out_splits_without_loss_and_the_same_way_each_time(n: int, share: float, seed: int) -> None:
    texts = [GoldText(str(i), "x", (GoldMention(0, 1, ADE),)) for i in range(n)]
    rest, held = hold_out(texts, share, seed)
    assert len(held) == round(n * share)
    assert sorted(rest + held, key=lambda t: int(t.id)) == texts
    assert hold_out(texts, share, seed) == (rest, held)
    if n > 30 and 0.4 < share < 0.6:
        assert hold_out(texts, share, seed + 1) != (rest, held)


@pytest.mark.parametrize(
    ("read", "name", "text", "found"),
    [
        (read_psytar, "ner_train.conll", "no\tB-ADR\nsleep\n", "not enough values"),
        (read_psytar, "ner_train.conll", "no\tB-OTHER\n", "KeyError: 'OTHER'"),
        (read_ade_negatives, "negatives.txt", "1 NEG A rash .\n\n", "IndexError"),
        (read_psytar_codes, "normalization.csv", "drug_id,mention\na.1,rash\n", "sider_meddra_terms"),
        (
            read_psytar_codes,
            "normalization.csv",
            "drug_id,mention,sider_meddra_terms\na.1\n",
            "AttributeError",
        ),
        (read_casi, "casi_dev.csv", "acronym;expansion;text\nMS;morphine;MS\n", "KeyError: 'acronym_'"),
        (read_groups, "semeval22_train.csv", "ID,sim\n1,1\n", "KeyError: 'Language'"),
        (json_lines, "posts.jsonl", b'{"text": "caf\xe9"}\n', "can't decode byte 0xe9"),
    ],
)
def test_a_file_of_another_form_is_named_with_what_is_wrong_in_one_line(
    read: Callable[[Path], Iterable[object]], name: str, text: str | bytes, found: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CorpusError) as refused:
        list(read(path))
    said = str(refused.value)
    assert said.startswith(f"{path} is not in the form of its corpus: ")
    assert found in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("read", "name"),
    [(lambda data: read_meqsum(data, "train"), "meqsum.jsonl"), (read_mediqa, "mediqa21_val.jsonl")],
)
@pytest.mark.parametrize("line", ['{"id": "1"}', "5", '{"question": "cut off', '["a"]', '{"question": null}'])
def test_questions_of_another_form_are_named_in_one_line(
    read: Callable[[Path], object], name: str, line: str, tmp_path: Path
) -> None:
    (tmp_path / "questions").mkdir()
    path = tmp_path / "questions" / name
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError) as refused:
        read(tmp_path)
    assert str(refused.value).startswith(f"{path} is not in the form of its corpus: ")


def test_sentences_that_are_in_no_abstract_are_counted_without_their_words(tmp_path: Path) -> None:
    rows = [{"tokens": [w], "entities": [], "relations": [], "orig_id": i} for i, w in enumerate("abc")]
    (tmp_path / "sentences.json").write_text(json.dumps(rows), encoding="utf-8")
    path = tmp_path / "DRUG-AE.rel"
    path.write_text("12|a|x\n11|A .|x\n", encoding="utf-8")
    with pytest.raises(CorpusError) as refused:
        read_ade_abstracts(tmp_path)
    assert str(refused.value) == f"{path} lacks 2 of the 3 sentences, ade-1 first"
    path.write_text("12|a|x\n11|A .|x\n7|b|x\n7|c|x\n", encoding="utf-8")
    assert read_ade_abstracts(tmp_path) == {"ade-0": "11", "ade-1": "7", "ade-2": "7"}


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Spreadsheets and Windows write one."""
    path = tmp_path / "file"
    path.write_text("no\tB-ADR\n", encoding="utf-8-sig")
    assert [(t.text, t.mentions) for t in read_psytar(path)] == [("no", (GoldMention(0, 2, ADE),))]
    path.write_text('{"text": "rash"}\n', encoding="utf-8-sig")
    assert list(own_texts(path)) == ["rash"]
    path.write_text(
        "drug_id,mention,sentence,sider_meddra_terms\na.1,rash,A rash.,Rash\n", encoding="utf-8-sig"
    )
    assert list(read_psytar_codes(path)) == [GoldCoding("rash", "A rash.", "a", ("Rash",))]
    path.write_text("acronym_,expansion,text\nMS,morphine,MS was given\n", encoding="utf-8-sig")
    assert [row.gold for row in read_casi(path)] == ["morphine"]
