"""What a release of the summarizer contains and states: canary texts, sources, known words, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from models.encoder.base_files import base_digest
from models.releases.manifest import Release, TrainingData
from models.summarization.medical_entities import word_keys
from training.common.build import build_release
from training.common.corpora import PSYTAR_TRAINING, RQE_TRAINING
from training.evaluation.evaluate import manifest_scores
from training.summarization.data import Corpora

CANARY = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?",
    "SUBJECT: Ehlers-Danlos\nMESSAGE: I want to know everything about how it is treated, my son has it.",
    "tell me about gout",
]
WHY_EXTRACTIVE = (
    "The answer is the writer's own sentence, so it cannot ask what the writer did not. The decoder trained "
    "on MeQSum scores far more there, but on other texts its questions mostly ask something else."
)
SOURCES = {
    "meqsum": TrainingData(
        name="MeQSum (Ben Abacha and Demner-Fushman 2019), training part", licence="CC BY 4.0"
    ),
    "rqe": RQE_TRAINING,
    "psytar": PSYTAR_TRAINING,
}


def sources_of(configuration: Mapping[str, Any]) -> list[TrainingData]:
    """The corpora of a run with this configuration."""
    settings = configuration["training"]
    messages = settings["message_share"] and (settings["pretraining"] or settings["replay"])
    names = ["meqsum"]
    names += ["rqe"] if configuration["data"]["pairs"]["rqe"] else []
    names += ["psytar"] if messages else []
    return [SOURCES[name] for name in names]


def known_words(corpora: Corpora, least: int = 2) -> list[str]:
    """Words that are in at least `least` training summaries."""
    pairs = [*corpora.pretraining, *corpora.training]
    counts = Counter(word for p in pairs for word in set(word_keys(p.summary)))
    return sorted(word for word, n in counts.items() if n >= least)


def build(folder: Path, *, data: Path | None, base: str, root: Path, **parts: Any) -> Release:
    """Publishes the files of a folder with their scores on MeQSum's test part; `parts`: kind, configuration,
    training_data, device.
    """
    scores: Callable[[Any], Any] = lambda model: (  # noqa: E731
        manifest_scores("summarization", model, data, ("meqsum_test",)) if data else []
    )
    return build_release(
        folder,
        task="summarization",
        base=base,
        base_sha256=base_digest(base),
        canary=CANARY,
        scores=scores,
        root=root,
        **parts,
    )
