"""Makes a release with the weights of another release and other decoding settings; nothing is trained."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from models.lexicon import NameLexicon
from models.ner.model import EVENT_HEAD, STATUS_HEAD, NerModel
from models.ner.named_events import NAMES, write_names
from models.releases.manifest import Release
from training.common.publish import publish_release
from training.evaluation.evaluate import manifest_scores
from training.ner.assemble import CANARY, decoding_options, tested
from training.ner.event_options import held_out_alarms
from training.ner.settings import Settings, names_of


def redecoded(
    release: Release, settings: Settings, data: Path, root: Path, device: torch.device | str = "cpu"
) -> Release:
    """Labels are pooled, names and withdrawals are looked for as `settings` say; the rest is as it was, and
    the scores and the curve of alarms are measured anew. Raises ReleaseError where the release is no tagger.
    """
    manifest, options, names = release.manifest, decoding_options(settings), names_of(settings)
    model = NerModel.load(release, device=str(device))
    model.decoding = replace(model.decoding, **options)
    model.names = NameLexicon.of(names) if names else None
    configuration = manifest.configuration | options | {"like": release.version}
    configuration |= held_out_alarms(model)
    trained = configuration["training"]
    with tempfile.TemporaryDirectory(prefix="ner-") as name:
        folder = Path(name)
        for file in manifest.files:
            shutil.copyfile(release.file(file), folder / file)
        if {EVENT_HEAD, STATUS_HEAD} <= manifest.files.keys():
            write_names(folder / NAMES, names)
        return publish_release(
            folder,
            task="ner",
            kind=manifest.kind,
            base=manifest.base,
            base_sha256=manifest.base_sha256,
            configuration=configuration,
            training_data=manifest.training_data,
            canary=CANARY,
            scores=lambda loaded: manifest_scores(
                "ner", loaded, data, tested(trained["corpora"], trained["split"])
            ),
            root=root,
            device=device,
        )
