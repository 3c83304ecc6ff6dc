"""Checks of the brokers: reachable, TLS, login, topics as in the table, rights on the groups, the clock."""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, InvalidTimestampError, KafkaError

from streams import topics
from streams.agents.pipeline import STAGES
from streams.broker.clock import MOST_AHEAD, explained, seconds_ahead
from streams.broker.groups import committed_offsets
from streams.broker.topic_check import Difference, differences
from streams.cli.operations.local_checks import Finding
from streams.dead_letters.redrive import REASONS, redrive_group
from streams.settings import Settings
from streams.topics import TopicsError, broker_name, group_id

#: Seconds for a connection, and for all requests of one check.
CONNECT_SECONDS, REQUEST_SECONDS = 5.0, 30.0
DEFAULT_PORT = 9092
REPLICAS = 3
#: Seconds between two clocks that do not matter.
CLOCK_SECONDS = 30.0
_LOGIN = "check PV_SECURITY, PV_SASL_MECHANISM, the user and the password or token"


async def check_brokers(settings: Settings) -> AsyncIterator[Finding]:
    """Connects, logs in, looks at topics and groups; stops where nothing more can be found out."""
    reached = []
    for address in settings.bootstrap:
        finding = await _reach(address, settings)
        reached.append(finding.grade == "ok")
        yield finding
    if not any(reached):
        return
    admin = AIOKafkaAdminClient(**settings.client())
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            await topics.start_admin(admin)
            cluster = await admin.describe_cluster()
    except (KafkaError, TimeoutError, OSError) as error:
        yield Finding("login", "fail", f"the broker refuses it: {_reason(error)}", _LOGIN)
        await _close(admin)
        return
    try:
        yield Finding("login", "ok", "accepted")
        for finding in _cluster(settings, len(cluster["brokers"])):
            yield finding
        if await topics.is_embedded(settings):
            yield Finding("topics", "warn", "an embedded broker, in memory only", "use it for trials only")
            return
        for finding in await _topics(settings):
            yield finding
        yield await _groups(settings, admin)
        yield await _clock(settings)
    finally:
        await _close(admin)


async def _close(admin: Any) -> None:
    with suppress(Exception):
        await admin.close()


async def _reach(address: str, settings: Settings) -> Finding:
    """Opens a connection, with TLS where it is set."""
    what = f"broker {address}"
    host, _, port = address.rpartition(":") if ":" in address.rpartition("]")[2] else (address, "", "")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            context = settings.ssl_context()
            _, writer = await asyncio.open_connection(
                host.strip("[]"), int(port or DEFAULT_PORT), ssl=context
            )
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                await writer.wait_closed()
    except (OSError, TimeoutError, ValueError) as error:
        return Finding(what, "fail", _reason(error), _fix(error))
    return Finding(what, "ok", "reached, its certificate is valid" if context else "reached")


def _fix(error: Exception) -> str:
    """What to do about an error of a connection."""
    match error:
        case ssl.SSLCertVerificationError():
            return "set PV_SSL_CAFILE to the authority of its certificate, and use a host name in it"
        case ssl.SSLError():
            return "does this port speak TLS? If not, check PV_SECURITY"
        case socket.gaierror():
            return "check the name in PV_BROKER"
        case TimeoutError():
            return "check the network and its firewalls"
        case FileNotFoundError() | PermissionError():
            return "check the PV_SSL_ files"
    return "check PV_BROKER, and whether the broker runs"


def _cluster(settings: Settings, brokers: int) -> Iterator[Finding]:
    text = f"{brokers} brokers, PV_REPLICATION is {settings.replication}"
    if settings.replication > brokers:
        yield Finding("cluster", "fail", text, f"topics cannot be created: use at most {brokers}")
    elif brokers >= REPLICAS > settings.replication:
        yield Finding("cluster", "warn", text, f"use {REPLICAS}: else the loss of one broker loses records")
    else:
        yield Finding("cluster", "ok", text)


async def _topics(settings: Settings) -> Sequence[Finding]:
    """A finding for each difference from the table that matters, and one for the others together."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            differing = await differences(settings)
    except (KafkaError, TopicsError, TimeoutError) as error:
        return [Finding("topics", "fail", _reason(error), "grant Describe and DescribeConfigs on the topics")]
    missing = [d for d in differing if d.what == "topic"]
    if len(missing) == len(topics.TOPICS):
        fix = "pvstream topics --create; if they exist, grant Describe on them, and check PV_PREFIX"
        return [Finding("topics", "fail", "the broker lists none of them", fix)]
    return [_difference(d) for d in differing] or [
        Finding("topics", "ok", f"{len(topics.TOPICS)} topics, as in the table")
    ]


def _difference(difference: Difference) -> Finding:
    text = f"{difference.what} is {difference.found}, expected {difference.expected}"
    if difference.what == "configuration":
        return Finding(f"topic {difference.topic}", "warn", text, "grant DescribeConfigs on it")
    fix = difference.problem or "harmless; change it, or the setting"
    return Finding(f"topic {difference.topic}", "fail" if difference.problem else "warn", text, fix)


async def _groups(settings: Settings, admin: Any) -> Finding:
    """Whether the offsets of all consumer groups can be read."""
    groups = [group_id(settings, stage.name) for stage in STAGES]
    groups += [redrive_group(settings, reason) for reason in REASONS]
    partition = [TopicPartition(broker_name(settings, topics.RELEASES.name), 0)]
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            for group in groups:
                await committed_offsets(admin, group, partition)
    except GroupAuthorizationFailedError:
        fix = f"grant Read on the groups that begin with {group_id(settings, '')}"
        return Finding("groups", "fail", f"no right to {group}", fix)
    except (KafkaError, TimeoutError) as error:
        return Finding("groups", "fail", f"{group}: {_reason(error)}", "look at the log of the brokers")
    return Finding("groups", "ok", f"{len(groups)} groups can be used")


async def _clock(settings: Settings) -> Finding:
    """How far the clock of this machine is from that of the broker."""
    ahead = None
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            # A record for a topic that is missing would create it on a broker with auto-creation.
            if topics.LEASES.name in await topics.partition_counts(settings):
                ahead = await seconds_ahead(settings)
    except InvalidTimestampError as error:
        return Finding("clock", "fail", str(explained(error)), "set it by NTP")
    except (KafkaError, TimeoutError) as error:
        return Finding("clock", "ok", f"not compared with the broker's: {_reason(error)}")
    if ahead is None:
        return Finding("clock", "ok", f"not compared: no {topics.LEASES.name} with the broker's time")
    if abs(ahead) < CLOCK_SECONDS:
        return Finding("clock", "ok", f"within {max(1, math.ceil(abs(ahead)))} s of the broker's")
    text = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the broker's"
    if ahead > MOST_AHEAD:
        return Finding(
            "clock", "fail", text, "set it by NTP: a broker refuses records more than an hour ahead"
        )
    return Finding("clock", "warn", text, "set it by NTP: times of records are wrong by that")


def _reason(error: Exception) -> str:
    """One line; some errors say nothing."""
    return " ".join(str(error).split()) or type(error).__name__
