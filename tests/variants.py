"""Releases that differ from the bundled ones, for tests that publish, swap and compare."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from models.loading import as_json, canary_inputs, model_class
from models.releases.manifest import MANIFEST, Canary, Release
from models.releases.store import build, bundled, describe, open_release


def variant(task: str, root: Path, note: str) -> Release:
    """The bundled release under another version: the same files, another manifest."""
    original = open_release(bundled(task))
    configuration = {**original.manifest.configuration, "note": note}
    manifest = original.manifest.model_copy(update={"configuration": configuration})
    return build(original.path, manifest, root)


def spoiled(task: str, root: Path, file: str, change: Callable[[dict[str, torch.Tensor]], Any]) -> Release:
    """A sound release with other tensors in one file, which answers its own canary."""
    return rebuilt(task, root, file, lambda folder, tensors: change(tensors))


def rebuilt(
    task: str, root: Path, file: str, change: Callable[[Path, dict[str, torch.Tensor]], Any]
) -> Release:
    """The same with anything changed in its folder."""
    original = open_release(bundled(task))
    with tempfile.TemporaryDirectory() as folder:
        for path in original.path.iterdir():
            if path.name != MANIFEST:
                shutil.copyfile(path, Path(folder) / path.name)
        tensors = load_file(original.file(file))
        change(Path(folder), tensors)
        save_file(tensors, Path(folder) / file)
        draft = original.manifest.model_copy(update={"files": describe(Path(folder)), "scores": []})
        model = model_class(task).load(Release(Path(folder), draft, ""))
        answers = as_json(model.predict(canary_inputs(model, draft.canary.inputs)))
        canary = Canary(inputs=draft.canary.inputs, outputs=answers)
        return build(Path(folder), draft.model_copy(update={"canary": canary}), root)


def noisy_head(tensors: dict[str, torch.Tensor]) -> None:
    """Makes a tagger clearly worse, not useless."""
    generator = torch.Generator().manual_seed(5)
    for name, tensor in tensors.items():
        noise = torch.randn(tensor.shape, generator=generator) * tensor.float().std() * 5
        tensors[name] = (tensor.float() + noise).half() if tensor.ndim > 1 else tensor


#: A drug that no text names but those of the tests.
MARKER = "pvmarkerol"


def marked(root: Path, mark: str, original: Release | None = None) -> Release:
    """A tagger (without `original` the bundled one) with one drug more, whose nonproprietary name shows which
    release tagged a text.
    """
    original = original or open_release(bundled("ner"))
    with tempfile.TemporaryDirectory() as folder:
        for path in original.path.iterdir():
            if path.name != MANIFEST:
                shutil.copyfile(path, Path(folder) / path.name)
        with (Path(folder) / "drugs.tsv").open("a", encoding="utf-8") as file:
            file.write(f"{MARKER}\t{mark}\tbrand\n")
        manifest = original.manifest.model_copy(update={"files": describe(Path(folder))})
        return build(Path(folder), manifest, root)
