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

from models.types import ADE, DRUG, LABELS

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

#: The labels of the mentions of the stages that find some.
_MENTIONED = {"ner": LABELS, "relation": (DRUG, ADE)}
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
    "Seconds from a source record's timestamp to its confirmed output, without records whose timestamp is "
    "missing or before 1970",
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
WORKERS = Gauge(
    "pv_inference_workers", "Batches that the process computes at once", ["stage"], registry=REGISTRY
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
ANNOUNCEMENTS_REFUSED = Counter(
    "pv_announcements_refused",
    "Announcements that a running worker received and did not follow: unreadable, unsigned where a signature "
    "is required, or sent again",
    registry=REGISTRY,
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
INTAKE = Counter(
    "pv_intake_posts",
    "Posts of a source, by outcome: passed, left out because of their language (language) or for lack of a "
    "drug's name or own term (no_term), or not fit for a record (malformed)",
    ["outcome"],
    registry=REGISTRY,
)
MASKED = Counter(
    "pv_intake_masked",
    "Masked spans in the texts of posts, by kind: user, url, email, phone",
    ["kind"],
    registry=REGISTRY,
)
DUPLICATES = Counter(
    "pv_intake_duplicates",
    "Posts that repeat an earlier one, by how that was found: reference or text",
    ["how"],
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
SOURCE_ITEMS = Counter(
    "pv_source_items",
    "Items of a source of live posts, by outcome: sent, left out by the filter (filtered) or because their "
    "author asks for it (excluded), deletions (deleted), posts that came after their deletion (stale), "
    "deleted accounts (account) and those whose reports cannot be found (unresolved), malformed or too large "
    "(malformed)",
    ["source", "outcome"],
    registry=REGISTRY,
)
SOURCE_RECONNECTS = Counter(
    "pv_source_reconnects",
    "Interruptions of a source: closed by it, silent beyond its keep-alive, no connection (network), an HTTP "
    "error (http), too many requests (limited), or a feed that takes too much time or memory (hostile)",
    ["source", "reason"],
    registry=REGISTRY,
)
SOURCE_GAPS = Counter(
    "pv_source_gaps",
    "Times that a source did not deliver a part of its stream",
    ["source"],
    registry=REGISTRY,
)
SOURCE_GAP_SECONDS = Counter(
    "pv_source_gap_seconds",
    "Seconds of the stream that a source did not deliver",
    ["source"],
    registry=REGISTRY,
)
SOURCE_LAG = Gauge(
    "pv_source_lag_seconds",
    "Seconds from the publication of the newest item of a source until it was read",
    ["source"],
    registry=REGISTRY,
)
SOURCE_UP = Gauge("pv_source_up", "1 while a source is connected", ["source"], registry=REGISTRY)


def prepare_source(source: str) -> dict[str, Counter]:
    """Creates the counters of a source at zero; returns those of its items, by outcome."""
    for reason in ("closed", "silent", "network", "http", "limited", "hostile"):
        SOURCE_RECONNECTS.labels(source, reason)
    SOURCE_GAPS.labels(source)
    SOURCE_GAP_SECONDS.labels(source)
    outcomes = ("sent", "filtered", "excluded", "deleted", "stale", "account", "unresolved", "malformed")
    return {outcome: SOURCE_ITEMS.labels(source, outcome) for outcome in outcomes}


def prepare_intake() -> dict[str, Counter]:
    """Creates the counters of the intake at zero; returns those of the posts, by outcome."""
    for kind in ("user", "url", "email", "phone"):
        MASKED.labels(kind)
    for how in ("reference", "text"):
        DUPLICATES.labels(how)
    return {outcome: INTAKE.labels(outcome) for outcome in ("passed", "language", "no_term", "malformed")}


def prepare(stage: str) -> None:
    """Creates a stage's counters at zero, so that a Prometheus rate includes the first record."""
    for outcome in ("sent", "dead", "tombstone", "dropped"):
        RECORDS.labels(stage, outcome)
    for reason in ("bad_record", "poison", "process_died", "output_too_large", "not_encodable"):
        DEAD_LETTERS.labels(stage, reason)
    FENCED.labels(stage)
    RELOAD_SECONDS.labels(stage)
    REBALANCES.labels(stage)
    FALLBACK.labels(stage)
    for outcome in ("loaded", "refused"):
        RELOADS.labels(stage, outcome)
    if stage == "normalization":
        for outcome in ("coded", "nil", "unsupported_language"):
            EVENTS.labels(outcome)
    for label in _MENTIONED.get(stage, ()):
        MENTIONS.labels(stage, label)
    for outcome in ("agreed", "differed", "failed", "skipped"):
        SHADOW.labels(stage, outcome)
