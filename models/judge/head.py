"""The head of a judge, and what its classes make of a mention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from torch import Tensor, nn

from models.releases.manifest import ReleaseError
from models.types import (
    ADE,
    CODED_LABELS,
    HYPOTHETICAL,
    INDICATION,
    NEGATED,
    NO_EVENT,
    OTHER,
    OWN,
    RELIEVED,
    SYMPTOM,
    WITHDRAWAL,
    Mention,
)

EVENT, WITHDRAWN = "event", "withdrawal"
#: Class to the label and the status of its mentions; without a label they keep that of the tagger.
MEANING: Mapping[str, tuple[str | None, str | None]] = {
    EVENT: (ADE, OWN),
    WITHDRAWN: (WITHDRAWAL, OWN),
    "relieved": (INDICATION, RELIEVED),
    "wanted": (INDICATION, RELIEVED),
    "indication": (INDICATION, "indication"),
    "symptom": (SYMPTOM, None),
    "denied": (None, NEGATED),
    "hypothetical": (None, HYPOTHETICAL),
    "other": (None, OTHER),
    # The words that say that a medicine did not work.
    "ineffective": (None, NO_EVENT),
    "none": (None, NO_EVENT),
}


class Decision(NamedTuple):
    """What a judge says of a mention."""

    name: str
    """of MEANING"""
    probability: float
    """of the class; of an event that of events and withdrawal symptoms together"""


@dataclass(frozen=True, slots=True)
class Rule:
    """How probabilities become decisions."""

    classes: tuple[str, ...]
    threshold: float
    """the probability of events and withdrawals together from which the tagger's events stay events"""
    raised_from: float = 0.0
    """the probability, if higher than the threshold, from which other mentions become events"""

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> Rule:
        """The rule in a release's configuration; raises ReleaseError for classes that mean nothing here, and
        for numbers that give no probabilities.
        """
        classes = tuple(configuration["classes"])
        rule = cls(
            classes,
            float(configuration["threshold"]),
            float(configuration.get("raised_from", 0.0)),
        )
        if unknown := set(classes) - MEANING.keys():
            raise ReleaseError(f"a judge with the unknown class {min(unknown)!r}")
        if EVENT not in classes or len(set(classes)) != len(classes):
            raise ReleaseError(f"a judge needs the class {EVENT!r}, and each class once")
        if not (0 <= rule.threshold <= 1 and 0 <= rule.raised_from <= 1):
            raise ReleaseError("a judge needs each threshold from 0 to 1")
        return rule

    def decisions(self, logits: Tensor, mentions: Sequence[Mention]) -> list[Decision]:
        """The decision on each mention, from logits (mentions, classes)."""
        rows = logits.softmax(-1).tolist()
        return [self._decision(row, is_event(mention)) for row, mention in zip(rows, mentions, strict=True)]

    def _decision(self, probabilities: Sequence[float], was_event: bool) -> Decision:
        by_class = dict(zip(self.classes, probabilities, strict=True))
        events = {name: by_class.pop(name) for name in (EVENT, WITHDRAWN) if name in by_class}
        own = min(1.0, sum(events.values()))
        least = self.threshold if was_event else max(self.threshold, self.raised_from)
        if own >= least or not by_class:
            return Decision(max(events, key=lambda name: events[name]), own)
        best = max(by_class, key=lambda name: by_class[name])
        return Decision(best, by_class[best])


def is_event(mention: Mention) -> bool:
    """Whether a tagger takes a mention for an event of the writer's."""
    return mention.label in CODED_LABELS and mention.status in (None, OWN)


def decided(mention: Mention, decision: Decision) -> Mention | None:
    """The mention as a judge decides; None where it is no mention of health at all."""
    label, status = MEANING[decision.name]
    if status == NO_EVENT:
        return None
    score = None if status is None else round(decision.probability, 4)
    return replace(mention, label=label or mention.label, status=status, status_score=score)


class JudgeHead(nn.Module):
    """Logits (mentions, classes) of vectors (mentions, size): linear, or over one hidden layer."""

    def __init__(self, size: int, classes: int, hidden: int = 0) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, hidden) if hidden else None
        self.output = nn.Linear(hidden or size, classes)

    @classmethod
    def stored(cls, tensors: Mapping[str, Tensor], size: int, classes: int) -> JudgeHead:
        """The head with these weights, whose shapes say whether it has a hidden layer; raises ReleaseError
        where they do not fit.
        """
        hidden = tensors["hidden.weight"].shape[0] if "hidden.weight" in tensors else 0
        shapes = {"output.weight": (classes, hidden or size), "output.bias": (classes,)}
        if hidden:
            shapes |= {"hidden.weight": (hidden, size), "hidden.bias": (hidden,)}
        if {name: tuple(t.shape) for name, t in tensors.items()} != shapes:
            raise ReleaseError(f"the judge's head is not one of {classes} classes over {size} numbers")
        head = cls(size, classes, hidden)
        head.load_state_dict({name: t.float() for name, t in tensors.items()})
        return head.eval()

    def forward(self, vectors: Tensor) -> Tensor:
        if self.hidden is not None:
            vectors = nn.functional.gelu(self.hidden(vectors))
        logits: Tensor = self.output(vectors)
        return logits
