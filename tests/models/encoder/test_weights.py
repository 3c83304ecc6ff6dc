"""Weights of a base model: their files, adapters that fit, and what a base can be used for."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.encoder.base_files import base_digest, has_safetensors, weight_files
from models.encoder.capabilities import Need, refusal
from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from tests.models import tiny
from tests.models.tiny_families import FAMILIES


def test_encoders_share_a_base_and_bases_differ_by_digest(tiny_bert: str, tiny_roberta: str) -> None:
    assert Encoder.load(tiny_bert).model is Encoder.load(tiny_bert, max_pieces=16).model
    assert len(base_digest("mini")) == 64
    assert len({base_digest("mini"), base_digest(tiny_bert), base_digest(tiny_roberta)}) == 3


def layers() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 5))


def values(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.state_dict())


def test_merging_adds_b_times_a_to_the_weights_of_the_named_layers_only() -> None:
    model, before = layers(), values(layers())
    a, b = torch.randn(2, 3).half(), torch.randn(5, 2).half()
    merge_adapter(model, {"2.lora_a": a, "2.lora_b": b})
    after = values(model)
    assert torch.allclose(after["2.weight"], before["2.weight"] + b.float() @ a.float())
    assert [name for name in before if not torch.equal(before[name], after[name])] == ["2.weight"]


Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]
PAIR = {"0.lora_a": torch.ones(2, 4), "0.lora_b": torch.ones(3, 2)}
DELTA = {"2.weight.delta": torch.ones(5, 3, dtype=torch.int8), "2.weight.scale": torch.ones(5)}


@pytest.mark.parametrize(
    ("change", "message", "fitting"),
    [
        (lambda t: {"0.lora_a": t["0.lora_a"]}, "pairs", PAIR),
        (lambda t: t | {"2.lora_a": torch.ones(2, 3)}, "pairs", PAIR),
        (lambda t: t | {"0.bias": torch.ones(3)}, "pairs", PAIR),
        (lambda t: t | {"0.other": torch.ones(3, 2)}, "adapter", PAIR),
        (lambda t: {"0.lora_a": torch.ones(4), "0.lora_b": torch.ones(3)}, "adapter", PAIR),
        (lambda t: {n.replace("0.", "7."): v for n, v in t.items()}, "no linear layer", PAIR),
        (lambda t: {n.replace("0.", "1."): v for n, v in t.items()}, "no linear layer", PAIR),
        (lambda t: t | {"0.lora_a": torch.ones(2, 5)}, "shapes", PAIR),
        (lambda t: t | {"0.lora_b": torch.ones(5, 2)}, "shapes", PAIR),
        (lambda t: t | {"0.lora_b": torch.ones(3, 4)}, "shapes", PAIR),
        (lambda t: {n: v.T for n, v in t.items()}, "shapes", PAIR),
        (lambda t: {"2.weight.delta": t["2.weight.delta"]}, "a scale", DELTA),
        (lambda t: {"2.weight.scale": t["2.weight.scale"]}, "a scale", DELTA),
        (lambda t: t | {"1.bias.delta": torch.zeros(3), "1.bias.scale": torch.ones(3)}, "a scale", DELTA),
        (lambda t: {n.replace("2.", "7."): v for n, v in t.items()}, "no parameter", DELTA),
        (lambda t: t | {"2.weight.scale": torch.ones(3)}, "shapes", DELTA),
        (lambda t: t | {"2.weight.delta": torch.ones(3, 5, dtype=torch.int8)}, "shapes", DELTA),
    ],
)
def test_a_change_that_does_not_fit_the_model_is_refused(
    change: Change, message: str, fitting: dict[str, Tensor]
) -> None:
    merge_adapter(layers(), fitting)
    with pytest.raises(ValueError, match=message):
        merge_adapter(layers(), change(fitting))


def test_deltas_are_added_row_by_row_and_beside_low_rank_pairs() -> None:
    model, before = layers(), values(layers())
    steps, scale = torch.tensor([[1, -127, 0]] * 5, dtype=torch.int8), torch.tensor([0.5, 1, 2, 0, 4]).half()
    a, b = torch.randn(2, 3).half(), torch.randn(5, 2).half()
    norm = torch.tensor([1.0, 0.0, -1.0]).half()
    delta = {"2.weight.delta": steps, "2.weight.scale": scale, "1.bias.delta": norm}
    merge_adapter(model, delta | {"2.lora_a": a, "2.lora_b": b})
    after = values(model)
    added = scale.float()[:, None] * steps.float() + b.float() @ a.float()
    assert torch.allclose(after["2.weight"], before["2.weight"] + added)
    assert torch.equal(after["1.bias"], before["1.bias"] + norm.float())
    assert [n for n in before if not torch.equal(before[n], after[n])] == ["1.bias", "2.weight"]


def copied(base: str, folder: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    """A copy of a base without its weights, and these."""
    shutil.copytree(base, folder, dirs_exist_ok=True)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    return folder, tensors


def in_parts(tensors: dict[str, Any], folder: Path, name: str, save: Any) -> list[str]:
    """Writes the tensors into two files with an index; returns the names of all three."""
    stem, suffix = name.split(".")
    files = [f"{stem}-0000{n}-of-00002.{suffix}" for n in (1, 2)]
    names = sorted(tensors)
    half = len(names) // 2
    for file, own in zip(files, (names[:half], names[half:]), strict=True):
        save({n: tensors[n] for n in own}, folder / file)
    where = {n: files[i >= half] for i, n in enumerate(names)}
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (folder / f"{name}.index.json").write_text(json.dumps(index), encoding="utf-8")
    return [f"{name}.index.json", *files]


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("parts", [False, True], ids=["whole", "in parts"])
def test_weights_are_the_same_in_any_files(tiny_bert: str, tmp_path: Path, name: str, parts: bool) -> None:
    folder, tensors = copied(tiny_bert, tmp_path)
    save = (lambda t, f: save_file(t, f, {"format": "pt"})) if name.endswith("safetensors") else torch.save
    if parts:
        expected = in_parts(tensors, folder, name, save)
    else:
        expected = [name]
        save(tensors, folder / name)
    assert [file.name for file in weight_files(str(folder))] == expected
    assert has_safetensors(str(folder)) is name.endswith("safetensors")
    own = Encoder.load(str(folder)).model.state_dict()
    assert all(torch.equal(own[n], t) for n, t in tensors.items())
    digests = {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in expected}
    lines = "".join(f"{d} {n}\n" for n, d in digests.items()).encode()
    assert base_digest(str(folder)) == (hashlib.sha256(lines).hexdigest() if parts else digests[name])


def test_safetensors_are_preferred_and_missing_weights_are_named(tiny_bert: str, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pytorch_model.bin").write_bytes(b"anything")
    assert [file.name for file in weight_files(str(tmp_path))] == ["model.safetensors"]
    empty, _ = copied(tiny_bert, tmp_path / "empty")
    with pytest.raises(OSError, match="no weights"):
        base_digest(str(empty))


class Harm:
    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return exec, ("raise SystemExit('code of a weight file ran')",)


def test_no_code_of_a_weight_file_is_run(tiny_bert: str, tmp_path: Path) -> None:
    folder, _ = copied(tiny_bert, tmp_path)
    torch.save({"embeddings.word_embeddings.weight": Harm()}, folder / "pytorch_model.bin")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        Encoder.load(str(folder))


@pytest.mark.parametrize("part", ["../elsewhere.safetensors", "/elsewhere.safetensors"])
def test_an_index_that_points_outside_is_refused(tiny_bert: str, tmp_path: Path, part: str) -> None:
    folder, _ = copied(tiny_bert, tmp_path)
    index = {"weight_map": {"a": part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(OSError, match="outside of its folder"):
        weight_files(str(folder))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_read_and_split(family: str, tmp_path: Path) -> None:
    base = FAMILIES[family](tmp_path)
    assert refusal(base, Need(pieces=256)) == ""
    # The layers of an ALBERT share their weights: none is trained apart.
    why = "the encoder does not keep its layers in a list" if family == "albert" else ""
    assert refusal(base, Need(is_split=True)).endswith(why)
    assert bool(refusal(base, Need(is_split=True))) == (family == "albert")


def test_what_a_base_cannot_do_is_said_in_one_line(tiny_bert: str) -> None:
    found = refusal(tiny_bert, Need(pieces=512))
    why = "it cannot read 512 pieces at once (its positions: 300)"
    assert found == f"{tiny_bert} (of the family bert) cannot be used: {why}"


def test_decoders_and_tokenizers_with_more_pieces_than_the_model_are_refused(
    tiny_roberta: str, tmp_path: Path, tiny_bert: str
) -> None:
    shutil.copytree(tiny_roberta, tmp_path, dirs_exist_ok=True)
    vocabulary = json.loads((tmp_path / "config.json").read_bytes())["vocab_size"]
    tiny.library().GPT2Model(
        tiny.library().GPT2Config(vocab_size=vocabulary, n_positions=300, n_embd=32, n_layer=2, n_head=2)
    ).save_pretrained(tmp_path)
    assert "it reads from left to right only" in refusal(str(tmp_path), Need())
    tiny.mpnet(tmp_path / "other")
    shutil.copytree(tiny_bert, tmp_path / "base")
    file = tmp_path / "base/tokenizer.json"
    stored = json.loads(file.read_bytes())
    stored["model"]["vocab"]["extra"] = 5000
    file.write_text(json.dumps(stored), encoding="utf-8")
    assert "its tokenizer has pieces above 112" in refusal(str(tmp_path / "base"), Need())


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_lacking_a_part_is_refused_in_one_line(tiny_bert: str, tmp_path: Path, missing: str) -> None:
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    for file in tmp_path.glob(f"{missing.split('.', maxsplit=1)[0]}*"):
        file.unlink()
    found = refusal(str(tmp_path), Need())
    assert found.startswith(str(tmp_path))
    assert "cannot be used" in found
    assert "\n" not in found
