"""Normalization releases without training: a base encoder over a terminology, and the encoders of another
release over other terms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from models import terminology
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.normalization.context_refining import DCR, ISOLATED
from models.normalization.model import NormalizationModel
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, TrainingData
from models.releases.tensors import read_tensors
from training.normalization.data import read
from training.normalization.nil.threshold import calibrated
from training.normalization.phrases.lay import entries
from training.normalization.release import CALIBRATION, MAX_PIECES, ReleaseParts, build
from training.normalization.settings import CANDIDATES, ReleaseOptions
from training.teaching.readers import teaching_source

console = Console()


def zero_shot_release(
    base: str,
    options: ReleaseOptions,
    data: Path | None,
    output: Path,
    device: torch.device | str = "cpu",
) -> Release:
    """A release that compares mentions and terms by the base encoder; the NIL threshold and the scores are
    those of `data`.
    """
    terms = terminology.load(options.terms)
    encoder = Encoder.load(base, device=str(device), max_pieces=MAX_PIECES)
    vectors = encoder.embed([t.llt for t in terms])
    model = NormalizationModel(encoder, terms, vectors, k=CANDIDATES, nil_below=0.0)
    configuration = {"max_pieces": MAX_PIECES, "k": CANDIDATES, "terms": len(terms)}
    configuration |= calibrated(model, read(data).valid)
    console.print(f"{len(terms)} terms, NIL below {configuration['nil_below']}")
    sources = [CALIBRATION] if data else []
    where: dict[str, Any] = {"data": data, "output": output, "device": device}
    return build(ReleaseParts(terms, vectors), configuration, base=base, sources=sources, **where)


def over_terms(
    release: Release,
    options: ReleaseOptions,
    output: Path,
    data: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """A release over the terms of the options, and with written phrases as they say, with the encoders and
    the threshold of this one, with scores where there is data. Term vectors come from S_isolated, so no
    trained tensor depends on the terms.
    """
    terms = terminology.load(options.terms)
    manifest = release.manifest
    model = NormalizationModel.load(release, device=str(device))
    vectors = model.encoder.embed([t.llt for t in terms])
    phrases = model.phrases.within(terms) if model.phrases else None
    names = {ADAPTER, ISOLATED, DCR} & manifest.files.keys()
    trained = {name: read_tensors(release.file(name)) for name in names}
    # The curves, and what its rule for NIL does, are of the release's own terms.
    curves = {"risk_coverage", "phrases", "nil_calibration"}
    configuration = {k: v for k, v in manifest.configuration.items() if k not in curves}
    configuration |= {"terms": len(terms), "like": release.version} | options.searched()
    taught = entries(model.encoder, terms) if options.taught else None
    return build(
        ReleaseParts(terms, vectors, phrases, taught, trained),
        configuration,
        base=manifest.base,
        sources=[
            *(s for s in manifest.training_data if s not in _searched(model.taught)),
            *_searched(taught)[:1],
        ],
        data=data,
        output=output,
        device=device,
    )


def _searched(taught: Phrases | None) -> list[TrainingData]:
    """Written phrases that are searched, as manifests name them, and as older ones do, which do not
    distinguish them from phrases that were trained on; nothing without any.
    """
    if taught is None:
        return []
    name = f"teaching corpus of pvstream, {len(taught.texts)} lay phrases that are searched"
    return [TrainingData(name=name, licence="CC0-1.0"), teaching_source(len(taught.texts))]
