"""The mean of taggers' weights that began alike (Wortsman et al. 2022), as fast as one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from models.encoder.weights import ADAPTER
from models.ner.decoding import TRANSITIONS
from models.ner.model import EVENT_HEAD, HEAD, STATUS_HEAD
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from training.common.adapter import changes_of, in_8_bits

TENSORS = (ADAPTER, HEAD, EVENT_HEAD, STATUS_HEAD, TRANSITIONS)
#: Cosine of the tagging heads of two runs, below which they did not begin with the same one: heads that began
#: with other random weights have about 0.
LEAST_COSINE = 0.5


def check_begun_alike(releases: Sequence[Release]) -> None:
    """Raises ReleaseError where the tagging heads began with other weights."""
    first = _head(releases[0])
    for release in releases[1:]:
        if torch.cosine_similarity(_head(release), first, dim=0) < LEAST_COSINE:
            raise ReleaseError(
                f"{release.version}: its head did not begin with the weights of that of "
                f"{releases[0].version}; a stage before must have trained it"
            )


def mean_files(releases: Sequence[Release]) -> dict[str, dict[str, Tensor]]:
    """The tensors of a release by file name, each the mean of those of all releases, in their number formats;
    changes of the layers are rounded to 8 bits anew. Raises ReleaseError where they did not begin alike.
    """
    check_begun_alike(releases)
    files = {}
    for name in TENSORS:
        if name in releases[0].manifest.files:
            read = [read_tensors(release.file(name)) for release in releases]
            files[name] = in_8_bits(_mean([changes_of(t) for t in read])) if name == ADAPTER else _mean(read)
    return files


def mean_configuration(releases: Sequence[Release]) -> dict[str, Any]:
    """What the configuration of the mean says otherwise than that of the first release."""
    weights = [release.manifest.configuration.get("event_weight", 0.0) for release in releases]
    mean = round(sum(weights) / len(weights), 4)
    return {"event_weight": mean, "mean_of": [release.version for release in releases]}


def _head(release: Release) -> Tensor:
    """The weights of the tagging head in one row."""
    return read_tensors(release.file(HEAD))["linear.weight"].float().flatten()


def _mean(tensors: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """A tensor that is missing somewhere is a change that is zero there."""
    dtypes = {name: t.dtype for one in tensors for name, t in one.items()}
    sums = {name: torch.stack([t[name].float() for t in tensors if name in t]).sum(0) for name in dtypes}
    return {name: (total / len(tensors)).to(dtypes[name]) for name, total in sums.items()}
