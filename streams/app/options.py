"""The options of a stage's Faust app."""

from __future__ import annotations

from typing import Any

import faust
import faust.auth
from faust.types.auth import CredentialsT
from mode import CrashingSupervisor

from streams.settings import Settings
from streams.topics import request_bytes

#: How often a consumer asks the broker for its topics and partitions.
METADATA_MAX_AGE_MS = 10_000
#: Seconds that a request may take, as in Faust, which refuses to start with a longer session.
REQUEST_SECONDS = 90.0
#: Seconds without a request for records after which a consumer leaves its group: never. Faust asks for none
#: while a worker has no partitions, or all of them are paused, and aiokafka joins again only after a request:
#: a worker beyond the number of partitions would leave after 1,000 seconds and never take over from another.
#: A worker that hangs is ended by the watchdog.
MAX_POLL_SECONDS = 100 * 365 * 24 * 3600.0


def queue_size(settings: Settings, workers: int) -> int:
    """Maximum number of records in the queue of a stage: two batches for each worker, and two more."""
    return 2 * (workers + 1) * settings.batch


def options(settings: Settings) -> dict[str, Any]:
    """The options of a Faust app."""
    return {
        "broker": [f"kafka://{b}" for b in settings.bootstrap],
        "broker_credentials": _credentials(settings),
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": settings.session_timeout / 4,
        "broker_request_timeout": max(REQUEST_SECONDS, settings.session_timeout),
        "broker_max_poll_interval": MAX_POLL_SECONDS,
        "broker_commit_interval": settings.commit_interval,
        "consumer_group_instance_id": settings.instance or None,
        # On a rebalance and on a stop, finish and acknowledge the records already read.
        "stream_wait_empty": True,
        "consumer_auto_offset_reset": "earliest",
        # A broker that has just started may not list the source topic yet. A member that asks it then, and
        # leads the group, assigns no partitions until it asks again: with Faust's default after 5 minutes.
        "consumer_metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "producer_acks": -1,
        "producer_linger": 0.005,
        "producer_max_request_size": request_bytes(settings),
        # An agent raises only for an error that no single record causes: the app must crash, not restart it.
        "agent_supervisor": CrashingSupervisor,
        # The embedded broker supports no admin requests, and no tables or leader election are used.
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "store": "memory://",
        "web_enabled": False,
        "autodiscover": False,
    }


def _credentials(settings: Settings) -> CredentialsT | None:
    context = settings.ssl_context()
    tokens = settings.token_provider()
    if tokens is not None:
        return faust.auth.OAuthCredentials(oauth_cb=tokens, ssl_context=context)
    if settings.security.startswith("SASL"):
        return faust.SASLCredentials(
            mechanism=settings.sasl_mechanism,
            username=settings.sasl_username,
            password=settings.sasl_password.get_secret_value(),
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context is not None else None
