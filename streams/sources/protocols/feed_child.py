"""Reads feeds in a process of its own: `feed_reader` starts it, and it ends with its standard input.

The parser's expressions take a time that grows with the square of some texts, and hold the interpreter's lock
meanwhile. So the time of the processor and the memory are limited here by the operating system.
"""

from __future__ import annotations

import math
import os
import re
import struct
import sys
import time
from calendar import timegm
from collections import Counter
from contextlib import suppress
from io import BytesIO
from typing import Any

import feedparser
import orjson

from streams.sources.protocols.markup import text_of

with suppress(ImportError):  # not on every system
    import resource

#: Seconds of the processor for one feed, and bytes of memory for the process.
CPU_SECONDS, MEMORY = 10, 512 << 20
#: Of an answer before its content: its size.
SIZE = struct.Struct(">I")
READY = b"\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ENTRY = re.compile(rb"<(?:item|entry)[\s>]")


def read_feed(body: bytes) -> bytes:
    """The feed as JSON: `language`, `ttl`, whether it is `broken`, `dropped` (kind of error to number) and
    `entries`, the newest first. Or why it is none, as `error`.
    """
    mark = _BYTE_ORDER_MARK if body.startswith(_BYTE_ORDER_MARK) else b""
    body = mark + body.removeprefix(mark).lstrip()
    dropped: Counter[str] = Counter()
    try:
        parsed = [feedparser.parse(BytesIO(body))]
    except MemoryError:
        raise
    except Exception as error:  # of many kinds, for bytes that are no text and for entries that are no XML
        parsed = _parts(body, dropped)
        if not parsed:
            return orjson.dumps({"error": f"an answer that cannot be read: {type(error).__name__}"})
    if not any(feed.get("version") for feed in parsed):
        return orjson.dumps({"error": "an answer that is no feed"})
    entries = [entry for feed in parsed for entry in _entries(feed, dropped)]
    about = parsed[0].feed
    answer = {
        "language": _plain(about.get("language")),
        "ttl": _plain(about.get("ttl")),
        "broken": bool(dropped) or any(_is_broken(feed) for feed in parsed),
        "dropped": dropped,
        "entries": entries,
    }
    return orjson.dumps(answer)


def _parts(body: bytes, dropped: Counter[str]) -> list[Any]:
    """The feed in parts that can be read, for one that cannot as a whole. Its entries are halved until those
    remain that the parser fails at, which are counted.
    """
    starts = [match.start() for match in _ENTRY.finditer(body)]
    if not starts:
        return []
    end = max(body.rfind(b"</item>") + len(b"</item>"), body.rfind(b"</entry>") + len(b"</entry>"))
    if end <= starts[-1]:
        end = len(body)
    ends = [*starts[1:], end]
    pieces = [body[start:stop] for start, stop in zip(starts, ends, strict=True)]
    head, tail = body[: starts[0]], body[end:]
    parsed, waiting = [], [pieces]
    while waiting:
        some = waiting.pop()
        try:
            parsed.append(feedparser.parse(BytesIO(head + b"".join(some) + tail)))
        except MemoryError:
            raise
        except Exception as error:
            if len(some) == 1:
                dropped[type(error).__name__] += 1
            else:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
    return parsed


def _entries(feed: Any, dropped: Counter[str]) -> list[dict[str, Any]]:
    """The entries; those that are no text, which have halves of surrogate pairs, are counted."""
    entries = []
    for entry in feed.entries:
        try:
            read = _entry(entry)
            orjson.dumps(read)
        except MemoryError:
            raise
        except Exception as error:
            dropped[type(error).__name__] += 1
            continue
        entries.append(read)
    return entries


def _entry(entry: Any) -> dict[str, Any]:
    contents = [content.get("value", "") for content in entry.get("content", ())]
    body = max([*contents, entry.get("summary", "")], key=len)
    title = text_of(entry.get("title", ""))
    return {
        "guid": _plain(entry.get("id") or entry.get("link")),
        "text": "\n".join(part for part in (title, text_of(body)) if part),
        "at": _seconds(entry.get("published_parsed") or entry.get("updated_parsed")),
        "author": _plain(entry.get("author") or None),
        "link": _plain(entry.get("link")),
    }


def _plain(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(parsed: time.struct_time | None) -> int | None:
    """Seconds since 1970; None for a time outside of the calendar, as 0000-00-00 of a database."""
    try:
        return timegm(parsed) if parsed else None
    except (ValueError, OverflowError):
        return None


def _is_broken(feed: Any) -> bool:
    """Whether the document is no well-formed XML."""
    return type(feed.get("bozo_exception")).__name__ == "SAXParseException"


def _limit(name: str, value: int) -> None:
    """Sets a limit of this process, where the system has it."""
    with suppress(NameError, AttributeError, ValueError, OSError):
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def main() -> None:
    """Answers until the standard input ends: a size and a body each, in both directions."""
    # What a library prints must not come between the answers.
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_AS", MEMORY)
    answers.write(READY)
    answers.flush()
    while len(size := requests.read(SIZE.size)) == SIZE.size:
        body = requests.read(SIZE.unpack(size)[0])
        _limit("RLIMIT_CPU", math.ceil(time.process_time() + CPU_SECONDS))
        answer = read_feed(body)
        answers.write(SIZE.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    main()
