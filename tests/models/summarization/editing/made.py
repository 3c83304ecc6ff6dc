"""An editor that edits wherever it is allowed to, over a small encoder."""

from __future__ import annotations

import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.editing.editor import Editor
from models.summarization.editing.edits import FEATURES
from models.summarization.editing.kinds import KindClassifier
from models.summarization.editing.openings import KINDS
from models.summarization.extraction import candidates, focus_features, insertion
from models.summarization.extraction.extractor import Extractor, Rankers, Thresholds
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel
from models.types import ShortQuestion

LEXICONS = OwnRecogniser(
    None,
    ["gout", "lupus", "migraine", "kidney failure", "hereditary angioedema"],
    DrugLexicon({"zoloft": "sertraline", "advil": "ibuprofen"}),
)


class Always(KindClassifier):
    """Gives the same probabilities whatever the message."""

    def __init__(self, **kinds: float) -> None:
        super().__init__(torch.zeros(1, len(KINDS)))
        self.fixed = [kinds.get(kind, 0.05) for kind in KINDS]

    def probabilities(self, features: torch.Tensor) -> list[float]:
        return self.fixed


def extractor(encoder: Encoder, editor: Editor | None = None) -> Extractor:
    """With rankers that prefer names of the lexicons, and questions."""
    rankers = Rankers(
        LinearRanker(
            {n: 5.0 * (n in ("drug", "term")) for n in focus_features.FEATURES}, focus_features.FEATURES
        ),
        LinearRanker({n: 5.0 * (n == "question") for n in candidates.FEATURES}, candidates.FEATURES),
        LinearRanker({n: 3.0 * (n in ("drug", "term")) for n in insertion.FEATURES}, insertion.FEATURES),
    )
    return Extractor(encoder, LEXICONS, rankers, Thresholds(0.1, 0.6, 0.6), editor)


def editor(margin: float = -99.0, **kinds: float) -> Editor:
    """Prefers the most probable kind, and takes any edit that is allowed."""
    ranker = LinearRanker({name: float(name == "kind") for name in FEATURES}, FEATURES)
    return Editor(Always(**kinds), ranker, margin)


def answer(encoder: Encoder, text: str, **kinds: float) -> ShortQuestion:
    model = SummarizationModel(encoder, extractor=extractor(encoder, editor(**kinds)))
    return model.predict([text])[0]
