"""What is made from other files: tables of the documentation and of the page, between their markers, and the
alerts as an object of Kubernetes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import indent
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from benchmarks.headline import HEADLINES
from streams import metrics
from streams.agents.pipeline import STAGES
from streams.settings import SECRETS, Settings
from streams.store.follow import FOLLOWED
from streams.topics import (
    CURSORS,
    DAY,
    DELETED_MS,
    EVENTS,
    INPUTS,
    LEASES,
    RELEASES,
    REVIEWS,
    SEGMENT_MS,
    SIGNALS,
    TOPICS,
    Topic,
)

ROOT = Path(__file__).parents[2]
#: In the README: the result that stands for each task.
SHOWN = (
    "evaluation_ner",
    "evaluation_normalization_end_to_end",
    "evaluation_posts_psytar",
    "re_corpus_f1",
    "evaluation_acronym",
    "evaluation_summarization",
)
#: Who reads the topics that no stage reads and that are not for users.
READERS = {
    RELEASES.name: "every worker",
    CURSORS.name: "`pvstream source`",
    LEASES.name: "`pvstream web`",
}
_START, _END = "<!-- generated: {} -->\n", "\n<!-- end -->"


def settings_table() -> list[str]:
    """One row for each setting: variable, values, default, meaning. A secret shares its row with its file."""
    files = {f"{secret}_file" for secret in SECRETS}
    rows = [
        (_variables(name), _values(field), _default(field), _meaning(field))
        for name, field in Settings.model_fields.items()
        if name not in files
    ]
    return table(("variable", "values", "default", "meaning"), rows)


def _variables(name: str) -> str:
    variable = f"PV_{name.upper()}"
    return f"`{variable}`, `{variable}_FILE`" if name in SECRETS else f"`{variable}`"


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split()).replace("*", r"\*")


def _values(field: FieldInfo) -> str:
    kind = field.annotation
    if isinstance(kind, UnionType):
        # A setting without a default value: its type, or None.
        (kind,) = (own for own in get_args(kind) if own is not NoneType)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is dict:
        return "JSON"
    if kind is bool:
        return "`true`, `false`"
    if kind in (str, SecretStr):
        return "text"
    if kind in (int, float):
        bounds = [_bound(rule) for rule in field.metadata]
        name = "whole number" if kind is int else "number"
        return ", ".join([name, *(bound for bound in bounds if bound)])
    return "path"


def _bound(rule: Any) -> str:
    """`ge=1` as words."""
    words = {"ge": "at least", "gt": "above", "le": "at most"}
    found = [f"{words[name]} {_number(getattr(rule, name))}" for name in words if hasattr(rule, name)]
    return found[0] if found else ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, SecretStr) or value in (None, ""):
        return ""
    if value == {}:
        return "`{}`"
    if isinstance(value, bool):
        return f"`{value}`".lower()
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def topics_table() -> list[str]:
    """One row for each topic but those of dead letters, which have one row together."""
    sources: dict[str, list[str]] = {source.name: [] for stage in STAGES for source in stage.sources}
    sinks: dict[str, list[str]] = {}
    for stage in STAGES:
        for source in stage.sources:
            sources[source.name].append(stage.name)
        sinks.setdefault(stage.sink.name, []).append(stage.name)
    rows = []
    for topic in TOPICS:
        if topic.name.endswith(".dead"):
            continue
        writers = sinks.get(topic.name) or _written_by(topic)
        readers = sources.get(topic.name) or _read_by(topic)
        kind = ", ".join(kind.__name__ for kind in topic.kinds) or "the original bytes"
        rows.append((f"`{topic.name}`", kind, ", ".join(writers), ", ".join(readers), *_kept(topic)))
    dead = _kept(INPUTS[0].dead_letters)
    rows.append(("`<source>.dead`", "the original bytes", "any stage", "`pvstream redrive`", *dead))
    return table(("topic", "record", "written by", "read by", "partitions", "kept"), rows)


def _written_by(topic: Topic[Any]) -> list[str]:
    if topic in INPUTS:
        return ["`pvstream ingest`, `pvstream source` or you"]
    if topic == CURSORS:
        return ["`pvstream source`"]
    if topic == SIGNALS:
        return ["`pvstream signals`"]
    if topic in (REVIEWS, LEASES):
        return ["`pvstream web`"]
    return ["`pvstream announce`, `rollback`, `supplement`"]


def _read_by(topic: Topic[Any]) -> list[str]:
    if topic in (EVENTS, REVIEWS):
        return ["`pvstream store`", "`pvstream web`", "you"]
    if topic in FOLLOWED:
        return ["`pvstream store`", "you"]
    return [READERS.get(topic.name, "you")]


def _days(number: int) -> str:
    return f"{number} day{'s' if number > 1 else ''}"


def _kept(topic: Topic[Any]) -> tuple[str, str]:
    kept = "the last of each key" if topic.compacted else _days(topic.retention_ms // DAY)
    kept = "for ever" if topic == REVIEWS else kept
    return str(topic.partitions or "`PV_PARTITIONS`"), kept


def removal_table() -> list[str]:
    """One row for each topic with texts: the longest time until a text is removed."""
    rows = []
    for topic in TOPICS:
        if topic.compacted or topic in (REVIEWS, LEASES):  # has no texts, and no time
            continue
        kept = f"{(topic.retention_ms + SEGMENT_MS) // DAY} days"
        deleted = f"{DELETED_MS // (DAY // 24)} hours" if topic.keyed else kept
        rows.append((f"`{topic.name}`", f"`{topic.cleanup}`", deleted, kept))
    return table(("topic", "cleanup", "after a deletion or an edit", "without one"), rows)


def metrics_table() -> list[str]:
    """One row for each metric: name, kind, labels, meaning."""
    rows = []
    for family in sorted(metrics.REGISTRY.collect(), key=lambda family: family.name):
        if family.name.startswith("pv_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = ", ".join(f"`{label}`" for label in _labels(family.name))
            rows.append((f"`{name}`", family.type, labels, family.documentation))
    return table(("metric", "kind", "labels", "meaning"), rows)


def _labels(family: str) -> Sequence[str]:
    """The labels of a metric, which a collected family shows only where there are samples."""
    for value in vars(metrics).values():
        if getattr(value, "_name", None) == family:
            names: Sequence[str] = value._labelnames
            return names
    raise LookupError(f"streams.metrics has no {family}")


def models_table() -> list[str]:
    """One row for each task: one figure and its baseline."""
    rows = []
    for name in SHOWN:
        (row,) = [r for r in HEADLINES if name in (r.result, r.score)]
        ours = row.figure()
        baseline = f"{ours.baseline} ({row.trivial_in_words()})"
        rows.append((row.task, f"{row.data}: {row.counted}", ours.value, baseline))
    return table(("task", "data and what is counted", "figure", "trivial baseline"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in escaped]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]


def worth_table() -> list[str]:
    """One row of HTML for each criterion: what it finds in simulated streams, and what misleads it."""
    path = ROOT / "benchmarks/results/signals/signal_worth.json"
    found = json.loads(path.read_bytes())["rows"]
    lines = []
    for name in dict.fromkeys(row.partition(",")[0] for row in found):
        (repeats, merged), (copies, known) = (
            [found[f"{name}, {scenario}, {counted}"] for counted in ("every report", "merged")]
            for scenario in ("repeats", "campaigns")
        )
        weeks = merged["weeks, risk 4"]
        cells = (
            f"{merged['found, risk 4']:.0%}", "" if weeks is None else f"{weeks:g}",
            f"{repeats['false a month']:.1f} / {merged['false a month']:.1f}",
            f"{copies['misled']:.0%} / {known['misled']:.0%}",
        )  # fmt: skip
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        shown = name.replace("maxsprt", "watch")
        lines.append(f'<tr><th scope="row">{shown}</th>{row}</tr>')
    return lines


#: Each generated table: its name in the marker, the file it is in, and what makes it.
TABLES: tuple[tuple[str, str, Callable[[], list[str]]], ...] = (
    ("models", "README.md", models_table),
    ("topics", "docs/concepts.md", topics_table),
    ("removal", "docs/privacy.md", removal_table),
    ("settings", "docs/operate.md", settings_table),
    ("metrics", "docs/operate.md", metrics_table),
    ("worth", "streams/web/templates/signals.html", worth_table),
)


#: The alerts, and the same as an object of the Prometheus operator with what precedes them there.
ALERTS, RULES = ROOT / "deploy/prometheus/alerts.yml", ROOT / "deploy/k8s/base/rules.yaml"
_RULES_HEAD = """\
# Made from deploy/prometheus/alerts.yml by `python -m docs.generate`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: pvstream
spec:
"""


def rules_object() -> str:
    """The alerts with their comments as a PrometheusRule."""
    text = ALERTS.read_text(encoding="utf-8")
    return _RULES_HEAD + indent(text[text.index("groups:") :], "  ")


def outdated() -> Iterator[tuple[Path, str]]:
    """Files whose made parts are not what they are made from, with their right text.

    Raises ValueError where a file lacks the markers of a table.
    """
    for path in sorted({ROOT / file for _, file, _ in TABLES}):
        text = written = path.read_text(encoding="utf-8")
        for name, file, make in TABLES:
            if path == ROOT / file:
                written = _replaced(written, name, "\n".join(make()))
        if written != text:
            yield path, written
    if RULES.read_text(encoding="utf-8") != rules_object():
        yield RULES, rules_object()


def _replaced(text: str, name: str, lines: str) -> str:
    start = _START.format(name)
    pattern = f"{re.escape(start)}.*?{re.escape(_END)}"
    written, n = re.subn(pattern, lambda _: start + lines + _END, text, flags=re.DOTALL)
    if n != 1:
        raise ValueError(f"{n} places for the table {name!r}, not one")
    return written
