"""Makes a release with the weights of another release, or the mean of several, and the names of today's
tables; nothing is trained.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from models import drugs
from models.drift import REFERENCE
from models.ner.model import NerModel
from models.ner.named_events import NAMES, write_names
from models.releases.manifest import Release
from models.releases.store import describe
from training.common.build import build_release
from training.ner.assemble import CANARY, test_scores
from training.ner.event_options import held_out_curves
from training.ner.mean_weights import check_alike, mean_configuration, mean_files
from training.ner.settings import event_names
from training.recipes.stages import Place


def refreshed(releases: Sequence[Release], place: Place) -> Release:
    """Drugs and the names of adverse events are those of the bundled tables where the first release has any;
    the rest is as it was in that release, and the scores and the curves over the held-out posts are measured
    anew. The weights of several releases are averaged. Raises ReleaseError where a release is no tagger, or
    where they are not alike.
    """
    check_alike(releases)
    manifest = releases[0].manifest
    configuration = manifest.configuration | _origin(releases)
    trained = configuration["training"]
    sources = [source for release in releases for source in release.manifest.training_data]
    with tempfile.TemporaryDirectory(prefix="ner-") as name:
        folder = Path(name)
        _write_files(folder, releases)
        stated = {"files": describe(folder), "configuration": configuration}
        draft = Release(folder, manifest.model_copy(update=stated), releases[0].version)
        configuration |= held_out_curves(NerModel.load(draft, device=str(place.device)))
        return build_release(
            folder,
            task="ner",
            kind=manifest.kind,
            base=manifest.base,
            base_sha256=manifest.base_sha256,
            configuration=configuration,
            training_data=list(dict.fromkeys(sources)),
            canary=CANARY,
            scores=test_scores(trained["corpora"], trained["split"], place),
            root=place.output,
            device=place.device,
        )


def _origin(releases: Sequence[Release]) -> dict[str, Any]:
    if len(releases) == 1:
        return {"like": releases[0].version}
    return mean_configuration(releases)


def _write_files(folder: Path, releases: Sequence[Release]) -> None:
    files = releases[0].manifest.files
    # A reference holds the answers of the release that it is of.
    for file in files.keys() - {REFERENCE}:
        shutil.copyfile(releases[0].file(file), folder / file)
    if drugs.RELEASE_FILE in files:
        shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
    if len(releases) > 1:
        for file, tensors in mean_files(releases).items():
            save_file(tensors, folder / file)
    if NAMES in files:
        write_names(folder / NAMES, event_names())
