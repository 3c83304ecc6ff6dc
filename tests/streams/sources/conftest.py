"""The tests of the sources need no models, and each of them checks what is logged and measured."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from prometheus_client import generate_latest

from streams.metrics import REGISTRY

#: Parts of the tokens, authors, addresses, ids and texts that the players have.
SECRETS = ("planted", "did:plc", "2244994945", "kept me awake", "awake")


@pytest.fixture(scope="module", autouse=True)
def _tiny_bundled() -> None:
    """Replaces the fixture of tests/streams, which makes models."""


@pytest.fixture(autouse=True)
def _no_secret_is_logged_or_measured(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    outputs = caplog.text + generate_latest(REGISTRY).decode()
    assert [secret for secret in SECRETS if secret in outputs] == []
