"""From a trained network to a release: what writes, the guard's recogniser, canary and scores."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import save_file

from models.encoder.model import Encoder
from models.encoder.weights import MINI, base_digest
from models.ner.model import NerModel
from models.releases.manifest import Release, TrainingData
from models.summarization import medical_entities
from models.summarization.beam_search import Search
from models.summarization.generation import PointerWriter
from models.summarization.medical_entities import OwnRecogniser, word_keys
from models.summarization.model import WORDS, SummarizationModel
from models.summarization.question_templates import TemplateWriter
from models.summarization.reranker import UNFITTED, RankedWriter
from training.common.publish import publish_release
from training.evaluation.evaluate import manifest_scores
from training.evaluation.summarization import summary_counts
from training.summarization import question_types
from training.summarization.data import Corpora
from training.summarization.network import Network
from training.summarization.question_types import FOLDS, Choice, fit_forms, fit_ranker
from training.summarization.trainer import Task

Choose = Literal["auto", "pointer", "templates", "ranked"]
#: ROUGE-1 by which another way of choosing must be better than the decoder alone.
LEAST = 0.5
CANARY = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?",
    "SUBJECT: Ehlers-Danlos\nMESSAGE: I want to know everything about how it is treated, my son has it.",
    "tell me about gout",
]
SOURCES = {
    "meqsum": TrainingData(
        name="MeQSum (Ben Abacha and Demner-Fushman 2019), training part", licence="CC BY 4.0"
    ),
    "rqe": TrainingData(name="RQE (Ben Abacha and Demner-Fushman 2016), training part", licence="CC BY 4.0"),
    "mediqa": TrainingData(name="MEDIQA 2021 task 1, validation part", licence="CC BY 4.0"),
    "ade": TrainingData(
        name="ADE corpus v2 (Gurulingappa et al. 2012), sentences without an event",
        licence="none stated, citation asked",
    ),
    "psytar": TrainingData(name="PsyTAR (Zolnoori et al. 2019), training part", licence="CC BY 4.0"),
}


@dataclass(frozen=True, slots=True)
class Forms:
    """What stands beside the decoder, and why."""

    templates: TemplateWriter
    weights: list[float]
    """of the ranker; none: the forms write alone"""


def forms_of(
    network: Network, tagger: Release, corpora: Corpora, task: Task, search: Search, choose: Choose
) -> tuple[Forms | None, Choice | None]:
    """What stands beside the decoder, None where it writes alone, and how the ways of choosing did.

    The ranker is fitted on the validation part with forms that have not seen it; the forms of the release are
    then fitted on all questions.
    """
    name: str = choose
    enough = len(corpora.validation) >= FOLDS
    if network.name == "hub" or choose == "pointer" or (choose == "auto" and not enough):
        return None, None
    if choose == "ranked" and not enough:
        raise ValueError(f"the ranker is fitted on held-out questions: at least {FOLDS} are wanted")
    encoder = Encoder.load(network.base, max_pieces=256)
    own = OwnRecogniser.bundled(NerModel.load(tagger))
    choice, weights = None, list[float]()
    if enough:
        pointer = network.writer(search)
        assert isinstance(pointer, PointerWriter)
        first = fit_forms(encoder, own, corpora.training, task.entities)
        weights, choice = fit_ranker(RankedWriter(pointer, first, UNFITTED), corpora.validation)
        name = choice.best(LEAST) if choose == "auto" else choose
    if name == "pointer":
        return None, choice
    every = [*corpora.training, *corpora.validation]
    found = own.entities([p.summary for p in every])
    templates = fit_forms(encoder, own, every, {p.id: e for p, e in zip(every, found, strict=True)})
    return Forms(templates, weights if name == "ranked" else []), choice


def best_search(
    network: Network, tagger: Release, corpora: Corpora, wanted: Sequence[Search]
) -> tuple[Search, dict[str, float]]:
    """Of some searches the one whose answers, as they are served, have the best ROUGE-1 on the validation
    part (the first where there is none), and the scores by their beams.
    """
    if len(wanted) == 1 or not corpora.validation:
        return wanted[0], {}
    encoder = Encoder.load(MINI if network.name == "hub" else network.base, max_pieces=256)
    own = OwnRecogniser.bundled(NerModel.load(tagger))
    known = frozenset(known_words(corpora, ()))
    scores = {}
    for search in wanted:
        model = SummarizationModel(encoder, network.writer(search), own, known)
        answers = [s.text for s in model.predict([p.question for p in corpora.validation])]
        counts = summary_counts(answers, [p.summary for p in corpora.validation])
        scores[str(search.beams)] = round(float(counts[:, 0].mean()), 2)
    return max(wanted, key=lambda s: scores[str(s.beams)]), scores


def known_words(corpora: Corpora, forms: Iterable[str], least: int = 2) -> list[str]:
    """WordPieces that come at least so often in the training summaries, and those of the forms."""
    pairs = [*corpora.pretraining, *corpora.training]
    counts = Counter(word for p in pairs for word in set(word_keys(p.summary)))
    kept = {word for word, n in counts.items() if n >= least}
    return sorted(kept | {word for form in forms for word in word_keys(form)})


def publish(
    network: Network,
    tagger: Release,
    corpora: Corpora,
    data: Path,
    root: Path,
    configuration: dict[str, Any],
    forms: Forms | None,
    choice: Choice | None,
) -> Release:
    """Writes what was trained, and the scores on MeQSum's test part."""
    folder = Path(tempfile.mkdtemp(prefix="summarization-"))
    for name, tensors in network.files().items():
        save_file(tensors, folder / name)
    known = known_words(corpora, forms.templates.templates if forms else ())
    (folder / WORDS).write_text("\n".join(["word", *known]) + "\n", encoding="utf-8")
    medical_entities.write(folder, tagger)
    kind = f"ECL: {network.name} decoder"
    if forms:
        question_types.save(forms.templates, folder)
        configuration = configuration | {"ranker": forms.weights}
        kind += " and forms, ranked" if forms.weights else ", forms alone answer"
    if choice:
        configuration = configuration | {"choice": choice._asdict()}
    counts = configuration["data"]["pairs"]
    used = ["meqsum", *(["rqe", "mediqa"] if counts["rqe"] else [])]
    told = _tells(configuration["training"]) or _tells(configuration.get("start"))
    used += ["ade"] if counts["denoising"] else []
    used += ["psytar"] if counts["denoising"] or told else []
    return _published(
        folder,
        kind=f"{kind}; guard over named entities, extractive where it fails",
        base=network.base,
        configuration=network.configuration()
        | {
            "sentence_base": MINI if network.name == "hub" else network.base,
            "focus_base": tagger.manifest.base,
        }
        | configuration,
        training_data=[SOURCES[name] for name in used],
        data=data,
        root=root,
    )


def _tells(settings: Mapping[str, Any] | None) -> bool:
    """Whether a run with these settings, or one that it started from, has told questions in patients'
    sentences.
    """
    if settings is None:
        return False
    first, *later = settings["stages"]
    told = first["told"] and (first["epochs"] or any(stage["replay"] for stage in later))
    return bool(told) or _tells(settings.get("start"))


def publish_extractive(data: Path | None, root: Path, base: str) -> Release:
    """The release that only picks sentences."""
    return _published(
        Path(tempfile.mkdtemp(prefix="summarization-")),
        kind="extractive: the asking sentence nearest to the whole question",
        base=base,
        configuration={"max_pieces": 256},
        training_data=[],
        data=data,
        root=root,
    )


def _published(folder: Path, *, data: Path | None, base: str, **parts: Any) -> Release:
    scores: Callable[[Any], Any] = lambda model: (  # noqa: E731
        manifest_scores("summarization", model, data, ("meqsum_test",)) if data else []
    )
    release = publish_release(
        folder,
        task="summarization",
        base=base,
        base_sha256=base_digest(base),
        canary=CANARY,
        scores=scores,
        **parts,
    )
    shutil.rmtree(folder)
    return release
