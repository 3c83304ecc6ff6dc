"""Lets clients of aiokafka wait for a broker that does not answer yet, and tells one that refuses them."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError

from streams.settings import Settings

#: Seconds between two attempts.
PAUSE = 1.0
#: Milliseconds that a connection may take.
CONNECT_MS = 5000


def is_lasting(error: Exception) -> bool:
    """Whether no waiting changes what a client says: the broker has answered, as by refusing a login."""
    if isinstance(error, KafkaError):
        return not (error.retriable or isinstance(error, KafkaTimeoutError))
    return isinstance(error, ssl.SSLCertVerificationError)


def wait_at_start(client: Any) -> None:
    """Lets this client wait at its start for a broker that does not answer; its login was tried."""
    bootstrap = client.bootstrap

    async def patient_bootstrap() -> None:
        while True:
            try:
                await bootstrap()
                return
            except KafkaConnectionError:
                await asyncio.sleep(PAUSE)

    client.bootstrap = patient_bootstrap


async def refusal(settings: Settings) -> Exception | None:
    """Why a broker refuses a connection; None where none answers, or one takes it."""
    options = settings.client()
    for host, port, _ in AIOKafkaClient(**options).hosts:
        given = {name: value for name, value in options.items() if name != "bootstrap_servers"}
        try:
            (await create_conn(host, port, request_timeout_ms=CONNECT_MS, **given)).close()
        except (KafkaError, OSError, TimeoutError) as error:
            if is_lasting(error):
                return error
    return None
