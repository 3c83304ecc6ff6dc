from __future__ import annotations

from typing import Any

import pytest

from streams.broker.trace_context import trace_headers, without_trace

TRACE, PARENT = b"4bf92f3577b34da6a3ce929d0e0e4736", b"00f067aa0ba902b7"
VALID = b"00-%s-%s-01" % (TRACE, PARENT)
STATE = b"congo=t61rcWkgMzE,4rojo@v=00f067aa0ba902b7"


@pytest.mark.parametrize("state", [STATE, b"a=1, b=2,,c=3", b"a=" + b"x" * 256, b"a= b"])
def test_a_valid_context_is_passed_on_unchanged(state: bytes) -> None:
    headers = [("own", b"1"), ("tracestate", state), ("traceparent", VALID)]
    assert dict(trace_headers(headers)) == {"traceparent": VALID, "tracestate": state}
    assert without_trace(headers) == [("own", b"1")]


@pytest.mark.parametrize(
    ("headers", "passed"),
    [
        ([("traceparent", VALID), ("tracestate", b"a=1"), ("tracestate", b"b=2")],
         [("traceparent", VALID), ("tracestate", b"a=1,b=2")]),
        # Of a later version only the fields of this one.
        ([("traceparent", b"01" + VALID[2:] + b"-what a later version adds")], [("traceparent", VALID)]),
        ([("traceparent", VALID), ("traceparent", VALID)], []),
    ],
)  # fmt: skip
def test_states_are_joined_later_versions_cut_and_two_parents_dropped(headers: Any, passed: Any) -> None:
    assert list(trace_headers(headers)) == passed


@pytest.mark.parametrize(
    "value",
    [
        None, b"", VALID.upper(), VALID + b"\n", VALID + b"-more", b"ff" + VALID[2:], VALID[:-1],
        b"00-" + b"0" * 32 + VALID[35:], VALID[:36] + b"0" * 16 + b"-01", b"my name is Ann",
    ],
)  # fmt: skip
def test_a_malformed_parent_is_dropped_with_its_state(value: bytes | None) -> None:
    assert list(trace_headers([("traceparent", value), ("tracestate", STATE)])) == []


@pytest.mark.parametrize(
    "state",
    [
        b"no value", b"Upper=1", b"a=1,a=2", b"a=b=c", b"a=\xff", b"a=" + b"x" * 257,
        b",".join(b"k%d=1" % i for i in range(33)),
        b"a=" + b"x" * 200 + b",b=" + b"x" * 200 + b",c=" + b"x" * 200,
    ],
)  # fmt: skip
def test_a_malformed_or_long_state_is_dropped_and_the_parent_is_kept(state: bytes) -> None:
    assert list(trace_headers([("traceparent", VALID), ("tracestate", state)])) == [("traceparent", VALID)]
