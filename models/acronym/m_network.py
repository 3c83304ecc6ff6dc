"""The m-network of Seneviratne et al. (2022), section 3, for inference.

The sentence as it is (the anchor) and the sentence with each long form in place of the acronym are encoded,
the mean over their pieces is mapped to SIZE dimensions, and the long form at the smallest squared distance
fits best. No bundled release has one: `training/recipes/papers/acronym.toml` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from models.acronym.questions import MarkedText, Question
from models.encoder.model import Encoder, encoder_of
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import check_size, read_tensors

HEAD = "head.safetensors"
#: Dimension to which the mean is mapped.
SIZE = 64
#: Pieces of a form that are read; the longest of our dictionaries has as many.
LONGEST = 24
NO_CANDIDATE = float("inf")
#: Energies of a batch: texts are encoded together.
BATCH = 64


class MNetwork:
    """Encoder and linear layer; several threads may use one at once."""

    def __init__(self, encoder: Encoder, dense: nn.Linear) -> None:
        self.encoder, self.dense = encoder, dense.eval()

    @classmethod
    def load(cls, release: Release, **options: Any) -> MNetwork:
        """`options`: those of `encoder_of`. Raises ReleaseError, ValueError, KeyError or RuntimeError where
        files and configuration do not fit.
        """
        stored = read_tensors(release.file(HEAD))
        # Older ones may have the mean over the acronym's place.
        pooling = release.manifest.configuration["training"].get("pooling", "text")
        if stored.keys() != {"weight", "bias"} or pooling != "text":
            raise ReleaseError(f"{release.version}: made with a head that is no m-network; make it again")
        encoder = encoder_of(release, **options)
        check_size(stored, SIZE * encoder.dimension, release.version)
        dense = nn.Linear(encoder.dimension, SIZE)
        dense.load_state_dict(stored)
        return cls(encoder, dense)

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        """Softmax of the negative distances."""
        shares: list[list[float]] = []
        with torch.inference_mode():
            for start in range(0, len(questions), BATCH):
                part = questions[start : start + BATCH]
                energies = self.energies(part, [q.anchor() for q in part])
                rows = zip(energies, part, strict=True)
                shares += [(-row[: len(q.long_forms)]).softmax(0).tolist() for row, q in rows]
        return shares

    def energies(self, questions: Sequence[Question], anchors: Sequence[MarkedText]) -> Tensor:
        """For n questions, with at most m long forms, the (n, m) squared distances between the anchors and
        the long forms in their places, NO_CANDIDATE where there is no long form. Gradients flow as far as
        the encoder lets them.
        """
        asked = [(a, *map(q.replaced, q.long_forms)) for q, a in zip(questions, anchors, strict=True)]
        pooled = self.pooled(self.tokenize([text for texts in asked for text in texts]))
        parts = torch.split(pooled, [len(texts) for texts in asked])
        small = [self.dense(self.dropped(own)) for own in parts]
        distances = [(own[1:] - own[0]).square().sum(-1) for own in small]
        return pad_sequence(distances, batch_first=True, padding_value=NO_CANDIDATE)

    def dropped(self, pooled: Tensor) -> Tensor:
        """What the layer reads of the (texts, dimension) means of a question: in training a part of it."""
        return pooled

    def tokenize(self, texts: Sequence[MarkedText]) -> list[tuple[int, ...]]:
        """The pieces of each text. Each side of the acronym is cut at the same length whatever is in its
        place, so that an anchor and its candidates have the same context.
        """
        side = max(1, (self.encoder.max_pieces - 2 - LONGEST) // 2)
        marked = []
        for (ids, places), text in zip(self.encoder.pieces_at([t.text for t in texts]), texts, strict=True):
            inside = [i for i, (start, end) in enumerate(places) if start < text.end and end > text.start]
            # The tokenizer may drop all letters of a form; the span is then empty, before the next piece.
            first = inside[0] if inside else sum(end <= text.start for _, end in places)
            last = inside[-1] + 1 if inside else first
            begin = max(0, first - side)
            form = ids[first : min(last, first + LONGEST)]
            marked.append((*ids[begin:first], *form, *ids[last : last + side])[: self.encoder.max_pieces - 2])
        return marked

    def pooled(self, texts: Sequence[tuple[int, ...]]) -> Tensor:
        """(texts, dimension) means; equal texts are encoded once."""
        unique = list(dict.fromkeys(texts))
        order: list[int] = []
        parts = []
        for batch, hidden in self.encoder.hidden(unique):
            order += batch
            parts.append(means(hidden, [len(unique[i]) for i in batch]))
        row_of = {unique[i]: row for row, i in enumerate(order)}
        return torch.cat(parts)[[row_of[t] for t in texts]].to(self.dense.weight.device)


def means(hidden: Tensor, lengths: Sequence[int]) -> Tensor:
    """(texts, dimension) from hidden states (texts, padded pieces, dimension) that begin with the opening
    token. Special tokens and padding are left out; a text without pieces has zeros.
    """
    position = torch.arange(hidden.shape[1], device=hidden.device)[None] - 1
    length = torch.tensor(lengths, device=hidden.device).unsqueeze(-1)
    weights = ((position >= 0) & (position < length)).to(hidden.dtype)
    mean: Tensor = (hidden * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True).clamp(min=1)
    return mean
