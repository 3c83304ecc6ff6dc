"""Tests of many minutes, which run only where they are asked for: PV_LONG_TESTS=1 make integration."""

from __future__ import annotations

import os

import pytest

long_test = pytest.mark.skipif(
    not os.environ.get("PV_LONG_TESTS"), reason="takes many minutes; PV_LONG_TESTS=1 runs it"
)

#: Modules of such tests; single ones elsewhere have the mark.
LONG = frozenset({"test_docs", "test_lifecycle", "test_steady"})

#: Modules whose tests take about half a minute.
FIRST = frozenset(
    {
        "test_alerts_of_shapes", "test_page_beside", "test_real_kafka",
        "test_stale_outputs", "test_stall",
    }
    | {"test_static_membership", "test_store"}
)  # fmt: skip
