"""Makes releases of the summarizer: trained to extract, trained to write (ECL), or with today's tables. A
release that writes has the scores of the paper's method; no stage serves it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from safetensors.torch import save_file

from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need, is_encoder_decoder
from models.encoder.model import Encoder
from models.ner.model import NerModel
from models.releases.manifest import Release, TrainingData
from models.summarization import medical_entities
from models.summarization.extraction.extractor import KEY_TENSOR, KEY_WEIGHTS
from models.summarization.extraction.message import messages
from models.summarization.extraction.ranker import ANSWER_RANKER, FOCUS_RANKER, INSERTION_RANKER, save
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import WRITTEN
from training.common.build import build_release
from training.common.checkpoint import digest_of
from training.common.loop import TrainingLoop
from training.common.program import check_base
from training.evaluation.evaluate import manifest_scores
from training.evaluation.summarization.measure import bundled_tagger
from training.recipes.recipe import RecipeError
from training.recipes.stages import Place, Task
from training.summarization.data import Pair, decoder_pairs, extraction_pairs
from training.summarization.decoder import Decoder, Search
from training.summarization.extraction.key_words import with_key_words
from training.summarization.extraction.rankers import Weights, train
from training.summarization.network import MAX_PIECES, Network
from training.summarization.settings import Settings
from training.summarization.train import Ecl
from training.teaching.batches import ID
from training.teaching.readers import teaching_source

console = Console()
CANARY = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?",
    "SUBJECT: Ehlers-Danlos\nMESSAGE: I want to know everything about how it is treated, my son has it.",
    "tell me about gout",
]
EXTRACTING = "extractive: the asking clause by a trained ranker, with the names that it lacks"
WRITING = "ECL: an encoder-decoder; measured, served by no stage"
MEQSUM = TrainingData(name="MeQSum (Ben Abacha and Demner-Fushman 2019), training part", licence="CC BY 4.0")
#: Files and settings of an editor, which releases had once.
_OF_THE_EDITOR = ("edit_ranker.tsv", "kinds.safetensors"), ("limits", "margin", "rankers", "why_extractive")


def extracting(settings: Settings, place: Place) -> Release:
    """The release that extracts: rankers over the base, which is not changed."""
    pairs = extraction_pairs(place.data, settings.limit)
    encoder = Encoder.load(settings.base, device=str(place.device), max_pieces=MAX_PIECES)
    lexicons = OwnRecogniser.bundled(None)
    read = with_key_words(messages(encoder, lexicons, [p.question for p in pairs]), pairs)
    weights = train(encoder, lexicons.drugs, pairs, read)
    least = weights.thresholds
    console.print(f"{len(pairs)} questions; a name is inserted from probability {least.behind} on")
    configuration = {"max_pieces": MAX_PIECES, "thresholds": least._asdict(), "questions": len(pairs)}
    write: Callable[[Path], None] = lambda folder: _write_rankers(weights, folder)  # noqa: E731
    return _build(write, EXTRACTING, settings.base, configuration, sources(pairs), place)


def writing(settings: Settings, place: Place) -> Release:
    """The release that writes. Entities are found by Stanza's models, or by the bundled tagger."""
    pairs, validation = decoder_pairs(place.data, settings.seed, settings.limit)
    tagger = NerModel.load(bundled_tagger(), device=str(place.device))
    recogniser = medical_entities.recogniser(tagger, place.data / "stanza")
    network = Network(settings.base)
    trainee = Ecl(network, settings, pairs, validation, recogniser, place.device)
    named = sum(map(bool, trainee.entities.values())) / max(1, len(pairs))
    counts = f"{len(pairs)} questions, {len(validation)} for validation"
    console.print(f"{counts}; focus identification rate {named:.3f} by {recogniser.name}", highlight=False)
    training = asdict(settings) | {"data": digest_of([*pairs, *validation])}
    TrainingLoop(trainee, training, place.checkpoints).run()
    configuration = {
        "training": training,
        "entities_by": recogniser.name,
        "max_pieces": MAX_PIECES,
        "search": asdict(Search()),
    }

    def write(folder: Path) -> None:
        save_file(network.weights(), folder / WRITTEN)

    return _build(write, WRITING, settings.base, configuration, [MEQSUM], place)


def refreshed(release: Release, place: Place) -> Release:
    """The release with today's terms and drugs, and without the files of an editor; its scores are measured
    anew. One that writes has no tables, and is returned as it is.
    """
    manifest = release.manifest
    if WRITTEN in manifest.files:
        return release
    files, settings = _OF_THE_EDITOR

    def write(folder: Path) -> None:
        for name in manifest.files.keys() - set(files):
            shutil.copyfile(release.file(name), folder / name)
        medical_entities.write_lexicons(folder)

    configuration = {k: v for k, v in manifest.configuration.items() if k not in settings}
    like = configuration | {"like": release.version}
    return _build(write, EXTRACTING, manifest.base, like, manifest.training_data, place)


def _build(
    write: Callable[[Path], None],
    kind: str,
    base: str,
    configuration: dict[str, Any],
    training_data: Iterable[TrainingData],
    place: Place,
) -> Release:
    """The release of what `write` puts into a folder, with its scores on MeQSum's test part."""
    with tempfile.TemporaryDirectory(prefix="summarization-") as name:
        write(Path(name))
        return build_release(
            Path(name),
            task="summarization",
            kind=kind,
            base=base,
            base_sha256=base_digest(base),
            configuration=configuration,
            training_data=list(training_data),
            canary=CANARY,
            scores=lambda model: manifest_scores("summarization", model, place.data, ("meqsum_test",)),
            root=place.output,
            device=place.device,
            model_kind=Decoder if kind == WRITING else None,
        )


def _write_rankers(weights: Weights, folder: Path) -> None:
    """Writes the rankers, the regression of key words, and the lexicons that they were fitted with."""
    save(weights.focus, folder / FOCUS_RANKER)
    save(weights.answer, folder / ANSWER_RANKER)
    save(weights.insertion, folder / INSERTION_RANKER)
    save_file({KEY_TENSOR: weights.key_words.weights.contiguous()}, folder / KEY_WEIGHTS)
    medical_entities.write_lexicons(folder)


def sources(pairs: Sequence[Pair]) -> list[TrainingData]:
    """The corpora of these pairs."""
    written = sum(p.id.startswith(ID) for p in pairs)
    return [*([MEQSUM] if written < len(pairs) else []), teaching_source(written)]


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a base that the method cannot use."""
    check_base(settings.base, Need(pieces=MAX_PIECES, encoder_decoder=settings.method == "decoder"))
    if settings.method == "decoder" and not is_encoder_decoder(settings.base):
        raise RecipeError(f"{settings.base} cannot be used: an encoder-decoder is needed, such as BART")


def make(settings: Settings, place: Place) -> Release:
    """The release of the method that the settings name."""
    return (writing if settings.method == "decoder" else extracting)(settings, place)


TASK = Task(Settings, check, make, refresh=refreshed)
