"""The tests of the sources need no models."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _tiny_bundled() -> None:
    """Replaces the fixture of tests/streams, which makes models."""
