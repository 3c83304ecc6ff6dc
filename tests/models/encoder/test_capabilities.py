"""What a base can be used for is found out before it is used, and said in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from models.encoder.capabilities import Need, refusal
from tests.models import tiny
from tests.models.tiny_families import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_read_and_split(family: str, tmp_path: Path) -> None:
    base = FAMILIES[family](tmp_path)
    assert refusal(base, Need(pieces=256)) == ""
    assert refusal(base, Need(below=0)) == refusal(base, Need(above=1)) == ""


@pytest.mark.parametrize(
    ("need", "why"),
    [
        (Need(pieces=512), r"it cannot read 512 pieces at once \(its positions: 300\)"),
        (Need(above=2), "cannot split 2 layers after layer 0"),
        (Need(below=2), "cannot split 2 layers after layer 2"),
    ],
)
def test_what_a_base_cannot_do_is_said_in_one_line(tiny_bert: str, need: Need, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        assert refusal(tiny_bert, need) == ""
    assert "\n" not in refusal(tiny_bert, need)
    assert refusal(tiny_bert, need).startswith(f"{tiny_bert} (of the family bert) cannot be used: ")


def test_a_decoder_is_refused_because_it_reads_from_left_to_right(tiny_roberta: str, tmp_path: Path) -> None:
    shutil.copytree(tiny_roberta, tmp_path, dirs_exist_ok=True)
    vocabulary = json.loads((tmp_path / "config.json").read_bytes())["vocab_size"]
    tiny.library().GPT2Model(
        tiny.library().GPT2Config(vocab_size=vocabulary, n_positions=300, n_embd=32, n_layer=2, n_head=2)
    ).save_pretrained(tmp_path)
    assert "it reads from left to right only" in refusal(str(tmp_path), Need())


def test_a_tokenizer_with_more_pieces_than_the_model_is_refused(tiny_bert: str, tmp_path: Path) -> None:
    tiny.mpnet(tmp_path / "other")
    shutil.copytree(tiny_bert, tmp_path / "base")
    file = tmp_path / "base/tokenizer.json"
    stored = json.loads(file.read_bytes())
    stored["model"]["vocab"]["extra"] = 5000
    file.write_text(json.dumps(stored), encoding="utf-8")
    assert "its tokenizer has pieces above 112" in refusal(str(tmp_path / "base"), Need())


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_without_a_part_of_a_model_is_refused_in_one_line(
    tiny_bert: str, tmp_path: Path, missing: str
) -> None:
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    for file in tmp_path.glob(f"{missing.split('.', maxsplit=1)[0]}*"):
        file.unlink()
    found = refusal(str(tmp_path), Need())
    assert found.startswith(str(tmp_path))
    assert "cannot be used" in found
    assert "\n" not in found
