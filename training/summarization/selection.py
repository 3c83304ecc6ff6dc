"""How a trained network writes: which search, and whether question templates (forms) and a ranker are used in
addition to the decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.encoder.base_files import MINI
from models.encoder.model import Encoder
from models.ner.model import NerModel
from models.releases.manifest import Release
from models.summarization.decoding.beam_search import Search
from models.summarization.decoding.generation import PointerWriter
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel
from models.summarization.question_templates import TemplateWriter
from models.summarization.reranker import UNFITTED, RankedWriter
from training.evaluation.summarization.measure import summary_counts
from training.summarization.data import Corpora
from training.summarization.examples import Material
from training.summarization.networks.hub_network import MAX_PIECES
from training.summarization.networks.network import Network
from training.summarization.question_types import FOLDS, Choice, fit_forms, fit_ranker
from training.summarization.release import known_words
from training.summarization.settings import Choose

#: ROUGE-1 by which another way of choosing must be better than the decoder alone.
LEAST = 0.5


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network, what it was trained on, and the tagger of the guard."""

    network: Network
    tagger: Release
    corpora: Corpora
    material: Material
    device: str = "cpu"

    def recogniser(self) -> OwnRecogniser:
        return OwnRecogniser.bundled(NerModel.load(self.tagger, device=self.device))

    def encoder(self) -> Encoder:
        """The one that compares sentences."""
        return Encoder.load(sentence_base(self.network), device=self.device, max_pieces=MAX_PIECES)


@dataclass(frozen=True, slots=True)
class Forms:
    """The question templates of a release."""

    templates: TemplateWriter
    weights: list[float]
    """of the ranker; none: the forms write alone"""


def sentence_base(network: Network) -> str:
    """The base of the encoder that compares sentences."""
    return MINI if network.name == "hub" else network.base


def best_search(trained: Trained, searches: Sequence[Search]) -> tuple[Search, dict[str, float]]:
    """The search whose summaries, as they are served, have the best ROUGE-1 on the validation part (the first
    where there is none), and the scores by their beams.
    """
    validation = trained.corpora.validation
    if len(searches) == 1 or not validation:
        return searches[0], {}
    encoder, recogniser = trained.encoder(), trained.recogniser()
    known = frozenset(known_words(trained.corpora, ()))
    scores = {}
    for search in searches:
        model = SummarizationModel(encoder, trained.network.writer(search), recogniser, known)
        summaries = [s.text for s in model.predict([p.question for p in validation])]
        counts = summary_counts(summaries, [p.summary for p in validation])
        scores[str(search.beams)] = round(float(counts[:, 0].mean()), 2)
    return max(searches, key=lambda s: scores[str(s.beams)]), scores


def forms_of(trained: Trained, search: Search, choose: Choose) -> tuple[Forms | None, Choice | None]:
    """The forms of the release, None where the decoder writes alone, and the scores of the ways of choosing.

    The ranker is fitted on the validation part with forms that were not fitted on it; the forms of the
    release are then fitted on all questions. Raises ValueError where a ranker is required and the validation
    part is too small.
    """
    corpora, network = trained.corpora, trained.network
    enough = len(corpora.validation) >= FOLDS
    if network.name == "hub" or choose == "pointer" or (choose == "auto" and not enough):
        return None, None
    if choose == "ranked" and not enough:
        raise ValueError(f"the ranker is fitted on held-out questions: at least {FOLDS} are needed")
    encoder, recogniser = trained.encoder(), trained.recogniser()
    name, choice, weights = str(choose), None, list[float]()
    if enough:
        pointer = network.writer(search)
        assert isinstance(pointer, PointerWriter)
        forms = fit_forms(encoder, recogniser, corpora.training, trained.material.entities)
        weights, choice = fit_ranker(RankedWriter(pointer, forms, UNFITTED), corpora.validation)
        name = choice.best(LEAST) if choose == "auto" else choose
    if name == "pointer":
        return None, choice
    pairs = [*corpora.training, *corpora.validation]
    entities = recogniser.entities([p.summary for p in pairs])
    by_id = {p.id: e for p, e in zip(pairs, entities, strict=True)}
    templates = fit_forms(encoder, recogniser, pairs, by_id)
    return Forms(templates, weights if name == "ranked" else []), choice
