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
from collections import Counter
from contextlib import suppress
from io import BytesIO
from typing import Any
from urllib.parse import urljoin, urlsplit

import feedparser
import orjson
from feedparser.namespaces.mediarss import Namespace

from streams.dates import stated_time
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
_STATES_ENCODING = re.compile(rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff|<\?xml[^>]{0,200}encoding")
#: No character of a text in UTF-8: a zero byte of UTF-16, an escape of ISO-2022.
_OTHER_ENCODING = re.compile(rb"[\0\x1b]")
# The library gives a caption of a picture in the place of the entry's text.
Namespace._start_media_description = lambda parser, attributes: parser.push("media_description", True)
Namespace._end_media_description = lambda parser: parser.pop("media_description")


def read_feed(body: bytes, charset: str | None = None, address: str = "") -> bytes:
    """The feed as JSON: `language`, `ttl`, whether it is `broken`, `dropped` (kind of error to number) and
    `entries`, the newest first. Or why it is none, as `error`.

    `charset` is that of the HTTP header; what the document says of itself comes first. Relative links are of
    `address`.
    """
    headers = _headers(body, charset)
    mark = _BYTE_ORDER_MARK if body.startswith(_BYTE_ORDER_MARK) else b""
    body = mark + body.removeprefix(mark).lstrip()
    dropped: Counter[str] = Counter()
    try:
        parsed = [_parse(body, headers)]
    except MemoryError:
        raise
    except Exception as error:  # of many kinds, for bytes that are no text and for entries that are no XML
        parsed = _parts(body, headers, dropped)
        if not parsed:
            return orjson.dumps({"error": f"an answer that cannot be read: {type(error).__name__}"})
    if not any(feed.get("version") for feed in parsed):
        return orjson.dumps({"error": "an answer that is no feed"})
    entries = [entry for feed in parsed for entry in _entries(feed, address, dropped)]
    about = parsed[0].feed
    answer = {
        "language": _plain(about.get("language")),
        "ttl": _plain(about.get("ttl")),
        "broken": bool(dropped) or any(_is_broken(feed) for feed in parsed),
        "dropped": dropped,
        "entries": entries,
    }
    return orjson.dumps(answer)


def _headers(body: bytes, charset: str | None) -> dict[str, str]:
    """The header with the charset, where the document states no encoding. Many servers state one for all of
    their files, so a text that is in UTF-8 is read as such.
    """
    if not charset or _STATES_ENCODING.match(body.lstrip()):
        return {}
    with suppress(UnicodeDecodeError):
        body.decode()
        if not _OTHER_ENCODING.search(body):
            return {}
    return {"content-type": f"application/xml; charset={charset}"}


def _parse(body: bytes, headers: dict[str, str]) -> Any:
    """The feed with its markup as it is: only the text of it is wanted."""
    return feedparser.parse(
        BytesIO(body), response_headers=headers, resolve_relative_uris=False, sanitize_html=False
    )


def _parts(body: bytes, headers: dict[str, str], dropped: Counter[str]) -> list[Any]:
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
            parsed.append(_parse(head + b"".join(some) + tail, headers))
        except MemoryError:
            raise
        except Exception as error:
            if len(some) == 1:
                dropped[type(error).__name__] += 1
            else:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
    return parsed


def _entries(feed: Any, address: str, dropped: Counter[str]) -> list[dict[str, Any]]:
    """The entries; those that are no text, which have halves of surrogate pairs, are counted."""
    entries, base, common = [], address, feed.feed.get("title_detail", {}).get("language")
    if not feed.get("version", "").startswith("atom"):  # readers of RSS take relative links as of the page
        with suppress(ValueError):
            base = urljoin(address, _plain(feed.feed.get("link")) or "")
    for entry in feed.entries:
        try:
            read = _entry(entry, base, common)
            orjson.dumps(read)
        except MemoryError:
            raise
        except Exception as error:
            dropped[type(error).__name__] += 1
            continue
        entries.append(read)
    return entries


def _entry(entry: Any, base: str, common: str | None) -> dict[str, Any]:
    """`common`: the language of the feed's own texts, which an entry inherits."""
    details = [*entry.get("content", ()), entry.get("summary_detail", {}), entry.get("title_detail", {})]
    bodies = [*(detail.get("value", "") for detail in details[:-1]), entry.get("media_description", "")]
    title = text_of(entry.get("title", ""))
    stated = [entry.get("language"), *(detail.get("language") for detail in details)]
    return {
        "guid": _plain(entry.get("id")),
        "link": _plain(entry.get("link")),
        "permalink": _permalink(entry, base),
        "text": "\n".join(part for part in (title, text_of(max(bodies, key=len))) if part),
        "at": _stated(entry),
        "author": _plain(entry.get("author") or None),
        "language": next((_plain(language) for language in stated if language and language != common), None),
    }


def _permalink(entry: Any, base: str) -> str | None:
    """The address of the post; of an id that is no address the library makes a link too."""
    link = _plain(entry.get("link"))
    try:
        if not link or (link == entry.get("id") and not (urlsplit(link).scheme or link.startswith("/"))):
            return None
        address = urljoin(base, link)
        return address if urlsplit(address).scheme in {"http", "https"} else None
    except ValueError:
        return None


def _stated(entry: Any) -> str | None:
    """The first time that is one, as it is written: the library leaves zones out, and reads 2004-július-13 as
    the first of November.
    """
    times = [entry[n] for n in ("published", "updated", "created") if n in entry and _plain(entry[n])]
    return next((time for time in times if stated_time(time).time), next(iter(times), None))


def _plain(value: Any) -> str | None:
    return value if isinstance(value, str) else None


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
    """Answers until the standard input ends: a size, then what it is the size of, in both directions. A
    request is what is known of a feed, as JSON, and its body.
    """
    # What a library prints must not come between the answers.
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_AS", MEMORY)
    answers.write(READY)
    answers.flush()
    while len(size := requests.read(SIZE.size)) == SIZE.size:
        known = orjson.loads(requests.read(SIZE.unpack(size)[0]))
        body = requests.read(SIZE.unpack(requests.read(SIZE.size))[0])
        _limit("RLIMIT_CPU", math.ceil(time.process_time() + CPU_SECONDS))
        answer = read_feed(body, **known)
        answers.write(SIZE.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    main()
