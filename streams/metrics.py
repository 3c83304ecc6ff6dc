"""All Prometheus metrics. Labels are stages, topics, reasons and versions, never an id, a text or a user."""

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

RECORDS = Counter(
    "pv_records",
    "Source records finished, by outcome: output sent, dead letter, tombstone passed on, or dropped for lack "
    "of key and value",
    ["stage", "outcome"],
    registry=REGISTRY,
)
DEAD_LETTERS = Counter(
    "pv_dead_letters", "Records sent to the dead-letter topic", ["stage", "reason"], registry=REGISTRY
)
MENTIONS = Counter("pv_mentions", "Mentions found by a stage", ["stage", "label"], registry=REGISTRY)
EVENTS = Counter(
    "pv_events",
    "Adverse events, coded or NIL, and reports that can have none because of their language "
    "(unsupported_language)",
    ["outcome"],
    registry=REGISTRY,
)
BATCH = Histogram(
    "pv_batch_records",
    "Records in a batch",
    ["stage"],
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    registry=REGISTRY,
)
INFER = Histogram(
    "pv_infer_seconds", "Seconds of inference for one batch", ["stage"], buckets=_SECONDS, registry=REGISTRY
)
DELIVER = Histogram(
    "pv_deliver_seconds",
    "Seconds from sending a batch to the broker's confirmation",
    ["stage"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
LATENCY = Histogram(
    "pv_latency_seconds",
    "Seconds from a source record's timestamp to its confirmed output",
    ["stage"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
LAG = Gauge(
    "pv_lag_records",
    "Source records on the broker that are not yet acknowledged",
    ["stage", "topic", "partition"],
    registry=REGISTRY,
)
LAG_SECONDS = Gauge(
    "pv_lag_seconds",
    "Seconds since the timestamp of the oldest source record that is not acknowledged; 0 where there is "
    "none, and where its timestamp is in the future or before 1970",
    ["stage", "topic", "partition"],
    registry=REGISTRY,
)
PROGRESS = Gauge(
    "pv_seconds_since_progress",
    "Seconds since an inference of the stage ended or a record was acknowledged; 0 while there is nothing "
    "to do",
    ["stage"],
    registry=REGISTRY,
)
REBALANCES = Counter(
    "pv_rebalances", "Assignments of partitions by the consumer group", ["stage"], registry=REGISTRY
)
SINCE_ASSIGNMENT = Gauge(
    "pv_seconds_since_assignment",
    "Seconds since the consumer group assigned partitions to this worker; 0 while it has none assigned",
    ["stage"],
    registry=REGISTRY,
)
WAITING = Gauge(
    "pv_dead_letters_waiting",
    "Dead letters behind the last redrive of every reason, by the offsets on the broker",
    ["topic"],
    registry=REGISTRY,
)
ASSIGNED = Gauge(
    "pv_assigned_partitions", "Source partitions assigned to this worker", ["stage"], registry=REGISTRY
)
FENCED = Counter(
    "pv_fenced_batches",
    "Batches that were not sent because their partitions belonged to another worker after inference",
    ["stage"],
    registry=REGISTRY,
)
READY = Gauge(
    "pv_ready",
    "1 when the stage has its partitions and a model and the broker answers",
    ["stage"],
    registry=REGISTRY,
)
MODEL = Gauge("pv_model_info", "1 for the live release", ["task", "release", "kind"], registry=REGISTRY)

RELOADS = Counter(
    "pv_reload", "Announced releases, by outcome: loaded or refused", ["task", "outcome"], registry=REGISTRY
)
RELOAD_SECONDS = Histogram(
    "pv_reload_seconds",
    "Seconds from the arrival of an announcement until its release is live",
    ["task"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
FALLBACK = Gauge(
    "pv_release_fallback",
    "1 while a worker runs another release than the announced one, because that did not load at its start",
    ["task"],
    registry=REGISTRY,
)
SHADOW = Counter(
    "pv_shadow_records",
    "Records chosen for the shadow release, by outcome: same decisions as the live release (agreed), other "
    "decisions (differed), failed, or skipped because the shadow was busy",
    ["stage", "outcome"],
    registry=REGISTRY,
)
DRIFT = Gauge(
    "pv_drift_psi",
    "Population stability index of a feature in the last sampled records, against the reference of the live "
    "release: text_length, unknown_pieces, found (what the stage finds in a text) or score",
    ["stage", "feature"],
    registry=REGISTRY,
)
DRIFT_VECTOR = Gauge(
    "pv_drift_vector",
    "1 minus the cosine of the mean vector of the last sampled texts and that of the reference",
    ["stage"],
    registry=REGISTRY,
)
DRIFT_RECORDS = Gauge(
    "pv_drift_records", "Sampled records from which the drift is computed", ["stage"], registry=REGISTRY
)
BROKER = Gauge("pv_broker_up", "1 while the broker answers", registry=REGISTRY)


def prepare(stage: str) -> None:
    """Creates a stage's counters at zero, so that a Prometheus rate includes the first record."""
    for outcome in ("sent", "dead", "tombstone", "dropped"):
        RECORDS.labels(stage, outcome)
    for reason in ("bad_record", "poison", "output_too_large", "not_encodable"):
        DEAD_LETTERS.labels(stage, reason)
    FENCED.labels(stage)
    RELOAD_SECONDS.labels(stage)
    REBALANCES.labels(stage)
    FALLBACK.labels(stage)
    for outcome in ("loaded", "refused"):
        RELOADS.labels(stage, outcome)
    if stage == "normalization":
        for outcome in ("coded", "nil"):
            EVENTS.labels(outcome)
    for outcome in ("agreed", "differed", "failed", "skipped"):
        SHADOW.labels(stage, outcome)
