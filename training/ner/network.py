"""CONORM-NER's network at the start of a run, and its losses: tags, events of texts, statuses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder, encoder_of
from models.ner.decoding import tags_of
from models.ner.heads import EventHead, Head
from models.ner.model import NerModel
from models.ner.status_head import StatusHead
from models.releases.manifest import Release, ReleaseError
from models.types import LABELS, STATUSES
from training.ner.data import UNKNOWN, Example
from training.ner.settings import Settings

#: Weights of the losses of the event head, and of the status of mentions and their pairs with drugs.
EVENT_WEIGHT, STATUS_WEIGHT, PAIR_WEIGHT = 0.5, 0.3, 0.2


def beginning(
    settings: Settings, release: Release | None
) -> tuple[Encoder, Head, EventHead | None, StatusHead | None]:
    """The base and a new head; or encoder and heads of the release to start with.

    Raises ReleaseError where that release is not a tagger over the same base, or of another split of the ADE
    corpus, and may know test texts of this run, and where the layers are changed by matrices of low rank.
    """
    if release is not None and settings.rank:
        raise ReleaseError(f"a run of rank {settings.rank} begins with its base, not with {release.version}")
    if release is None:
        encoder = Encoder.load(settings.base)
        return encoder, Head(encoder.dimension, len(tags_of(LABELS))), None, None
    if (release.manifest.task, release.manifest.base) != ("ner", settings.base):
        raise ReleaseError(f"{release.version}: no tagger over {settings.base} to begin with")
    if (split := release.manifest.configuration["training"]["split"]) != settings.split:
        raise ReleaseError(f"{release.version} was trained on {split}, not on {settings.split}")
    model = NerModel.load(release)
    return encoder_of(release, packed=False), model.head, model.event_head, model.status_head


def losses_of(
    encoder: Encoder,
    head: Head,
    batch: Sequence[Example],
    event_head: EventHead | None = None,
    status_head: StatusHead | None = None,
) -> dict[str, Tensor]:
    """`tags`: cross-entropy over every known piece of the batch, X pieces included; with an event head
    `event`: its binary cross-entropy over the texts; with a status head `status` and `pairs`. All but the
    first are weighted.
    """
    hidden = encoder.forward([e.pieces for e in batch])
    inside = torch.zeros(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    for row, e in enumerate(batch):
        inside[row, 1 : 1 + len(e.pieces)] = True
    flags = torch.tensor([f for e in batch for f in e.flags], dtype=hidden.dtype, device=hidden.device)
    losses = {"tags": _tag_loss(head(hidden[inside], flags).float(), batch)}
    if event_head is not None:
        losses["event"] = EVENT_WEIGHT * _event_loss(event_head(hidden, inside), batch)
    if status_head is not None:
        losses |= _status_losses(status_head, hidden, batch)
    return losses


def _tag_loss(logits: Tensor, batch: Sequence[Example]) -> Tensor:
    """The mean over the known pieces, 0 without any."""
    tags = torch.tensor([t for e in batch for t in e.tags], device=logits.device)
    sums = nn.functional.cross_entropy(logits, tags, ignore_index=UNKNOWN, reduction="sum")
    return sums / (tags != UNKNOWN).sum().clamp(min=1)


def _event_loss(logits: Tensor, batch: Sequence[Example]) -> Tensor:
    """The mean over the texts of which it is known whether they report an event, 0 without any."""
    logits = logits.float()
    known = [i for i, e in enumerate(batch) if e.event is not None]
    events = torch.tensor([float(bool(batch[i].event)) for i in known], device=logits.device)
    sums = nn.functional.binary_cross_entropy_with_logits(logits[known], events, reduction="sum")
    return sums / max(1, len(known))


def _status_losses(head: StatusHead, hidden: Tensor, batch: Sequence[Example]) -> dict[str, Tensor]:
    """`status`: the negative log-probability of the statuses that are right, mean over effects; `pairs`: the
    binary cross-entropy over the pairs of an effect and a drug where it is known which are right.
    """
    zero = hidden.new_zeros(()).float()
    status, pairs = [zero], [zero]
    for states, example in zip(hidden, batch, strict=True):
        if not example.effects:
            continue
        targets = [e.target for e in example.effects]
        rules = torch.tensor([t.rules for t in targets], dtype=hidden.dtype, device=hidden.device)
        own = states[1 : 1 + len(example.pieces)]
        logits, links = head(own, [e.pieces for e in example.effects], example.drugs, rules)
        right = torch.tensor([[s in t.statuses for s in STATUSES] for t in targets], device=hidden.device)
        chosen = logits.float().log_softmax(-1).masked_fill(~right, -torch.inf)
        status += (-chosen.logsumexp(-1)).unbind()
        for link, target in zip(links.float(), targets, strict=True):
            if target.drugs is not None and len(link) > 1:
                gold = torch.tensor([float(i in target.drugs) for i in range(len(link))], device=link.device)
                pairs.append(nn.functional.binary_cross_entropy_with_logits(link, gold))
    return {
        "status": STATUS_WEIGHT * torch.stack(status).sum() / max(1, len(status) - 1),
        "pairs": PAIR_WEIGHT * torch.stack(pairs).sum() / max(1, len(pairs) - 1),
    }
