"""The contents of a normalization release, and how it is built."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from models import terminology
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.normalization import patient_phrases
from models.normalization.context_refining import DCR, ISOLATED, stored_tensors
from models.normalization.model import PHRASE_VECTORS, PHRASES, TAUGHT, TAUGHT_VECTORS, NormalizationModel
from models.normalization.packed_vectors import PackedVectors
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, Score, TrainingData
from models.types import Query
from training.common.adapter import in_8_bits, trained_state
from training.common.build import build_release
from training.evaluation.evaluate import manifest_scores
from training.evaluation.normalization import SIDER
from training.normalization.network import IsolatedNetwork, RefiningNetwork
from training.normalization.settings import Settings

#: Pieces of a term or a mention.
MAX_PIECES = 64
LICENCE = "CC BY 4.0"
CALIBRATION = TrainingData(
    name="PsyTAR (Zolnoori et al. 2019), validation mentions, for the NIL threshold only", licence=LICENCE
)
TRAINED = TrainingData(
    name="PsyTAR (Zolnoori et al. 2019), mentions without the held-out drugs and preferred terms",
    licence=LICENCE,
)
Adapter = Mapping[str, Tensor]


def _alone(mention: str) -> Query:
    return Query(mention, 0, len(mention), mention)


def _inside(text: str, mention: str, surface: str = "") -> Query:
    start = text.index(mention)
    return Query(text, start, start + len(mention), surface or mention)


CANARY = [
    _alone("couldn't sleep a wink"),
    _alone("head is killing me"),
    _alone("raised liver enzymes"),
    _alone("Stevens-Johnson syndrome"),
    _alone("purple bicycle"),
    _inside("Zoloft gave me awful insomnia and night sweats, no nausea though.", "night sweats"),
    _inside("I feel like a zombie all day since I take it, cannot think.", "like a zombie"),
    _inside("HA every evening since the dose was raised.", "HA", "headache"),
]


@dataclass(frozen=True, slots=True)
class ReleaseParts:
    """The contents of a release."""

    terms: Sequence[terminology.Term]
    vectors: Tensor
    """(terms, dimension), by S_isolated"""
    phrases: Phrases | None = None
    taught: Phrases | None = None
    trained: Mapping[str, dict[str, Tensor]] = field(default_factory=dict)
    """file name to tensors; empty for a release without training"""

    @property
    def kind(self) -> str:
        """The method, as `pvstream releases` shows it."""
        if DCR in self.trained:
            return "CONORM-EN over a terminology"
        return f"{'trained' if self.trained else 'zero-shot'} sentence encoder over a terminology"


def trained_files(network: IsolatedNetwork, settings: Settings, isolated: Adapter) -> dict[str, Any]:
    """File name to tensors: the matrices of the refining, and what training changed of S_context in 8 bits;
    `isolated`, the change of S_isolated, which is the only one of a network without S_context.
    """
    if not isinstance(network, RefiningNetwork):
        return {ADAPTER: dict(isolated)} if isolated else {}
    before = dict(Encoder.load(settings.base_of_context).model.named_parameters())
    after = {n: p for n, p in trained_state(network.context.model).items() if n in before}
    changes = in_8_bits({name: p - before[name].detach().cpu() for name, p in after.items()})
    trained = {DCR: stored_tensors(network.refining, network.context), ADAPTER: changes}
    return trained | ({ISOLATED: dict(isolated)} if isolated else {})


def build(
    parts: ReleaseParts,
    configuration: dict[str, Any],
    *,
    base: str,
    sources: Sequence[TrainingData],
    data: Path | None,
    output: Path,
    device: torch.device | str = "cpu",
) -> Release:
    """Writes a release under `output`, with scores where there is data."""
    with tempfile.TemporaryDirectory(prefix="normalization-") as name:
        _write(Path(name), parts)
        return build_release(
            Path(name),
            task="normalization",
            kind=parts.kind,
            base=base,
            base_sha256=base_digest(base),
            configuration=configuration,
            training_data=sources,
            canary=CANARY,
            scores=lambda model: scores(model, data) if data else [],
            root=output,
            device=device,
        )


def _write(folder: Path, parts: ReleaseParts) -> None:
    rows = [(t.llt, t.pt, t.soc or "-", f"{t.serious:d}", str(t.frequency)) for t in parts.terms]
    lines = "".join("\t".join(row) + "\n" for row in [terminology.COLUMNS, *rows])
    (folder / "terminology.tsv").write_text(lines, encoding="utf-8")
    save_file(PackedVectors.pack(parts.vectors).tensors(), folder / "vectors.safetensors")
    for phrases, table, packed in (
        (parts.phrases, PHRASES, PHRASE_VECTORS),
        (parts.taught, TAUGHT, TAUGHT_VECTORS),
    ):
        if phrases is not None and phrases.texts:
            patient_phrases.write(folder / table, phrases.texts, phrases.pts)
            save_file(PackedVectors.pack(phrases.vectors).tensors(), folder / packed)
    for name, content in parts.trained.items():
        save_file(content, folder / name)


def scores(model: NormalizationModel, data: Path) -> list[Score]:
    """On the held-out mentions over the release's terms, with SIDER's names and with the bundled tagger,
    where their files are in `data`.
    """
    required = {
        "heldout": "psytar/normalization.csv",
        "heldout_sider": SIDER,
        "sider": SIDER,
        "end_to_end": "psytar/ner_train.conll",
    }
    splits = [split for split, file in required.items() if (data / file).exists()]
    return manifest_scores("normalization", model, data, splits)
