"""A linear probe of an encoder's word vectors for relations (Theodoropoulos et al. 2021, Table 3).

Every ordered pair of two words of a sentence is a candidate, [drug ; effect]; the encoder is not trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.scores import F1, f1
from training.relation.data import Example

EPOCHS = 20
LR = 2e-2
BATCH = 16
#: A relation is one in about three hundred pairs.
_START = -5.0


class Probe(nn.Module):
    """w . [x_i ; x_j] + b for all words i, j: over a concatenation a layer is the sum of two."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.sides = nn.Linear(dimension, 2)
        nn.init.constant_(self.sides.bias, _START / 2)

    def forward(self, words: Tensor) -> Tensor:
        """(sentences, words, d) to (sentences, words, words): drug in the second place, effect in the
        third.
        """
        sides: Tensor = self.sides(words)
        return sides[..., 0].unsqueeze(2) + sides[..., 1].unsqueeze(1)


def probe(
    train: tuple[Sequence[Example], Tensor], test: tuple[Sequence[Example], Tensor], seed: int = 42
) -> F1:
    """Precision, recall and F1 of the related pairs of `test`; both parts as sentences and (words, d), their
    vectors sentence after sentence.
    """
    torch.manual_seed(seed)
    centre, spread = train[1].mean(0), train[1].std(0).clamp(min=1e-6)
    packs = [_packed(data, (vectors - centre) / spread) for data, vectors in (train, test)]
    layer = Probe(train[1].shape[1])
    optimizer = torch.optim.Adam(layer.parameters(), lr=LR)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, EPOCHS)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for i in torch.randperm(len(packs[0]), generator=generator).tolist():
            words, gold, mask = packs[0][i]
            loss = nn.functional.binary_cross_entropy_with_logits(layer(words)[mask], gold[mask].float())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()
    right = predicted = wanted = 0
    with torch.no_grad():
        for words, gold, mask in packs[1]:
            found = (layer(words) > 0) & mask
            right += int((found & gold).sum())
            predicted += int(found.sum())
            wanted += int(gold.sum())
    return f1(right, predicted, wanted)


def _packed(data: Sequence[Example], vectors: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches of similar length: words (b, n, d), which pairs are related, and which are pairs, (b, n, n)."""
    own = torch.split(vectors, [len(e.tags) for e in data])
    order = sorted(range(len(data)), key=lambda i: len(data[i].tags))
    packs = []
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        words = nn.utils.rnn.pad_sequence([own[i] for i in part], batch_first=True)
        n = words.shape[1]
        lengths = torch.tensor([len(data[i].tags) for i in part])
        inside = torch.arange(n) < lengths[:, None]
        mask = inside[:, :, None] & inside[:, None, :] & ~torch.eye(n, dtype=torch.bool)
        gold = torch.zeros_like(mask)
        for row, i in enumerate(part):
            pairs = torch.from_numpy(data[i].pairs)
            gold[row, pairs[:, 0], pairs[:, 1]] = True
        packs.append((words, gold, mask))
    return packs
