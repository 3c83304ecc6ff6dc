"""Targets from other taggers (Hinton et al. 2015): the mean of what these say of each piece and each text.

One tagger learns what several agree on that were trained apart, at no cost when it is used, and a small one
what larger ones say. It also learns from texts without labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from models.encoder.weights import load_tokenizer
from models.ner.decoding import tags_of
from models.ner.model import EVENT_HEAD, NerModel
from models.releases.manifest import Release, ReleaseError
from models.types import LABELS
from training.common.precision import mixed
from training.ner.data import Example, Taught
from training.ner.releases import check_split, releases_in
from training.ner.settings import Settings

#: Texts whose hidden states are in memory at once.
CHUNK = 512


def teachers_of(settings: Settings) -> list[Release]:
    """The releases of `--teachers`: each is a folder, or the output of a run.

    Raises ReleaseError for one that is not a tagger with the same labels and the heads of this run, whose
    base has not the word pieces of this run's, or that may have learned texts of this run's test part.
    """
    releases = releases_in(settings.teachers)
    for release in releases:
        manifest = release.manifest
        if (manifest.task, tuple(manifest.configuration.get("labels", ()))) != ("ner", tuple(LABELS)):
            raise ReleaseError(f"{release.version}: a teacher is a tagger with all labels")
        if piece_numbers(settings.base, manifest.base) is None:
            raise ReleaseError(
                f"{release.version}: a teacher's base has the word pieces of {settings.base}, "
                f"{manifest.base} has others"
            )
        check_split(release, settings)
        if settings.event_head and EVENT_HEAD not in manifest.files:
            raise ReleaseError(f"{release.version}: a teacher needs an event head, as this run has one")
    return releases


def piece_numbers(base: str, other: str) -> dict[int, int] | None:
    """The number of each word piece of a base in the vocabulary of another one, where it has all of them but
    the special tokens; else None.
    """
    own, theirs = load_tokenizer(base), load_tokenizer(other)
    special = set(own.all_special_ids) - {own.unk_token_id}
    pieces = {piece: number for piece, number in own.get_vocab().items() if number not in special}
    known = theirs.get_vocab() | {own.unk_token: theirs.unk_token_id}
    return {n: known[p] for p, n in pieces.items()} if pieces.keys() <= known.keys() else None


@torch.inference_mode()
def with_targets(
    data: Sequence[Example],
    teachers: Sequence[Release],
    settings: Settings,
    device: torch.device | str = "cpu",
) -> list[Example]:
    """The examples, each with the normalized geometric mean of the teachers' probabilities of tags, and with
    an event head of an event. `teachers`: as of `teachers_of`.
    """
    event = settings.event_head
    sums = [torch.zeros(len(e.pieces), len(tags_of(LABELS))) for e in data]
    odds = [0.0] * len(data)
    for release in teachers:
        model = NerModel.load(release, device=str(device))
        numbers = piece_numbers(settings.base, release.manifest.base)
        assert numbers is not None
        for start in range(0, len(data), CHUNK):
            chunk = data[start : start + CHUNK]
            with mixed(settings.precision, device):
                hidden = model.encoder.encode_pieces([[numbers[p] for p in e.pieces] for e in chunk])
            at = [i for i, e in enumerate(chunk, start) if e.pieces]
            if not at:
                continue
            states = torch.cat([hidden[i - start] for i in at])
            lengths = torch.tensor([len(data[i].pieces) for i in at], device=states.device)
            flags = torch.tensor([f for i in at for f in data[i].flags], dtype=states.dtype)
            tags = model.head(states, flags.to(states.device)).log_softmax(-1).cpu()
            for i, own in zip(at, tags.split(lengths.tolist()), strict=True):
                sums[i] += own
            if event:
                assert model.event_head is not None
                for i, logit in zip(at, model.event_head.of_rows(states, lengths).tolist(), strict=True):
                    odds[i] += logit
    n = len(teachers)
    return [
        replace(e, taught=Taught(_mean(s, n), 1 / (1 + math.exp(-o / n)) if event else None))
        for e, s, o in zip(data, sums, odds, strict=True)
    ]


def _mean(sums: Tensor, teachers: int) -> Tensor:
    """(pieces, tags) in 16 bits: so many teachers' log-probabilities were added."""
    return (sums / teachers).softmax(-1).half()
