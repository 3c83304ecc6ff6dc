"""Scores of releases, and the comparison by which a release passes the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.loading import Loaded
from models.scores import Comparison
from models.types import RELEASED
from streams.agents.annotator import Annotator
from streams.records import CodedReport, Report
from streams.rollout.announcing import PARTNER, GateError
from streams.rollout.loading import load_release
from streams.settings import Settings
from training.evaluation import evaluate as evaluation
from training.evaluation.evaluate import POSTS, Evaluation, EvaluationError, PostModels

_NO_DATA = Path()


def score(  # noqa: PLR0913  the options of a command
    task: str,
    releases: Mapping[str, str | Path],
    data: Path | None,
    settings: Settings,
    *,
    split: str | None = None,
    limit: int = 0,
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> Evaluation:
    """Scores a release of the task, or of posts one of each task that makes their events, on a split, or on
    the `rows` of the file `data`.

    `releases`: task to version or directory; the others are the bundled ones. Raises EvaluationError where
    the split cannot be read, and ReleaseError.
    """
    split = split or evaluation.SPLITS[task][0]
    if data is None and (task, split) != (POSTS, evaluation.SPLITS[POSTS][0]):
        raise EvaluationError(f"{task} {split} requires --data")
    needed = tuple(PARTNER) if task == POSTS else (task,)
    if unused := releases.keys() - set(needed):
        raise EvaluationError(
            f"{task} is evaluated with a release of {' and '.join(needed)}, not {min(unused)}"
        )
    if task not in RELEASED and task != POSTS and task not in releases:
        raise EvaluationError(f"no release of {task} comes with pvstream: train one and name it by --release")
    loaded = [load_release(name, releases.get(name), settings) for name in needed]
    model: Any = _together(*loaded) if task == POSTS else loaded[0].model
    version = "+".join(release.version for release in loaded)
    if data is not None and rows is not None:
        corpus = evaluation.corpus_of(task, data, rows)
        return evaluation.evaluate_on(task, model, version, evaluation.FILE, corpus)
    return evaluation.evaluate(task, model, version, data or _NO_DATA, split, limit)


def code_posts(
    tagger: Any, coder: Any, texts: Sequence[str], drugs: Sequence[str | None]
) -> list[CodedReport]:
    """One coded report for each post, in order. `drugs`: what the source of each states."""
    posts = zip(texts, drugs, strict=True)
    reports = [Report(id=str(i), text=text, drug=drug) for i, (text, drug) in enumerate(posts)]
    return Annotator.of_models("posts", tagger, coder).predict(reports)


def _together(tagger: Loaded, coder: Loaded) -> PostModels:
    return PostModels(tagger.model, coder.model, code_posts)


class Comparing:
    """Compares a release with the live one: of the tagger and the coder of posts their events in the held-out
    posts that come with this package, of other tasks the held-out set below `data`.
    """

    def __init__(self, data: Path | None) -> None:
        self.data = data
        self.further: Comparison | None = None
        """for the tagger and the coder also their score on the task's held-out set, which is not used by the
        gate
        """

    def __call__(self, candidate: Loaded, live: Loaded, partner: Loaded | None) -> Comparison | None:
        """The comparison on which the gate decides, None without data; raises GateError."""
        try:
            on_data = self._on_data(candidate, live) if self.data else None
            if partner is None:
                return on_data
            self.further = on_data
            of_candidate, of_live = (self._on_posts(loaded, partner) for loaded in (candidate, live))
            return evaluation.compare(of_candidate, of_live)
        except EvaluationError as error:
            raise GateError(str(error)) from None

    def _on_data(self, candidate: Loaded, live: Loaded) -> Comparison:
        assert self.data is not None
        of_candidate, of_live = (
            evaluation.evaluate(loaded.task, loaded.model, loaded.version, self.data)
            for loaded in (candidate, live)
        )
        return evaluation.compare(of_candidate, of_live)

    @staticmethod
    def _on_posts(scored: Loaded, partner: Loaded) -> Evaluation:
        models = {loaded.task: loaded for loaded in (scored, partner)}
        tagger, coder = (models[task] for task in PARTNER)
        return evaluation.evaluate(
            POSTS, _together(tagger, coder), f"{tagger.version}+{coder.version}", _NO_DATA
        )
