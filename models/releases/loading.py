"""From a verified release to a model that answers its canary as it did when it was made."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from models.releases.manifest import Release, ReleaseError

log = logging.getLogger(__name__)


class Model(Protocol):
    """What the five model classes share; inputs and outputs are records of models.types or plain strings."""

    task: str

    def predict(self, batch: Sequence[Any]) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model together with the version that goes into every record it touches."""

    task: str
    version: str
    kind: str
    model: Model
    canary: tuple[list[Any], list[Any], float]

    def answers_canary(self) -> bool:
        """Whether the model still gives the answers recorded in its manifest."""
        inputs, outputs, tolerance = self.canary
        answers = plain(self.model.predict(inputs))
        if hasattr(self.model, "comparable"):
            answers, outputs = self.model.comparable(answers), self.model.comparable(outputs)
        return same_answers(answers, outputs, tolerance)


def load(release: Release, *, device: str = "cpu", dtype: str = "auto") -> Loaded:
    """Loads in the fastest number format whose canary answers are right; raises ReleaseError when none is."""
    for name in formats(device) if dtype == "auto" else [dtype]:
        try:
            loaded = _load_as(release, device, name)
            right = loaded.answers_canary()
        except ReleaseError:
            raise
        except Exception as error:
            # What is declared may still be nonsense: a missing setting, numbers that are not finite.
            raise ReleaseError(
                f"{release.task} {release.version}: {type(error).__name__}: {error}"
            ) from error
        if right:
            return loaded
        log.warning("%s %s: canary answers move in %s", release.task, release.version, name)
    raise ReleaseError(f"{release.task} {release.version}: the canary answers are not those in the manifest")


def plain(outputs: Any) -> Any:
    """Outputs as the JSON in which a manifest records them."""
    return orjson.loads(orjson.dumps(outputs, default=_neighbours))


def _neighbours(vectors: Any) -> list[float]:
    """Unit vectors (n, d) as the n - 1 cosines of neighbours: what they are for, and hundreds of numbers
    less.
    """
    if getattr(vectors, "ndim", 0) != 2:  # noqa: PLR2004  a matrix
        raise TypeError(f"{type(vectors).__name__} is no output of a model")
    return [round(cosine, 4) for cosine in (vectors[:-1] * vectors[1:]).sum(1).tolist()]


def same_answers(one: Any, other: Any, tolerance: float) -> bool:
    """Equal but for floating-point numbers, which may differ by `tolerance`."""
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


def formats(device: str) -> list[str]:
    import torch  # noqa: PLC0415  seconds to import; the CLI must not wait

    if device != "cpu":
        return ["bfloat16", "float32"] if torch.cuda.is_bf16_supported() else ["float32"]
    # Without AMX the 16-bit product is slower, not faster (benchmarks/encoder.py).
    return ["bfloat16", "float32"] if torch.cpu._is_amx_tile_supported() else ["float32"]


def _load_as(release: Release, device: str, dtype: str) -> Loaded:
    import torch  # noqa: PLC0415

    model = model_class(release.task).load(release, device=device, dtype=getattr(torch, dtype))
    canary = release.manifest.canary
    answers = (
        canary_inputs(model, canary.inputs),
        canary_outputs(model, canary.outputs),
        canary.tolerance,
    )
    return Loaded(release.task, release.version, release.manifest.kind, model, answers)


def canary_inputs(model: Any, stored: list[Any]) -> list[Any]:
    """A manifest's canary inputs as the model takes them; most take plain strings."""
    return list(model.canary_inputs(stored)) if hasattr(model, "canary_inputs") else stored


def canary_outputs(model: Any, stored: list[Any]) -> list[Any]:
    """A manifest's canary outputs with the fields that answers have gained since it was written."""
    return list(plain(model.canary_outputs(stored))) if hasattr(model, "canary_outputs") else stored


def model_class(task: str) -> Any:
    """The class of a task; imported late, so that a worker of one stage loads one model's code."""
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
            from models.idiom.model import IdiomModel as Class  # type: ignore[assignment]  # noqa: PLC0415
        case _:
            raise ReleaseError(f"no model for the task {task!r}")
    return Class
