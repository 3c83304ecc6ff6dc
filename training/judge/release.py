"""A release of a judge: its head, the rule of its decisions, and the digests of its base."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file

from models.encoder.model import Encoder
from models.judge.base import FILES, NAME, WEIGHTS, base_folder, digests
from models.judge.features import Features, HowToRead
from models.judge.model import HEAD
from models.releases.manifest import Release, TrainingData
from models.types import ADE, Case, Mention, Stated
from training.common import UserError
from training.common.build import build_release
from training.common.corpora import PSYTAR_TRAINING
from training.evaluation.coding.end_to_end import bundled_tagger
from training.evaluation.evaluate import manifest_scores
from training.judge.data import DECIDED, Example, read, vectors_of
from training.judge.settings import Settings
from training.judge.train import Fitted, Row, fit
from training.recipes.stages import Place
from training.teaching.readers import teaching_source
from training.teaching.reviewed import reviewed_source

REVIEWS = TrainingData(
    name="reviews of Druglib.com (Graesser et al. 2018), the recipe's part of the marked ones",
    licence="contradictory: not to be passed on",
)
_TEXTS = (
    ("I took it for my headache and it went away. The next day I had a rash.", ("headache", "rash")),
    ("No nausea so far, but I am afraid of seizures.", ("nausea", "seizures")),
    ("It made me sleepy, which is what I wanted.", ("sleepy",)),
)


def make(settings: Settings, place: Place) -> Release:
    """Reads the corpora, fits a head to their vectors, scores it, and writes a release. Raises UserError
    where no mention is an event.
    """
    corpora = read(place.data, settings, bundled_tagger(), place.reviews)
    examples = [example for own in corpora.values() for example in own]
    if not any(name == "event" for example in examples for name in example.classes):
        raise UserError("the corpora have no event to learn from: nothing is built")
    folder = base_folder(settings.base, FILES if settings.base == NAME else {}, Path(settings.cache))
    files = dict(FILES) if settings.base == NAME else digests(folder)
    encoder = Encoder.load(
        str(folder),
        device=str(place.device),
        dtype=getattr(torch, settings.precision),
        max_pieces=settings.max_pieces,
    )
    how = HowToRead(settings.around, settings.stated > 0, settings.texts)
    of = f"{files[WEIGHTS]} {settings.precision}"
    cache = Path(settings.cache).expanduser() / "vectors"
    vectors = vectors_of([e.case for e in examples], Features(encoder, how), of, cache)
    rows = [
        Row(vector, name)
        for example, own in zip(examples, vectors, strict=True)
        for name, vector in zip(example.classes, own, strict=True)
        if vector is not None
    ]
    return _built(fit(rows, settings), settings, files, how, corpora, place)


def _built(
    fitted: Fitted,
    settings: Settings,
    files: dict[str, str],
    how: HowToRead,
    corpora: dict[str, list[Example]],
    place: Place,
) -> Release:
    with tempfile.TemporaryDirectory(prefix="judge-") as name:
        save_file({n: t.contiguous() for n, t in fitted.head.state_dict().items()}, Path(name) / HEAD)
        return build_release(
            Path(name),
            task="judge",
            kind="judge, a hidden layer over a frozen encoder"
            if settings.hidden
            else "judge, linear over a frozen encoder",
            base=settings.base,
            base_sha256=files[WEIGHTS],
            configuration={
                "max_pieces": settings.max_pieces,
                "read": asdict(how),
                "classes": list(fitted.rule.classes),
                "threshold": fitted.rule.threshold,
                "raised_from": fitted.rule.raised_from,
                "base_files": dict(files),
                "training": {k: v for k, v in asdict(settings).items() if k not in {"base", "cache"}},
            },
            training_data=_sources(corpora),
            canary=[_case(text, names) for text, names in _TEXTS],
            scores=partial(
                manifest_scores, "judge", data=place.data, splits=_splits(place), limit=settings.limit
            )
            if place.is_scored
            else None,
            root=place.output,
            device=place.device,
        )


def _case(text: str, names: tuple[str, ...]) -> Case:
    places = [(text.index(name), name) for name in names]
    return Case(
        text, tuple(Mention(i, i + len(name), name, ADE, 0.9) for i, name in places), Stated(("zoloft",))
    )


def _splits(place: Place) -> list[str]:
    """PsyTAR's test part, and the marked reviews where their corpus is."""
    has_reviews = (place.data / "reviews/druglib.jsonl").is_file()
    return ["psytar_test", *(["reviews_development"] if has_reviews else [])]


def _sources(corpora: dict[str, list[Example]]) -> list[TrainingData]:
    sources = {"psytar": PSYTAR_TRAINING, "reviews": REVIEWS}
    if DECIDED in corpora:
        sources[DECIDED] = reviewed_source(len(corpora[DECIDED]))
    return [sources[name] if name in sources else teaching_source(len(own)) for name, own in corpora.items()]
