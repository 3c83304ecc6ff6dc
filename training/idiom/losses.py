"""The losses of idiom-aware vectors: triplets (He et al. 2024, sections 3.1 and 3.2), and one that keeps the
cosines of different sentences.
"""

from __future__ import annotations

from torch import Tensor, nn


class TripletLoss:
    """The paper's miner and loss of one batch: vectors (rows, dimension) and labels (rows,) to a number.

    Triplets with sim(a, p) - sim(a, n) < `mined` are used; the loss is max(0, sim(a, n) - sim(a, p) +
    `margin`), averaged over its non-zero terms.
    """

    def __init__(self, mined: float = 0.4, margin: float = 0.3) -> None:
        from pytorch_metric_learning.distances import CosineSimilarity  # noqa: PLC0415  a second to import
        from pytorch_metric_learning.losses import TripletMarginLoss  # noqa: PLC0415
        from pytorch_metric_learning.miners import TripletMarginMiner  # noqa: PLC0415

        self.miner = TripletMarginMiner(margin=mined, type_of_triplets="all", distance=CosineSimilarity())
        # Its default reducer averages over the non-zero terms.
        self.loss = TripletMarginLoss(margin=margin, distance=CosineSimilarity())

    def __call__(self, vectors: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.loss(vectors, labels, self.miner(vectors, labels))
        return loss


def cosine_change(vectors: Tensor, before: Tensor, groups: Tensor) -> Tensor:
    """Mean squared difference between the cosines of texts of different groups now and before training:
    `vectors` (texts, dimension), `before` unit vectors of the same shape, `groups` (texts,).
    """
    unit = nn.functional.normalize(vectors, dim=-1)
    different = groups.unsqueeze(0) != groups.unsqueeze(1)
    change = (unit @ unit.T - before @ before.T)[different]
    return change.square().mean() if len(change) else vectors.sum() * 0
