"""Tests of many minutes, which run only where they are asked for: PV_LONG_TESTS=1 make integration."""

from __future__ import annotations

import os

import pytest

long_test = pytest.mark.skipif(
    not os.environ.get("PV_LONG_TESTS"), reason="takes many minutes; PV_LONG_TESTS=1 runs it"
)

#: Modules that run without being asked for; the others take long or start many processes.
BY_DEFAULT = frozenset({
    "test_alerts_fire", "test_check", "test_demo", "test_real_kafka", "test_redrive", "test_replay",
    "test_reviews", "test_secrets", "test_signals", "test_skip", "test_sources", "test_stall", "test_store",
    "test_web",
})  # fmt: skip
