"""The W3C trace context of a record: its headers `traceparent` and `tracestate`.

https://www.w3.org/TR/trace-context/, sections 3.2 and 3.3. A stage takes no part in a trace: it passes the
context of a source record on, unchanged, to what it makes of it, and drops what is not valid.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streams.records import Headers

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
NAMES = frozenset({TRACEPARENT, TRACESTATE})
#: Version, trace, parent, flags. Trace and parent are not all zero, and there is no version ff.
_PARENT = re.compile(rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(-.*)?")
#: A member of the state: a key, perhaps of a tenant, and a value of printable characters.
_MEMBER = re.compile(
    rb"([a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    rb"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
#: Most members, and most bytes that have to be passed on; a longer state is dropped.
_MEMBERS, _STATE_BYTES = 32, 512


def trace_headers(headers: Headers) -> Headers:
    """The valid trace context in the headers of a record; empty where there is none."""
    if not headers:
        return ()
    parents = [value for name, value in headers if name == TRACEPARENT]
    parent = _parent(parents[0]) if len(parents) == 1 else None
    if parent is None:
        return ()
    state = _state([value for name, value in headers if name == TRACESTATE])
    return ((TRACEPARENT, parent), *([(TRACESTATE, state)] if state else []))


def without_trace(headers: Headers) -> Headers:
    """All headers but those of the trace context."""
    return [header for header in headers if header[0] not in NAMES]


def _parent(value: bytes | None) -> bytes | None:
    """The value, or None where it is malformed. Of a version that is not known yet only the fields of version
    00 are passed on, as the recommendation demands.
    """
    found = _PARENT.fullmatch(value or b"")
    if found is None or (found[1] == b"00" and found[3]):
        return None
    return b"00-" + found[2]


def _state(values: Sequence[bytes | None]) -> bytes | None:
    """The state, in one value, or None where it is malformed or too long."""
    whole = b",".join(value or b"" for value in values)
    if len(whole) > _STATE_BYTES:
        return None
    members = [member.strip(b" \t") for member in whole.split(b",")]
    found = [_MEMBER.fullmatch(member) for member in members if member]
    keys = [match[1] for match in found if match]
    if len(keys) != len(found) or len(keys) > _MEMBERS:
        return None
    return whole if len(set(keys)) == len(keys) else None
