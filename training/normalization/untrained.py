"""Normalization releases without training: a base encoder over a terminology, and the encoders of another
release over other terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from models import terminology
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS
from models.normalization.model import DCR, ISOLATED, NormalizationModel
from models.releases.manifest import Release
from models.releases.tensors import read_tensors
from training.normalization.data import read
from training.normalization.nil.threshold import calibrated
from training.normalization.release import CALIBRATION, MAX_PIECES, Parts, publish
from training.normalization.settings import ReleaseOptions

console = Console()


def zero_shot_release(base: str, options: ReleaseOptions, data: Path | None, output: Path) -> Release:
    """A release that compares mentions and terms by the base encoder; the NIL threshold and the scores are
    those of `data`.
    """
    terms = terminology.load(options.terms)
    encoder = Encoder.load(base, max_pieces=MAX_PIECES)
    vectors = encoder.embed([t.llt for t in terms])
    model = NormalizationModel(encoder, terms, vectors, k=options.k, nil_below=0.0)
    configuration = {"max_pieces": MAX_PIECES, "k": options.k, "terms": len(terms)}
    configuration |= calibrated(model, read(data).valid, options.nil_below)
    console.print(f"{len(terms)} terms, NIL below {configuration['nil_below']}")
    sources = [CALIBRATION] if data else []
    return publish(Parts(terms, vectors), configuration, base=base, sources=sources, data=data, output=output)


def over_terms(
    release: Release, terms: Sequence[terminology.Term], output: Path, data: Path | None = None
) -> Release:
    """A release over other terms with the encoders and the threshold of this one, with scores where there is
    data. Term vectors come from S_isolated, so no trained tensor depends on the terms.
    """
    manifest = release.manifest
    model = NormalizationModel.load(release)
    vectors = model.encoder.embed([t.llt for t in terms])
    phrases = model.phrases.within(terms) if model.phrases else None
    names = {ADAPTER, WEIGHTS, ISOLATED, DCR} & manifest.files.keys()
    trained = {name: read_tensors(release.file(name)) for name in names}
    # The curves are of the release's own terms.
    curves = {"risk_coverage", "phrases"}
    configuration = {k: v for k, v in manifest.configuration.items() if k not in curves}
    configuration |= {"terms": len(terms), "like": release.version}
    return publish(
        Parts(terms, vectors, phrases, trained),
        configuration,
        base=manifest.base,
        sources=manifest.training_data,
        data=data,
        output=output,
    )
