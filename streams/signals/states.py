"""Where signals stand: what was decided last, unless what came since then opens a signal again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from streams.records import Signal, SignalDecision, SignalState, SignalStatus, WindowStatistics
from streams.signals.population import Pair

STATES: tuple[SignalState, ...] = get_args(SignalState)
#: States that end the work on a signal.
ENDED: tuple[SignalState, ...] = ("refuted", "closed")
#: More unique reports than at the decision, by which an ended signal is new again.
MORE_REPORTS = 3
#: EB05 of at least this, and IC025 above the other, as the criteria have them.
EB05, IC025 = 2.0, 0.0
RULE = (
    f"A refuted or closed signal is new again with {MORE_REPORTS} more unique reports than at the decision, "
    f"or when EB05 reaches {EB05:g} or IC025 exceeds {IC025:g} and did not then."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Of one signal; the default is that of a signal on which nobody has decided."""

    status: SignalStatus = SignalStatus()  # noqa: RUF009 (is frozen)
    reopened: str = ""
    """Why an ended signal is new again; else empty."""
    decisions: tuple[SignalDecision, ...] = ()
    """In their order."""

    @property
    def state(self) -> SignalState | None:
        """None where nobody has decided."""
        return self.status.state if self.decisions else None

    @property
    def is_by_rule(self) -> bool:
        """Whether the last decision is that an ended signal is new again."""
        return bool(self.decisions) and not self.decisions[-1].reviewer

    @property
    def version(self) -> int:
        """Of what a form shows: the place in the chain of the last decision."""
        return self.decisions[-1].sequence if self.decisions else -1


UNDECIDED = Standing()


def standings(decisions: Iterable[SignalDecision], signals: Iterable[Signal]) -> dict[Pair, Standing]:
    """Of every signal that was decided on. `decisions` may repeat, from the topic and from the store;
    `signals` are those of unique reports of all sources, of which the present numbers are.
    """
    by_pair: defaultdict[Pair, list[SignalDecision]] = defaultdict(list)
    known = {decision.sequence: decision for decision in decisions}
    for _, decision in sorted(known.items()):
        by_pair[decision.drug, decision.term].append(decision)
    if not by_pair:
        return {}
    present = {(s.drug, s.term): s.windows["all"] for s in signals if (s.drug, s.term) in by_pair}
    return {pair: _standing(made, present.get(pair)) for pair, made in by_pair.items()}


def _standing(decisions: Sequence[SignalDecision], now: WindowStatistics | None) -> Standing:
    last = decisions[-1]
    if not last.reviewer:
        return Standing(last.after, last.reason, tuple(decisions))
    why = "; ".join(_news(last, now)) if now is not None and last.after.state in ENDED else ""
    status = replace(last.after, state="new") if why else last.after
    return Standing(status, why, tuple(decisions))


def _news(last: SignalDecision, now: WindowStatistics) -> Iterator[str]:
    """What has come since an ended signal was decided on."""
    more = unique_reports(now) - last.reports
    if more >= MORE_REPORTS:
        yield f"{more} more reports"
    if now.ebgm.low >= EB05 and (last.eb05 is None or last.eb05 < EB05):
        yield f"EB05 is {now.ebgm.low:.2f}"
    if now.ic.low > IC025 and (last.ic025 is None or last.ic025 <= IC025):
        yield f"IC025 is {now.ic.low:.2f}"


def unique_reports(statistics: WindowStatistics) -> int:
    """Reports of a pair, those of one case once; records of earlier versions state only what they counted."""
    return statistics.n if statistics.unique_reports is None else statistics.unique_reports


def standing_of(found: Mapping[Pair, Standing], signal: Signal) -> Standing:
    return found.get((signal.drug, signal.term), UNDECIDED)
