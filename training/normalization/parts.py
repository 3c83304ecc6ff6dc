"""Makes releases of normalization: terminology, phrases, the vectors of both, trained files, rule for NIL."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from models import terminology
from models.encoder.base_files import base_digest
from models.encoder.weights import ADAPTER, WEIGHTS
from models.normalization import patient_phrases
from models.normalization.context_refining import DCR, ISOLATED
from models.normalization.model import NormalizationModel
from models.normalization.packed_vectors import PackedVectors
from models.normalization.patient_phrases import PHRASE_VECTORS, PHRASES, TAUGHT, TAUGHT_VECTORS, Phrases
from models.releases.manifest import Release, Score, TrainingData
from models.releases.tensors import read_tensors
from models.terminology import Term
from models.types import Query
from training.common.build import build_release
from training.evaluation.coding.removed_terms import REMOVED_TERMS
from training.evaluation.evaluate import manifest_scores
from training.normalization.data import read
from training.normalization.nil_rule import with_nil
from training.normalization.phrases import LEAST_COSINE, TAUGHT_PENALTY, written_phrases

#: How a release with phrases searches: the temperature of the log-sum-exp over the cosines of a preferred
#: term, what is added for each level of its estimated frequency, and whether misspelled words are corrected.
SEARCH = {
    "vote": 0.04,
    "prior": 0.01,
    "spelling": True,
    "taught_penalty": TAUGHT_PENALTY,
    "phrases_at_least": LEAST_COSINE,
}
#: What the rule for NIL is fitted on.
OF_NIL = (
    TrainingData(
        name="PsyTAR (Zolnoori et al. 2019), validation mentions, for the NIL threshold only",
        licence="CC BY 4.0",
    ),
    TrainingData(
        name="teaching corpus of pvstream, held-out lay phrases, for the rule of NIL only", licence="CC0-1.0"
    ),
)
#: Ends the name of written phrases in a manifest; there is one set of them.
SEARCHED = "lay phrases that are searched"


def _inside(text: str, mention: str, surface: str = "") -> Query:
    start = text.index(mention)
    return Query(text, start, start + len(mention), surface or mention)


ALONE = (
    "couldn't sleep a wink",
    "head is killing me",
    "raised liver enzymes",
    "Stevens-Johnson syndrome",
    "purple bicycle",
)
CANARY = [
    *(_inside(mention, mention) for mention in ALONE),
    _inside("Zoloft gave me awful insomnia and night sweats, no nausea though.", "night sweats"),
    _inside("I feel like a zombie all day since I take it, cannot think.", "like a zombie"),
    _inside("HA every evening since the dose was raised.", "HA", "headache"),
]


@dataclass(frozen=True, slots=True)
class Parts:
    """The files of a release."""

    terms: Sequence[Term]
    vectors: Tensor | PackedVectors
    """(terms, dimension), by S_isolated"""
    phrases: Phrases | None
    """training mentions"""
    taught: Phrases | None
    """phrases of the teaching corpus"""
    trained: Mapping[str, dict[str, Tensor]]
    """file name to tensors"""

    @property
    def kind(self) -> str:
        """The method, as `pvstream releases` shows it."""
        if DCR in self.trained:
            return "CONORM-EN over a terminology"
        return f"{'trained' if self.trained else 'zero-shot'} sentence encoder over a terminology"

    def write(self, folder: Path) -> None:
        """Writes them below the folder."""
        rows = [(t.llt, t.pt, t.soc or "-", f"{t.serious:d}", str(t.frequency)) for t in self.terms]
        lines = "".join("\t".join(row) + "\n" for row in [terminology.COLUMNS, *rows])
        (folder / "terminology.tsv").write_text(lines, encoding="utf-8")
        save_file(PackedVectors.pack(self.vectors).tensors(), folder / "vectors.safetensors")
        for phrases, table, packed in (
            (self.phrases, PHRASES, PHRASE_VECTORS),
            (self.taught, TAUGHT, TAUGHT_VECTORS),
        ):
            if phrases is not None and phrases.texts:
                patient_phrases.write(folder / table, phrases.texts, phrases.pts)
                save_file(PackedVectors.pack(phrases.vectors).tensors(), folder / packed)
        for name, content in self.trained.items():
            save_file(content, folder / name)


def build(
    parts: Parts,
    configuration: dict[str, Any],
    *,
    base: str,
    sources: Sequence[TrainingData],
    data: Path | None,
    output: Path,
    device: torch.device | str,
    nil: bool,
    limit: int = 0,
) -> Release:
    """Writes a release under `output`, with scores where there is data, on `limit` records where it is not 0,
    and, where `nil` says so, a threshold and a rule for NIL that are chosen on it.
    """
    named = [s for s in sources if not s.name.endswith(SEARCHED)]
    if parts.taught is not None:
        name = f"teaching corpus of pvstream, {len(parts.taught.texts)} {SEARCHED}"
        named.append(TrainingData(name=name, licence="CC0-1.0"))
    chosen = None
    if data is not None and nil:
        chosen, named = partial(with_nil, valid=read(data).valid), [*named, *OF_NIL]
    with tempfile.TemporaryDirectory(prefix="normalization-") as name:
        parts.write(Path(name))
        return build_release(
            Path(name),
            task="normalization",
            kind=parts.kind,
            base=base,
            base_sha256=base_digest(base),
            configuration=configuration,
            training_data=list(dict.fromkeys(named)),
            canary=CANARY,
            scores=lambda model: scores(model, data, limit) if data else [],
            root=output,
            device=device,
            chosen=chosen,
        )


def refreshed(
    release: Release,
    terms: Sequence[Term],
    output: Path,
    data: Path | None,
    device: torch.device | str = "cpu",
) -> Release:
    """A release over these terms, and over today's written phrases where it has any, with the encoders of
    this one, so that nothing is trained: term vectors come from S_isolated. Its rule for NIL is fitted
    anew where there is data, else it is kept.
    """
    manifest, model = release.manifest, NormalizationModel.load(release, device=str(device))
    vectors = model.encoder.embed([t.llt for t in terms])
    phrases = model.phrases.within(terms) if model.phrases else None
    taught = written_phrases(model.encoder, terms, vectors) if model.taught else None
    files = sorted({ADAPTER, WEIGHTS, ISOLATED, DCR} & manifest.files.keys())
    trained = {name: read_tensors(release.file(name)) for name in files}
    # What the rule for NIL does, and the rule where it is fitted anew, are of the release's former terms.
    former = {"risk_coverage", "nil_calibration", *(("nil_rule",) if data else ())}
    configuration = {k: v for k, v in manifest.configuration.items() if k not in former}
    return build(
        Parts(terms, vectors, phrases, taught, trained),
        configuration | {"terms": len(terms), "like": release.version},
        base=manifest.base,
        sources=manifest.training_data,
        data=data,
        output=output,
        device=device,
        nil=model.nil_rule is not None,
    )


def scores(model: NormalizationModel, data: Path, limit: int) -> list[Score]:
    """On the held-out mentions over the release's terms, with the bundled tagger, and with terms taken out
    where there is a rule for NIL; where their files are in `data`. With a limit the first alone, on as many
    records.
    """
    required = {"heldout": "psytar/normalization.csv", "end_to_end": "psytar/ner_train.conll"}
    if limit:
        required = {"heldout": required["heldout"]}
    elif model.nil_rule is not None:
        required[REMOVED_TERMS] = "psytar/normalization.csv"
    splits = [split for split, file in required.items() if (data / file).exists()]
    return manifest_scores("normalization", model, data, splits, limit)
