"""A self-contained HTML report of the signals, with the particulars that READUS-PV asks for."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log2

from streams.records import Limits, Signal, WatchState, WindowStatistics
from streams.replay.page import page, table
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
    "Drug", "Term", "Reports", "Expected", "PRR", "Chi-square (Yates)", "ROR", "IC", "EBGM", "Criteria met",
    "Last 90 days", "Last 7 days", "Weekly watch", "Known use",
)  # fmt: skip


def html(outcome: Outcome, releases: Sequence[str], version: str) -> str:
    """A page without scripts and external resources; it quotes no text of a report. `releases` names the
    models behind the reports.
    """
    shown = outcome.signals[:SHOWN]
    more = len(outcome.signals) - len(shown)
    return page(
        TITLE,
        f'<p role="note"><strong>{escape(CAVEAT)}</strong></p>',
        "<h2>EBGM of the pairs with the largest IC025</h2>",
        forest(shown[:PLOTTED]),
        "<h2>Pairs of drug and term</h2>",
        "<p>By falling IC025. In brackets: 95 % intervals, of EBGM EB05 and EB95. "
        f"{escape(outcome.windows['all'].prior_note)} Known use: people take the drug for it.</p>",
        *table(COLUMNS, [_cells(signal) for signal in shown]),
        *([f"<p>{more} more pairs are not shown.</p>"] if more > 0 else []),
        "<h2>What was done (READUS-PV)</h2>",
        "<dl>",
        *(
            f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
            for name, text in particulars(outcome, releases, version)
        ),
        "</dl>",
    )


def forest(signals: Sequence[Signal]) -> str:
    """EBGM with EB05 and EB95 of each signal on a logarithmic axis, as SVG."""
    if not signals:
        return "<p>No pair has enough reports.</p>"
    height = ROW * (len(signals) + 2)
    rows = "".join(_forest_row(signal, ROW * (i + 1)) for i, signal in enumerate(signals))
    ticks = "".join(
        f'<line x1="{_x(t):.0f}" x2="{_x(t):.0f}" y1="8" y2="{height - ROW}" stroke="var(--line)"/>'
        f'<text x="{_x(t):.0f}" y="{height - 4}" text-anchor="middle">{2.0**t:g}</text>'
        for t in range(AXIS[0], AXIS[1] + 1, 2)
    )
    return (
        f'<div class="wide"><svg viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" role="img" '
        f'aria-label="EBGM with EB05 and EB95" fill="currentColor" font-size="13">{ticks}{rows}</svg></div>'
    )


def _forest_row(signal: Signal, y: int) -> str:
    ebgm = signal.windows["all"].ebgm
    low, middle, high = (_x(log2(max(v, 1e-9))) for v in (ebgm.low, ebgm.value, ebgm.high))
    name = escape(f"{signal.drug}, {signal.term}")
    return (
        f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{name}</text>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{middle:.1f}" cy="{y}" r="4"/>'
        f'<text x="{LEFT + WIDTH + 10}" y="{y + 4}">{_interval(ebgm)}</text>'
    )


def _x(log_ratio: float) -> float:
    """Place on the axis; what is outside is drawn at its end."""
    return LEFT + WIDTH * (min(max(log_ratio, AXIS[0]), AXIS[1]) - AXIS[0]) / (AXIS[1] - AXIS[0])


def _cells(signal: Signal) -> list[str]:
    s = signal.windows["all"]
    return [
        signal.drug, signal.term, str(s.n), f"{s.expected:.2f}", _interval(s.prr),
        f"{s.chi_square:.1f} ({s.chi_square_yates:.1f})", _interval(s.ror), _interval(s.ic),
        _interval(s.ebgm), ", ".join(s.criteria), _short(signal.windows.get("90d")),
        _short(signal.windows.get("7d")), _watched(signal.watch), "yes" if signal.known_use else "",
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
