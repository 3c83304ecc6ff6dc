"""Makes a relation release with the weights of another and the drug names of today's lexicon; nothing is
trained.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import torch

from models import drugs
from models.drift import REFERENCE
from models.releases.manifest import Release, ReleaseError
from training.common.publish import publish_release
from training.common.reference import TextsOf
from training.relation.data import corpus_of
from training.relation.release import READ
from training.relation.written import release_scores


def renamed(release: Release, data: Path | None, root: Path, device: torch.device | str = "cpu") -> Release:
    """Publishes a copy of the release with the bundled lexicon under `root`; its scores and its reference are
    made anew from the corpora that it was trained on. Raises ReleaseError for another task.
    """
    manifest = release.manifest
    if manifest.task != "relation":
        raise ReleaseError(f"{release.version} is a release of {manifest.task}, not of relation")
    trained = manifest.configuration["training"]
    corpus = corpus_of(trained, data)
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        folder = Path(name)
        for file in manifest.files.keys() - {REFERENCE, drugs.RELEASE_FILE}:
            shutil.copyfile(release.file(file), folder / file)
        shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
        return publish_release(
            folder,
            task="relation",
            kind=manifest.kind,
            base=manifest.base,
            base_sha256=manifest.base_sha256,
            configuration=manifest.configuration | {"like": release.version},
            training_data=manifest.training_data,
            canary=manifest.canary.inputs,
            scores=lambda model: release_scores(model, trained, data),
            root=root,
            device=device,
            reference=TextsOf.some(READ, [t.text for t in corpus.train + corpus.negatives]),
        )
