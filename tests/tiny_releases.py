"""Releases of all five tasks, over a tiny BERT where they have an encoder, and of a judge over any base:
complete, and loaded at once, but their answers mean nothing.

For tests of what happens to releases and records, whatever the models answer. Tests of the answers use the
releases that ship.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.tables import Weights
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.ner.decoding import tags_of
from models.ner.heads import Head
from models.normalization.packed_vectors import PackedVectors
from models.releases.manifest import NO_BASE, Release, Score
from models.types import LABELS, Case, Mention, Stated
from training.common.build import build_release
from training.common.reference import TextsOf

TEXTS = ("Zoloft gave me a rash and no sleep.", "Took aspirin. The pain went away, the MS did not.")
DRUGS = "name\tgeneric\nzoloft\tsertraline\naspirin\taspirin\nmetformin\tmetformin\n"
TERMS = ("Insomnia", "Rash", "Nausea", "Headache", "Pain", "Dizziness")
SCORE = Score(
    name="f1", value=0.5, definition="not measured", data="none", records=1, baseline=None,
    baseline_definition="none",
)  # fmt: skip
MAX_PIECES = 64
PROJECTED, PAIRS = 16, 8


def tiny_release(task: str, base: str, root: Path, kind: str = "tiny", drugs: str = DRUGS) -> Release:
    """Publishes a release of `task` under `root`; `kind` and `drugs` make versions differ."""
    make, canary = _PARTS[task]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(11)
        configuration = {"max_pieces": MAX_PIECES, **make(folder, base)}
        if (folder / "drugs.tsv").exists():
            (folder / "drugs.tsv").write_text(drugs, encoding="utf-8")
        return build_release(
            folder,
            task=task,
            kind=kind,
            base=NO_BASE if task == "acronym" else base,
            base_sha256=None if task == "acronym" else base_digest(base),
            configuration=configuration,
            training_data=[],
            canary=canary,
            scores=lambda model: [SCORE],
            root=root,
            # For the others the tagger that ships would be loaded.
            reference=TextsOf("test texts", TEXTS * 150) if task in _READ_ALONE else None,
        )


def _ner(folder: Path, base: str) -> dict[str, Any]:
    head = Head(Encoder.load(base).dimension, len(tags_of(LABELS)))
    with torch.no_grad():
        head.linear.weight.mul_(4)
        head.linear.bias[0] = 5.0  # most words are outside of any mention
    save_file(head.state_dict(), folder / "head.safetensors")
    # With an adapter the weights are the release's own; without one they are shared in the process.
    layer, dimension = "encoder.layer.0.attention.self.query", head.linear.in_features - 1
    adapter = {
        f"{layer}.lora_a": torch.randn(2, dimension),
        f"{layer}.lora_b": torch.randn(dimension, 2) / 10,
    }
    save_file(adapter, folder / ADAPTER)
    (folder / "drugs.tsv").touch()
    return {"labels": list(LABELS)}


def _acronym(folder: Path, base: str) -> dict[str, Any]:
    rows = ["short_form\tlong_form", "MS\tmultiple sclerosis", "MS\tmorphine sulfate", "BP\tblood pressure"]
    (folder / "dictionary.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    shares = SenseFrequencies({("MS", "morphine sulfate"): "usual"})
    shares.write(folder / "frequencies.tsv", folder / "counts.tsv")
    CueWords({("MS", "multiple sclerosis"): ["nerve"]}).write(folder / "cues.tsv")
    return {"weights": Weights()._asdict()}


def _relation(folder: Path, base: str) -> dict[str, Any]:
    tensors = {
        "pair_projection": torch.randn(Encoder.load(base).dimension, PROJECTED),
        "pairs": torch.nn.functional.normalize(torch.randn(PAIRS, 2 * PROJECTED), dim=1),
        "related": torch.arange(PAIRS) % 2,
    }
    save_file(tensors, folder / "support.safetensors")
    rows = [f"s-{i}\tzoloft\trash\t{i % 2}" for i in range(PAIRS)]
    (folder / "pairs.tsv").write_text(
        "sentence\tdrug\teffect\trelated\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )
    return {"k_pairs": 3}


def _normalization(folder: Path, base: str) -> dict[str, Any]:
    rows = [f"{term}\t{term}\tSystem" for term in TERMS]
    (folder / "terminology.tsv").write_text("llt\tpt\tsoc\n" + "\n".join(rows) + "\n", encoding="utf-8")
    vectors = Encoder.load(base, max_pieces=MAX_PIECES).embed(TERMS)
    save_file(PackedVectors.pack(vectors).tensors(), folder / "vectors.safetensors")
    return {"k": 3, "nil_below": 0.1}


def _summarization(folder: Path, base: str) -> dict[str, Any]:
    """Without a decoder: one of the question's own sentences. The file is there to be copied and verified."""
    (folder / "words.tsv").write_text("word\ntea\n", encoding="utf-8")
    return {}


def _judge(folder: Path, base: str) -> dict[str, Any]:
    configuration = _ner(folder, base)
    (folder / ADAPTER).unlink()  # its layers are named as those of another kind of base
    return configuration


_READ_ALONE = {"ner", "acronym", "summarization"}
_RASH = Mention(17, 21, "rash", "ADE", 0.9)
_RELATED = [Case(TEXTS[0], (Mention(0, 6, "Zoloft", "DRUG", 0.9), _RASH)), Case(TEXTS[1], ())]
_QUERIES = [{"text": t, "start": 0, "end": 6, "surface": t[:6]} for t in TEXTS]
_PARTS: dict[str, tuple[Callable[[Path, str], dict[str, Any]], Sequence[Any]]] = {
    "ner": (_ner, TEXTS),
    "acronym": (_acronym, TEXTS),
    "relation": (_relation, _RELATED),
    "normalization": (_normalization, _QUERIES),
    "summarization": (_summarization, TEXTS),
    "judge": (_judge, [Case(t, (Mention(7, 11, t[7:11], "ADE", 0.9),), Stated(("zoloft",))) for t in TEXTS]),
}
