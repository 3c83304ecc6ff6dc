"""The weight files of a base: one or several, safetensors or PyTorch's own, and their digest."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.encoder.base_files import base_digest, has_safetensors, weight_files
from models.encoder.model import Encoder


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
def test_weights_are_the_same_whatever_files_they_are_in(
    tiny_bert: str, tmp_path: Path, name: str, parts: bool
) -> None:
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


def test_safetensors_are_preferred(tiny_bert: str, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pytorch_model.bin").write_bytes(b"anything")
    assert [file.name for file in weight_files(str(tmp_path))] == ["model.safetensors"]


class Harm:
    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return exec, ("raise SystemExit('code of a weight file ran')",)


def test_no_code_of_a_weight_file_is_run(tiny_bert: str, tmp_path: Path) -> None:
    folder, _ = copied(tiny_bert, tmp_path)
    torch.save({"embeddings.word_embeddings.weight": Harm()}, folder / "pytorch_model.bin")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        Encoder.load(str(folder))


@pytest.mark.parametrize("part", ["../elsewhere.safetensors", "/elsewhere.safetensors"])
def test_an_index_that_points_outside_of_the_folder_is_refused(
    tiny_bert: str, tmp_path: Path, part: str
) -> None:
    folder, _ = copied(tiny_bert, tmp_path)
    index = {"weight_map": {"a": part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(OSError, match="outside of its folder"):
        weight_files(str(folder))


def test_a_folder_without_weights_is_named(tiny_bert: str, tmp_path: Path) -> None:
    folder, _ = copied(tiny_bert, tmp_path)
    with pytest.raises(OSError, match="no weights"):
        base_digest(str(folder))
