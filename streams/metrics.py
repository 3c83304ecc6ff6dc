"""Every Prometheus metric there is. Labels are stages, topics, reasons and versions: never an id, a text or a
user.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

RECORDS = Counter("pv_records", "Source records finished", ["stage", "outcome"], registry=REGISTRY)
DEAD_LETTERS = Counter(
    "pv_dead_letters", "Records sent to dead letters", ["stage", "reason"], registry=REGISTRY
)
MENTIONS = Counter("pv_mentions", "Mentions found", ["stage", "label"], registry=REGISTRY)
EVENTS = Counter("pv_events", "Adverse events coded, or left NIL", ["outcome"], registry=REGISTRY)
BATCH = Histogram(
    "pv_batch_records",
    "Records in a batch",
    ["stage"],
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    registry=REGISTRY,
)
INFER = Histogram(
    "pv_infer_seconds", "Inference of one batch", ["stage"], buckets=_SECONDS, registry=REGISTRY
)
DELIVER = Histogram(
    "pv_deliver_seconds",
    "From sending a batch to the broker's confirmation",
    ["stage"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
LATENCY = Histogram(
    "pv_latency_seconds",
    "From a source record's timestamp to its confirmed output",
    ["stage"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
LAG = Gauge(
    "pv_lag_records", "Source records not yet acked", ["stage", "topic", "partition"], registry=REGISTRY
)
ASSIGNED = Gauge(
    "pv_assigned_partitions", "Source partitions assigned to this worker", ["stage"], registry=REGISTRY
)
READY = Gauge("pv_ready", "1 when the stage is assigned and has a model", ["stage"], registry=REGISTRY)
MODEL = Gauge(
    "pv_model_info", "1 for the release that is live", ["task", "release", "kind"], registry=REGISTRY
)

RELOADS = Counter(
    "pv_reload", "Announced releases, by what became of them", ["task", "outcome"], registry=REGISTRY
)
RELOAD_SECONDS = Histogram(
    "pv_reload_seconds",
    "From an announcement's arrival until its release is live",
    ["task"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
SHADOW = Counter(
    "pv_shadow_records",
    "Records chosen for the shadow release: the same decisions as the live one, others, failed, or left out",
    ["stage", "outcome"],
    registry=REGISTRY,
)
BROKER = Gauge("pv_broker_up", "1 while the broker answers", registry=REGISTRY)


def prepare(stage: str) -> None:
    """Creates a stage's counters at zero, so that a rate sees the first record too."""
    for outcome in ("sent", "dead"):
        RECORDS.labels(stage, outcome)
    for reason in ("bad_record", "poison", "output_too_large"):
        DEAD_LETTERS.labels(stage, reason)
    RELOAD_SECONDS.labels(stage)
    for outcome in ("loaded", "refused"):
        RELOADS.labels(stage, outcome)
    for outcome in ("agreed", "differed", "failed", "skipped"):
        SHADOW.labels(stage, outcome)
