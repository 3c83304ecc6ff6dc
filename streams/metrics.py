"""All Prometheus metrics. Labels are stages, topics, reasons and versions, never an id, a text or a user."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

from models.types import LABELS

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

#: The labels of the mentions of the stage that finds them.
_MENTIONED = {"ner": LABELS}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


def _counter(name: str, labels: str, meaning: str) -> Counter:
    return Counter(name, meaning, labels.split(), registry=REGISTRY)


def _gauge(name: str, labels: str, meaning: str) -> Gauge:
    return Gauge(name, meaning, labels.split(), registry=REGISTRY)


def _histogram(name: str, labels: str, meaning: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
    return Histogram(name, meaning, labels.split(), buckets=buckets, registry=REGISTRY)


RECORDS = _counter(
    "pv_records",
    "stage outcome",
    "Source records finished, by outcome: output sent, dead letter, tombstone passed on, or dropped for lack "
    "of key and value",
)
DEAD_LETTERS = _counter("pv_dead_letters", "stage reason", "Records sent to the dead-letter topic")
MENTIONS = _counter("pv_mentions", "stage label", "Mentions found by a stage")
EVENTS = _counter(
    "pv_events",
    "outcome",
    "Adverse events, coded or NIL, and reports that can have none because of their language "
    "(unsupported_language)",
)
WORDINGS = _counter(
    "pv_wordings",
    "how",
    "Mentions of effects by how their wording was coded: as one that the model keeps, or that is repeated in "
    "the batch (kept), or by the encoder and the search (searched)",
)
BATCH = _histogram(
    "pv_batch_records", "stage", "Records in a batch", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)
INFER = _histogram("pv_infer_seconds", "stage", "Seconds of inference for one batch")
DELIVER = _histogram(
    "pv_deliver_seconds", "stage", "Seconds from sending a batch to the broker's confirmation"
)
LATENCY = _histogram(
    "pv_latency_seconds",
    "stage",
    "Seconds from a source record's timestamp to its confirmed output, without records whose timestamp is "
    "missing or before 1970",
)
LAG = _gauge(
    "pv_lag_records", "stage topic partition", "Source records on the broker that are not yet acknowledged"
)
LAG_SECONDS = _gauge(
    "pv_lag_seconds",
    "stage topic partition",
    "Seconds since the timestamp of the oldest source record that is not acknowledged; 0 where there is "
    "none, and where its timestamp is in the future or before 1970",
)
PROGRESS = _gauge(
    "pv_seconds_since_progress",
    "stage",
    "Seconds since an inference of the stage ended or a record was acknowledged; 0 while there is nothing to "
    "do",
)
REBALANCES = _counter("pv_rebalances", "stage", "Assignments of partitions by the consumer group")
SINCE_ASSIGNMENT = _gauge(
    "pv_seconds_since_assignment",
    "stage",
    "Seconds since the consumer group assigned partitions to this worker; 0 while it has none assigned",
)
WORKERS = _gauge("pv_inference_workers", "stage", "Batches that the process computes at once")
WAITING = _gauge(
    "pv_dead_letters_waiting",
    "topic",
    "Dead letters behind the last redrive of every reason, by the offsets on the broker",
)
ASSIGNED = _gauge("pv_assigned_partitions", "stage", "Source partitions assigned to this worker")
FENCED = _counter(
    "pv_fenced_batches",
    "stage",
    "Batches that were not sent because their partitions belonged to another worker after inference",
)
READY = _gauge("pv_ready", "stage", "1 when the stage has its partitions and a model and the broker answers")
MODEL = _gauge("pv_model_info", "task release kind", "1 for the live release")

RELOADS = _counter("pv_reload", "task outcome", "Announced releases, by outcome: loaded or refused")
ANNOUNCEMENTS_REFUSED = _counter(
    "pv_announcements_refused",
    "",
    "Announcements that a running worker received and did not follow: unreadable, unsigned where a signature "
    "is required, or sent again",
)
RELOAD_SECONDS = _histogram(
    "pv_reload_seconds", "task", "Seconds from the arrival of an announcement until its release is live"
)
FALLBACK = _gauge(
    "pv_release_fallback",
    "task",
    "1 while a worker runs another release than the announced one, because that did not load at its start",
)
INTAKE = _counter(
    "pv_intake_posts",
    "outcome",
    "Posts of a source, by outcome: passed, left out because of their language (language) or for lack of a "
    "drug's name or own term (no_term), or not fit for a record (malformed)",
)
MASKED = _counter(
    "pv_intake_masked", "kind", "Masked spans in the texts of posts, by kind: user, url, email, phone"
)
DUPLICATES = _counter(
    "pv_intake_duplicates",
    "how",
    "Posts that repeat an earlier one, by how that was found: reference or text",
)
DRIFT = _gauge(
    "pv_drift_psi",
    "stage feature",
    "Population stability index of a feature in the last sampled records, against the reference of the live "
    "release: text_length, unknown_pieces, found (what the stage finds in a text) or score",
)
DRIFT_VECTOR = _gauge(
    "pv_drift_vector",
    "stage",
    "1 minus the cosine of the mean vector of the last sampled texts and that of the reference",
)
DRIFT_RECORDS = _gauge("pv_drift_records", "stage", "Sampled records from which the drift is computed")
BROKER = _gauge("pv_broker_up", "", "1 while the broker answers")
SOURCE_ITEMS = _counter(
    "pv_source_items",
    "source outcome",
    "Items of a source of live posts, by outcome: sent, left out by the filter (filtered) or because their "
    "author asks for it (excluded), deletions (deleted), posts that came after their deletion (stale), "
    "deleted accounts (account) and those whose reports cannot be found (unresolved), malformed or too large "
    "(malformed); of a feed entries that cannot be read (unreadable), without text (empty) and older "
    "versions of another (repeated)",
)
SOURCE_RECONNECTS = _counter(
    "pv_source_reconnects",
    "source reason",
    "Interruptions of a source: closed by it, silent beyond its keep-alive, no connection (network), an HTTP "
    "error (http), too many requests (limited), or a feed that takes too much time or memory (hostile)",
)
SOURCE_GAPS = _counter("pv_source_gaps", "source", "Times that a source did not deliver a part of its stream")
SOURCE_GAP_SECONDS = _counter(
    "pv_source_gap_seconds", "source", "Seconds of the stream that a source did not deliver"
)
SOURCE_LAG = _gauge(
    "pv_source_lag_seconds",
    "source",
    "Seconds from the publication of the newest item of a source until it was read",
)
SOURCE_UP = _gauge("pv_source_up", "source", "1 while a source is connected")


def prepare_source(source: str) -> dict[str, Counter]:
    """Creates the counters of a source at zero; returns those of its items, by outcome."""
    for reason in ("closed", "silent", "network", "http", "limited", "hostile"):
        SOURCE_RECONNECTS.labels(source, reason)
    SOURCE_GAPS.labels(source)
    SOURCE_GAP_SECONDS.labels(source)
    outcomes = (
        "sent", "filtered", "excluded", "deleted", "stale", "account", "unresolved", "malformed",
        "unreadable", "empty", "repeated",
    )  # fmt: skip
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
        for how in ("kept", "searched"):
            WORDINGS.labels(how)
    for label in _MENTIONED.get(stage, ()):
        MENTIONS.labels(stage, label)
