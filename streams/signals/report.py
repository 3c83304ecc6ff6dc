"""A self-contained HTML report of the signals, with the particulars that READUS-PV asks for."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

from streams.html import document
from streams.records import Limits, Signal, WatchState, WindowStatistics
from streams.signals.particulars import particulars
from streams.signals.surveillance import CAVEAT, Outcome

TITLE = "Signals of disproportionate reporting"
#: Pairs that the report shows at most.
SHOWN = 500
#: Pairs in the forest plot, and its measures in pixels.
PLOTTED = 30
ROW, LEFT, WIDTH, RIGHT = 22, 330, 420, 150
#: The plot's axis, as logarithms to the base 2.
AXIS = (-4, 8)
COLUMNS = (
    "Drug", "Term", "Reports (unique)", "Expected", "PRR", "Chi-square (Yates)", "ROR", "IC", "EBGM",
    "Criteria met", "Last 90 days", "Last 7 days", "Weekly watch", "State", "Known use",
)  # fmt: skip


def html(outcome: Outcome, releases: Sequence[str], version: str) -> str:
    """A page without scripts and external resources; it quotes no text of a report. `releases` names the
    models behind the reports.
    """
    shown = outcome.signals[:SHOWN]
    return document(
        "signals.html",
        title=TITLE,
        caveat=CAVEAT,
        plot=_forest(shown[:PLOTTED]),
        prior_note=outcome.windows["all"].prior_note,
        columns=COLUMNS,
        rows=[_cells(signal) for signal in shown],
        more=len(outcome.signals) - SHOWN,
        particulars=particulars(outcome, releases, version),
    )


def _forest(signals: Sequence[Signal]) -> dict[str, Any]:
    """EBGM with EB05 and EB95 of each signal on a logarithmic axis, in pixels."""
    rows = []
    for signal in signals:
        ebgm = signal.windows["all"].ebgm
        places = [_x(log2(max(v, 1e-9))) for v in (ebgm.low, ebgm.value, ebgm.high)]
        rows.append((f"{signal.drug}, {signal.term}", *places, _interval(ebgm)))
    return {
        "rows": rows,
        "ticks": [(_x(t), f"{2.0**t:g}") for t in range(AXIS[0], AXIS[1] + 1, 2)],
        "row": ROW, "left": LEFT, "right": LEFT + WIDTH, "width": LEFT + WIDTH + RIGHT,
        "height": ROW * (len(rows) + 2),
    }  # fmt: skip


def _x(log_ratio: float) -> float:
    """Place on the axis; what is outside is drawn at its end."""
    share = (min(max(log_ratio, AXIS[0]), AXIS[1]) - AXIS[0]) / (AXIS[1] - AXIS[0])
    return round(LEFT + WIDTH * share, 1)


def _cells(signal: Signal) -> list[str]:
    s = signal.windows["all"]
    return [
        signal.drug, signal.term, f"{s.all_reports} ({s.unique_reports})", f"{s.expected:.2f}",
        _interval(s.prr), f"{s.chi_square:.1f} ({s.chi_square_yates:.1f})", _interval(s.ror), _interval(s.ic),
        _interval(s.ebgm), ", ".join(s.criteria), _short(signal.windows.get("90d")),
        _short(signal.windows.get("7d")), _watched(signal.watch), signal.state or "",
        "yes" if signal.known_use else "",
    ]  # fmt: skip


def _interval(limits: Limits) -> str:
    return f"{limits.value:.2f} [{limits.low:.2f}, {limits.high:.2f}]"


def _short(s: WindowStatistics | None) -> str:
    return f"{s.n}; EB05 {s.ebgm.low:.2f}" if s else "0"


def _watched(state: WatchState | None) -> str:
    if state is None:
        return ""
    verdict = "signal" if state.signalled else "no signal"
    return f"{sum(state.n)} of {sum(state.expected):.2f} expected; {verdict}"
