"""Edits the answer that the extractor finds: names in place of pronouns, no words about the writer alone,
and, where the kind of the question is recognised, an opening of a closed set about a part of the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.summarization.editing.clause import shortened, with_name
from models.summarization.editing.edits import FEATURES, Edit, edits, kept_features
from models.summarization.editing.guard import STRICT, Limits
from models.summarization.editing.intent import intent_of
from models.summarization.editing.kinds import KindClassifier, kind_features
from models.summarization.extraction.extractor import ExtractedAnswer, Extraction
from models.summarization.extraction.ranker import LinearRanker, softmax
from models.types import ShortQuestion

EDIT_RANKER, KIND_WEIGHTS = "edit_ranker.tsv", "kinds.safetensors"
#: The name of the weights within KIND_WEIGHTS.
KINDS_TENSOR = "kinds"


class Editor:
    """Edits answers with the weights of a release."""

    def __init__(
        self, classifier: KindClassifier, ranker: LinearRanker, margin: float, limits: Limits = STRICT
    ) -> None:
        """`margin`: by how much the score of an opening must exceed that of the answer without one."""
        self.classifier, self.ranker, self.margin, self.limits = classifier, ranker, margin, limits

    @classmethod
    def load(cls, release: Release) -> Editor:
        """Raises ReleaseError where the weights are of other features or kinds."""
        try:
            weights = read_tensors(release.file(KIND_WEIGHTS))[KINDS_TENSOR].float()
            ranker = LinearRanker.load(release.file(EDIT_RANKER), FEATURES)
            configuration = release.manifest.configuration
            limits = Limits(**configuration.get("limits", {}))
            return cls(KindClassifier(weights), ranker, float(configuration["margin"]), limits)
        except (KeyError, ValueError, TypeError) as error:
            raise ReleaseError(f"{release.version}: {error}") from None

    def edit(self, found: Sequence[Extraction]) -> list[ShortQuestion]:
        """The short question of each message; `method` is "edited" where it is not a part of the text as it
        stands. The score of one with an opening is its probability among the answers offered.
        """
        return [self._edited(one) for one in found]

    def _edited(self, found: Extraction) -> ShortQuestion:
        kept = edited_clause(found)
        kinds = self.classifier.probabilities(kind_features(found.message, kept.chosen.sentence))
        question = intent_of(found, kept, kinds)
        offered = edits(question, self.limits)
        own, *scores = self.ranker.scores([kept_features(question), *(e.features for e in offered)])
        best = max(range(len(scores)), key=lambda i: round(scores[i], 9), default=None)
        if best is None or scores[best] < own + self.margin:
            short = kept.short()
            return short if kept.text == found.kept.text else replace(short, method="edited")
        return _short(found, kept, offered[best], softmax([own, *scores])[best + 1])


def _short(found: Extraction, kept: ExtractedAnswer, edit: Edit, score: float) -> ShortQuestion:
    """The record of an edit: the offsets of the sentence that asks, and of a slot outside of it."""
    sentence, span = kept.chosen.sentence, edit.slot.span
    short = ShortQuestion(edit.text, "edited", round(score, 4), sentence.start, sentence.end)
    if sentence.start <= span.start and span.end <= sentence.end:
        return short
    name = found.message.text[span.start : span.end]
    return replace(short, focus=name, focus_start=span.start, focus_end=span.end)


def edited_clause(found: Extraction) -> ExtractedAnswer:
    """The answer that is a part of the message, with its name in place of the pronoun that stands for it, and
    without what is for the writer alone.
    """
    kept, text = found.kept, found.kept.text
    if kept.sure and kept.chosen.lead is None and text.lower().startswith(f"{kept.names[0].text.lower()}: "):
        name, others = kept.names[0], kept.names[1:]
        replaced = with_name(kept.chosen.text, name.text, drug="drug" in name.sources)
        if replaced is not None:
            text = f"{replaced} ({', '.join(f.text for f in others)})" if others else replaced
    message = found.message
    named = [message.text[s.start : s.end] for s in (*message.drugs, *message.terms)]
    return kept._replace(text=shortened(text, asks=kept.chosen.asks and not kept.chosen.lead, names=named))
