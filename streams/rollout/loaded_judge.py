"""The judge of the stage `ner`: loaded beside its tagger as PV_JUDGE says, and followed by its own key."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from models.encoder import mpnet
from models.loading import Loaded
from models.releases.manifest import ReleaseError
from models.releases.store import bundled, bundled_version, open_release
from models.types import JUDGE
from streams import metrics
from streams.records import Announcement
from streams.rollout.announcements import Refusal, is_passing
from streams.rollout.handle import Handle
from streams.rollout.loading import load_release
from streams.rollout.reload import load_at_start
from streams.settings import Settings

log = logging.getLogger(__name__)
#: The stage that a judge belongs to.
STAGE = "ner"
WITHOUT_BASE = "the base of the judge is not installed: the tagger alone reads posts"
#: In the place of a release where there is none: it has no model.
NO_JUDGE = Loaded(JUDGE, "none", "none", None, ([], [], 0.0))  # type: ignore[arg-type]


def judge_at_start(announced: Announcement | None, settings: Settings, generation: int = 0) -> Handle | None:
    """The judge that a worker starts with, one that has no model where none can be loaded: then the tagger
    decides alone, and an announcement may bring one. None where PV_JUDGE is `off`.

    Raises ReleaseError where PV_JUDGE is `on` and there is no release, or all are refused.
    """
    if settings.judge == "off":
        return None
    for outcome in ("loaded", "refused"):
        metrics.RELOADS.labels(JUDGE, outcome)
    metrics.FALLBACK.labels(JUDGE)
    if announced is None and not _has_release(settings):
        if settings.judge == "on":
            raise ReleaseError("PV_JUDGE is on, but no release of a judge is bundled, named or announced")
        if lacks_base(settings):
            log.info("%s; `make judge` installs it", WITHOUT_BASE)
        return Handle(NO_JUDGE)
    try:
        return load_at_start(JUDGE, announced, settings, generation)
    except Exception as error:
        if settings.judge == "on":
            raise
        log.warning("the judge is refused, the tagger decides alone: %s", _reason(error))
        handle = Handle(NO_JUDGE)
        version = announced.version if announced is not None else bundled_version(JUDGE) or "none"
        handle.refused = Refusal(version, _reason(error), is_passing(error))
        return handle


def is_wanted(settings: Settings) -> bool:
    """Whether a worker starts with a judge where none is announced."""
    return settings.judge != "off" and _has_release(settings)


def with_judge(loaded: Loaded, settings: Settings, name: str | Path | None = None) -> Loaded:
    """A tagger with its judge where it should have one, as in a worker without announcements; other models
    unchanged. `name`: a release that must be used. Raises ReleaseError.
    """
    if loaded.task != STAGE:
        return loaded
    if name is not None:
        return replace(loaded, judge=load_release(JUDGE, name, settings))
    handle = judge_at_start(None, settings)
    return loaded if handle is None or handle.current.model is None else replace(loaded, judge=handle.current)


def lacks_base(settings: Settings) -> bool:
    """Whether the bundled judge would serve, but for its base, which is not installed."""
    if JUDGE in settings.releases or bundled_version(JUDGE) is None:
        return False
    needs_it = open_release(bundled(JUDGE)).manifest.base == mpnet.NAME
    return needs_it and not mpnet.is_installed(settings.cache)


def _has_release(settings: Settings) -> bool:
    """Whether PV_RELEASES names a judge, or one is bundled that can be used: with `auto` a machine without
    its base goes without it.
    """
    if JUDGE in settings.releases or bundled_version(JUDGE) is None:
        return JUDGE in settings.releases
    return settings.judge == "on" or not lacks_base(settings)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ReleaseError) else type(error).__name__
