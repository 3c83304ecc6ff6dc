"""Loads the models before a process divides, so that its copies share their memory."""

from __future__ import annotations

import logging
import os
import sys

from models.loading import model_class
from models.memory import give_back
from models.types import JUDGE, TASKS
from streams.agents.pipeline import STAGES
from streams.inference_threads import set_threads
from streams.rollout.loaded_judge import is_wanted
from streams.rollout.loading import kept_folder, kept_versions, preload
from streams.settings import Settings
from streams.stopping import freeze

log = logging.getLogger(__name__)


def share_models(settings: Settings) -> bool:
    """Imports and loads what a worker with all stages starts with where no other release is announced, as far
    as it is on this machine; returns whether this process may be copied with it. It may not on a GPU, on
    other systems than Linux, and where a library has started a thread, which a copy would not have.
    """
    if sys.platform != "linux" or settings.device != "cpu":
        return False
    import streams.worker  # noqa: F401  seconds, which the command line must not wait for

    for task in TASKS:
        model_class(task)
    set_threads(1)  # otherwise OpenMP starts some
    for task in (*TASKS, *([JUDGE] if is_wanted(settings) else [])):
        _load(task, settings)
    for stage in STAGES:
        if stage.prepare is not None:
            stage.prepare()
    freeze()
    give_back()
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        log.warning("the processes share no models, because there are %d threads", threads)
    return threads == 1


def _load(task: str, settings: Settings) -> None:
    """The store is not asked, because its client may start threads. What fails is left to the worker."""
    name = settings.releases.get(task)
    kept = kept_versions(task, settings)
    if name is None and kept:
        name = kept_folder(task, settings) / kept[0]
    try:
        preload(task, name, settings)
    except Exception as error:
        log.warning("%s is not shared by the processes: %s", task, type(error).__name__)
