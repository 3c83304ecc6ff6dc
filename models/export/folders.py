"""Writes the network of a release into a folder that another library loads."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors.torch import save_file
from torch import nn

from models.encoder.model import Encoder
from models.export.card import Form, card
from models.export.networks import ExportError, Tags, Vectors, exported_encoder, token_classifier
from models.idiom import LAST, LAST_TWO
from models.releases.manifest import Release
from models.releases.private import private_folder

#: What reads the release of a task.
FORMS: dict[str, tuple[Form, ...]] = {
    "ner": ("transformers", "onnx"),
    "normalization": ("sentence-transformers", "onnx"),
    "idiom": ("sentence-transformers", "onnx"),
}


def export(release: Release, folder: Path, form: Form) -> None:
    """Writes the network of a release with its tokenizer and a model card to a folder, whole or not at all.

    Raises ExportError where the task has no such form, the folder is there and not empty, or a package is
    missing, and what `exported_encoder` and `token_classifier` raise.
    """
    forms = FORMS.get(release.task, ())
    if form not in forms:
        known = " or ".join(forms) or f"nothing, but those of {', '.join(FORMS)} are"
        raise ExportError(f"{form}: a release of {release.task} is exported to {known}")
    folder = folder.resolve()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ExportError(f"{folder} is no empty folder")
    if form == "onnx" and not all(map(importlib.util.find_spec, ("onnx", "onnxscript"))):
        raise ExportError("onnx is not installed; in the clone of pvstream: pip install -e '.[onnx]'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with private_folder(folder.name, folder.parent, ".exporting-") as temporary:
        _write(release, temporary, form)
        temporary.chmod(0o755)
        temporary.rename(folder)


def _write(release: Release, folder: Path, form: Form) -> None:
    encoder = exported_encoder(release)
    pooling = release.manifest.configuration.get("pooling", LAST)
    model = token_classifier(encoder, release) if release.task == "ner" else encoder.model
    encoder.tokenizer.save_pretrained(folder)
    if form == "onnx":
        model.config.save_pretrained(folder)
        network = Tags(model) if release.task == "ner" else Vectors(encoder, pooling)
        _write_onnx(network, encoder.tokenizer, folder / "model.onnx")
    else:
        model.save_pretrained(folder)
    if form == "sentence-transformers":
        _write_modules(encoder, pooling, folder)
    (folder / "README.md").write_text(card(release, form), encoding="utf-8")


def _write_modules(encoder: Encoder, pooling: str, folder: Path) -> None:
    """What sentence-transformers does with the hidden states: the mean of the last two layers where these are
    pooled, the mean over the pieces, unit length.
    """
    size, layers = encoder.dimension, int(encoder.model.config.num_hidden_layers)
    parts: dict[str, dict[str, Any]] = {
        "Pooling": {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True}, "Normalize": {},
    }  # fmt: skip
    if pooling == LAST_TWO:
        both = {"word_embedding_dimension": size, "num_hidden_layers": layers, "layer_start": layers - 1}
        parts = {"WeightedLayerPooling": both} | parts
        config = orjson.loads((folder / "config.json").read_bytes())
        _write_json(folder / "config.json", config | {"output_hidden_states": True})
    places = {"Transformer": ""} | {name: f"{i}_{name}" for i, name in enumerate(parts, start=1)}
    for name, settings in parts.items():
        (folder / places[name]).mkdir()
        _write_json(folder / places[name] / "config.json", settings)
        if name == "WeightedLayerPooling":
            save_file({"layer_weights": torch.ones(2)}, folder / places[name] / "model.safetensors")
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(places.items())
    ]
    _write_json(folder / "modules.json", modules)
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": encoder.max_pieces})


def _write_json(path: Path, content: Any) -> None:
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


def _write_onnx(network: nn.Module, tokenizer: Any, path: Path) -> None:
    """With axes for any number of texts and pieces."""
    example = tokenizer(["no pain now", "pain"], padding=True, return_tensors="pt")
    names = ("input_ids", "attention_mask")
    axes = {0: torch.export.Dim("texts"), 1: torch.export.Dim("pieces")}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own parts
        torch.onnx.export(
            network.eval(),
            tuple(example[name] for name in names),
            path,
            input_names=names,
            output_names=["logits" if isinstance(network, Tags) else "vectors"],
            dynamic_shapes=dict.fromkeys(names, axes),
            external_data=False,
            verbose=False,
        )
