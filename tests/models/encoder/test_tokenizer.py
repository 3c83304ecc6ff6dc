"""The tokenizer of inference gives the pieces, words and offsets of transformers' tokenizer."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken

from models.encoder.base_files import resolve_base
from models.encoder.model import Encoder
from models.encoder.tokenizer import WordPieceTokenizer, load_wordpiece
from models.encoder.weights import load_tokenizer
from models.once import once
from streams.cli.demo.run import samples

OPTIONS = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
TEXTS = [
    "I\u2019m on 20mg Z\u00fcrich-Pill\u2026 \U0001f922\U0001f922 \u75db\u307f \0 \u200b [SEP] [MASK]x ##ing",
    "",
    " ",
    "x" * 500,
    "na\u0308usea \ufb01ne \u0130stanbul e\u0301",
]


@pytest.fixture(scope="module")
def own() -> WordPieceTokenizer:
    tokenizer = load_wordpiece(Path(resolve_base("mini")))
    assert tokenizer is not None
    return tokenizer


@once
def theirs() -> Any:
    """The tokenizer of transformers."""
    return load_tokenizer("mini")


def assert_equal(own: WordPieceTokenizer, texts: list[str]) -> None:
    ours, expected = own(texts, **OPTIONS), theirs()(texts, **OPTIONS)
    assert ours["input_ids"] == expected["input_ids"]
    assert ours["offset_mapping"] == expected["offset_mapping"]


def test_texts_have_the_pieces_of_transformers(own: WordPieceTokenizer) -> None:
    lines = [json.loads(line)["text"] for p in samples().values() for line in p.read_text().splitlines()]
    assert_equal(own, [*TEXTS, *lines])
    assert (len(own), own.cls_token_id, own.unk_token_id) == (len(theirs()), 101, 100)


@settings(max_examples=60)
@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_text_has_the_pieces_of_transformers(own: WordPieceTokenizer, texts: list[str]) -> None:
    assert_equal(own, texts)


@settings(max_examples=60)
@given(st.lists(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5), min_size=1, max_size=3))
def test_words_have_the_pieces_of_transformers(own: WordPieceTokenizer, texts: list[list[str]]) -> None:
    expected = theirs()(texts, is_split_into_words=True, add_special_tokens=False)
    pieces = own.of_words({word for text in texts for word in text})
    numbered = [[(n, i) for i, word in enumerate(text) for n in pieces[word]] for text in texts]
    for i, text in enumerate(numbered):
        assert text == list(zip(expected["input_ids"][i], expected.word_ids(i), strict=True))


def test_few_pieces_of_words_are_kept(own: WordPieceTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.encoder.tokenizer.KEPT_WORDS", 2)
    other = copy.deepcopy(own)
    first = dict(other.of_words({"nausea", "akathisia", "and"}))
    assert first == {w: own.of_words({w})[w] for w in first}
    assert other.of_words({"rash"}).keys() == {"rash"}
    assert other.of_words({"rash"}) is other.of_words({"and"}), "the pieces are kept"


def test_encoders_of_a_base_share_its_tokenizer(own: WordPieceTokenizer) -> None:
    assert all(Encoder.for_inference("mini", max_pieces=n).tokenizer is own for n in (16, 128))


def test_an_added_token_is_one_piece_of_this_tokenizer_only(own: WordPieceTokenizer) -> None:
    other = copy.deepcopy(own)
    assert other.add_tokens([AddedToken("IDbigfishID", normalized=False, special=False)]) == 1
    assert other(["a IDbigfishID"])["input_ids"] == [[1037, len(own)]]
    assert len(other) == len(own) + 1
    assert len(own(["IDbigfishID"])["input_ids"][0]) > 1


@pytest.mark.parametrize("setting", [{"do_lower_case": False}, {"cls_token": "<s>"}, None])
def test_another_tokenizer_is_left_to_transformers(setting: dict[str, object] | None, tmp_path: Path) -> None:
    shutil.copytree(resolve_base("mini"), tmp_path / "base", ignore=lambda *_: ["model.safetensors"])
    path = tmp_path / "base" / "tokenizer_config.json"
    if setting is None:
        path.unlink()
    else:
        path.write_text(json.dumps(json.loads(path.read_bytes()) | setting))
    assert load_wordpiece(tmp_path / "base") is None
