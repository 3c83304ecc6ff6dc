"""Edits the answer of the extractor: names replace pronouns, words about the writer alone are removed, and if
the kind of the question is recognised, an opening of a closed set may replace the writer's wording.
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
from models.summarization.extraction.focus_features import KEY
from models.summarization.extraction.ranker import LinearRanker, softmax
from models.summarization.files import EDIT_RANKER
from models.types import ShortQuestion

KIND_WEIGHTS = "kinds.safetensors"
#: The name of the weights within KIND_WEIGHTS.
KINDS_TENSOR = "kinds"


class Editor:
    """Edits answers with the weights of a release."""

    def __init__(
        self, classifier: KindClassifier, ranker: LinearRanker, margin: float, limits: Limits = STRICT
    ) -> None:
        """`margin`: minimum difference between the scores of an answer with and without an opening."""
        self.classifier, self.ranker, self.margin, self.limits = classifier, ranker, margin, limits

    @classmethod
    def load(cls, release: Release) -> Editor:
        """Raises ReleaseError if the weights are for other features or kinds."""
        try:
            weights = read_tensors(release.file(KIND_WEIGHTS))[KINDS_TENSOR].float()
            ranker = LinearRanker.load(release.file(EDIT_RANKER), FEATURES)
            configuration = release.manifest.configuration
            limits = Limits(**configuration.get("limits", {}))
            return cls(KindClassifier(weights), ranker, float(configuration["margin"]), limits)
        except (KeyError, ValueError, TypeError) as error:
            raise ReleaseError(f"{release.version}: {error}") from None

    def edit(self, found: Sequence[Extraction]) -> list[ShortQuestion]:
        """The short question of each message; `method` is "edited" if it is not a part of the text as it is.
        The score of one with an opening is its probability among the possible answers.
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
    """The short question of an edit, with the offsets of the asking sentence, and of a slot outside of it."""
    sentence, span = kept.chosen.sentence, edit.slot.span
    short = ShortQuestion(edit.text, "edited", round(score, 4), sentence.start, sentence.end)
    if sentence.start <= span.start and span.end <= sentence.end:
        return short
    name = found.message.text[span.start : span.end]
    return replace(short, focus=name, focus_start=span.start, focus_end=span.end)


def edited_clause(found: Extraction) -> ExtractedAnswer:
    """The extracted answer with its name in place of the pronoun that refers to it, and without words about
    the writer alone.
    """
    kept, text = found.kept, found.kept.text
    if kept.sure and kept.chosen.lead is None and text.lower().startswith(f"{kept.names[0].text.lower()}: "):
        name, others = kept.names[0], kept.names[1:]
        known = name.sources - {KEY}
        replaced = with_name(kept.chosen.text, name.text, drug="drug" in known) if known else None
        if replaced is not None:
            text = f"{replaced} ({', '.join(f.text for f in others)})" if others else replaced
    message = found.message
    named = [message.text[s.start : s.end] for s in (*message.drugs, *message.terms)]
    return kept._replace(text=shortened(text, asks=kept.chosen.asks and not kept.chosen.lead, names=named))
