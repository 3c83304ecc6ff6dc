"""Loads the model of a verified release, on condition that it passes the canary check of its manifest."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from models.drift import Reference, read_reference
from models.memory import give_back
from models.releases.manifest import NO_BASE, PassingError, Release, ReleaseError
from models.types import JUDGE

log = logging.getLogger(__name__)

#: Key of the configuration of a release whose scores are lower in 16 bits.
FLOAT32_ONLY = "float32_only"
#: Key of the configuration of a supplement: the version of the release that it extends.
EXTENDS = "extends"
#: Numbers of system errors that say nothing of what was read.
_EXHAUSTED = {errno.ENOMEM, errno.EMFILE, errno.ENFILE}


class Model(Protocol):
    """The interface of the model classes; inputs and outputs are plain strings or records of models.types."""

    task: str

    def predict(self, batch: Sequence[Any]) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with the task, version and kind of its release; records state the version."""

    task: str
    version: str
    kind: str
    model: Model
    canary: tuple[list[Any], list[Any], float]
    """inputs, expected outputs as JSON values, and the tolerance of their floating-point numbers"""
    generation: int = 0
    """Rises with each announcement that makes a release of the task live; 0 for one not announced."""
    reference: Reference | None = None
    """what its texts and answers were when it was made, to see how far those of now are from it"""
    judge: Loaded | None = None
    """of a tagger, the second reader of what it finds"""

    def passes_canary(self) -> bool:
        """Whether the model's outputs for the canary inputs, and those of its judge, are those recorded in
        the manifests.

        If the model class has a method `comparable`, only the parts that it returns are compared; a method
        `forget` is called first, so that no answer is one that the model keeps.
        """
        if self.judge is not None and not self.judge.passes_canary():
            return False
        inputs, expected, tolerance = self.canary
        if hasattr(self.model, "forget"):
            self.model.forget()
        answers = as_json(self.model.predict(inputs))
        if hasattr(self.model, "comparable"):
            answers, expected = self.model.comparable(answers), self.model.comparable(expected)
        return same_answers(answers, expected, tolerance)


def load(
    release: Release,
    *,
    device: str = "cpu",
    dtype: str = "auto",
    event_below: float | None = None,
    cache: Path | None = None,
) -> Loaded:
    """The model in the fastest number format in which it passes the canary check, or in `dtype`; in 32 bits
    where its configuration says so (`FLOAT32_ONLY`).

    `event_below`: the probability of an event below which a tagger gives no coded mention for a sentence,
    None for that of the release; `cache`: the folder of a judge's base. Models of other tasks have none of
    them. The check of the manifest runs without the first; the answers of the model with it are kept for a
    later check.

    Raises ReleaseError when it passes in no such format, or when anything in the release is invalid, and
    PassingError when memory or file handles do not suffice.
    """
    for name in _formats(release, device, dtype):
        try:
            loaded = _load_as(release, device, name, cache)
            passed = loaded.passes_canary()
        except ReleaseError:
            raise
        except Exception as error:
            # A release as declared may still be invalid: a missing setting, numbers that are not finite.
            kind = PassingError if _is_exhaustion(error) else ReleaseError
            raise kind(f"{release.task} {release.version}: {type(error).__name__}: {error}") from error
        if passed:
            give_back()  # what the loading needed beside the model
            return _with_choice(loaded, event_below)
        log.warning("%s %s: the canary check fails in %s", release.task, release.version, name)
    raise ReleaseError(f"{release.task} {release.version}: the canary answers are not those in the manifest")


def with_supplement(base: Loaded, supplement: Release) -> Loaded:
    """A loaded release with the neighbours of a supplement, under the version of that. Raises ReleaseError
    when it is not a supplement of this release, or changes a canary answer.
    """
    named = f"{supplement.task} {supplement.version}"
    extends = supplement.manifest.configuration.get(EXTENDS)
    model: Any = base.model
    if (base.task, base.version) != (supplement.task, extends) or not hasattr(model, "with_supplement"):
        raise ReleaseError(f"{named}: no supplement of {base.task} {base.version}, it extends {extends}")
    try:
        model = model.with_supplement(supplement)
    except ReleaseError:
        raise
    except Exception as error:
        raise ReleaseError(f"{named}: {type(error).__name__}: {error}") from error
    loaded = replace(base, version=supplement.version, kind=supplement.manifest.kind, model=model)
    if not loaded.passes_canary():
        raise ReleaseError(f"{named}: a decision changes a canary answer of {base.version}")
    return loaded


def _formats(release: Release, device: str, dtype: str) -> list[str]:
    """The names of the number formats to try, in order; those of tables alone are 32 bits."""
    if release.manifest.base == NO_BASE or release.manifest.configuration.get(FLOAT32_ONLY):
        return ["float32"]
    return number_formats(device) if dtype == "auto" else [dtype]


def _with_choice(loaded: Loaded, event_below: float | None) -> Loaded:
    model: Any = loaded.model
    if loaded.task != "ner" or event_below is None:
        return loaded
    model = model.with_decoding(event_below=event_below)
    inputs, _, tolerance = loaded.canary
    return replace(loaded, model=model, canary=(inputs, as_json(model.predict(inputs)), tolerance))


def _is_exhaustion(error: Exception) -> bool:
    """Whether memory or file handles did not suffice. PyTorch has an error of its own for a GPU's memory, and
    a plain RuntimeError for that of the machine.
    """
    if isinstance(error, OSError):
        return error.errno in _EXHAUSTED
    known = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return known or "can't allocate memory" in str(error)


def as_json(outputs: Any) -> Any:
    """A model's outputs as the JSON values that a manifest records; TypeError where that is not possible."""
    return orjson.loads(orjson.dumps(outputs, default=_consecutive_cosines))


def _consecutive_cosines(vectors: Any) -> list[float]:
    """Unit vectors (n, d) as the n - 1 cosines of each with the next, rounded to four decimals: the cosine is
    what the vectors are used for, and it needs far less space.
    """
    if getattr(vectors, "ndim", 0) != 2:  # noqa: PLR2004  a matrix
        raise TypeError(f"{type(vectors).__name__} is not an output of a model")
    return [round(cosine, 4) for cosine in (vectors[:-1] * vectors[1:]).sum(1).tolist()]


def same_answers(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two JSON values are equal; numbers of which one is floating-point may differ by `tolerance`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_answers(one[k], other[k], tolerance) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            same_answers(a, b, tolerance) for a, b in zip(one, other, strict=True)
        )
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if numbers and not (isinstance(one, bool) or isinstance(other, bool)):
        exact = isinstance(one, int) and isinstance(other, int)
        return bool(abs(one - other) <= (0 if exact else tolerance))
    return bool(one == other)


def number_formats(device: str) -> list[str]:
    """Names of the number formats that a device computes in, fastest first.

    On a GPU that is 32 bits, in which it gives the processor's answers and is fast enough (gpu_stages.json).
    """
    from models.encoder.number_formats import has_fast_bfloat16  # noqa: PLC0415

    return ["bfloat16", "float32"] if device == "cpu" and has_fast_bfloat16() else ["float32"]


def _load_as(release: Release, device: str, dtype: str, cache: Path | None) -> Loaded:
    options: dict[str, Any] = {"cache": cache} if release.task == JUDGE and cache is not None else {}
    if release.manifest.base != NO_BASE:
        import torch  # noqa: PLC0415  seconds and a few hundred megabytes, which tables do not need

        options |= {"device": device, "dtype": getattr(torch, dtype)}
    model = model_class(release.task).load(release, **options)
    canary = release.manifest.canary
    inputs, outputs = _answerable(model, canary.inputs, canary.outputs)
    if not outputs:
        raise ReleaseError(f"{release.task} {release.version}: no canary answer can be given today")
    checked = (canary_inputs(model, inputs), canary_outputs(model, outputs), canary.tolerance)
    kind, reference = release.manifest.kind, read_reference(release)
    return Loaded(release.task, release.version, kind, model, checked, reference=reference)


def _answerable(model: Any, inputs: list[Any], outputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """A canary without the answers that a model of this kind no longer gives, see its `is_answered`."""
    if not hasattr(model, "is_answered") or len(inputs) != len(outputs):
        return inputs, outputs
    kept = [i for i, stored in enumerate(outputs) if model.is_answered(stored)]
    return [inputs[i] for i in kept], [outputs[i] for i in kept]


def canary_inputs(model: Any, stored: list[Any]) -> list[Any]:
    """A manifest's canary inputs as the model's input type; most models accept the stored strings."""
    return list(model.canary_inputs(stored)) if hasattr(model, "canary_inputs") else stored


def canary_outputs(model: Any, stored: list[Any]) -> list[Any]:
    """A manifest's canary outputs, with defaults for fields that are newer than the manifest."""
    if not hasattr(model, "canary_outputs"):
        return stored
    try:
        return list(as_json(model.canary_outputs(stored)))
    except ValidationError:
        return stored  # which no model answers


def model_class(task: str) -> Any:
    """The model class of a task, imported here so that a worker of one stage imports one model's code.

    Raises ReleaseError for an unknown task.
    """
    match task:
        case "ner":
            from models.ner.model import NerModel as Class  # noqa: PLC0415
        case "acronym":
            from models.acronym.model import AcronymModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case "relation":
            from models.relation.model import RelationModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case "normalization":
            from models.normalization.model import NormalizationModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case "summarization":
            from models.summarization.model import SummarizationModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case "idiom":
            from models.idiom import IdiomModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case "judge":
            from models.ner.judge import JudgeModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case _:
            raise ReleaseError(f"no model for the task {task!r}")
    return Class
