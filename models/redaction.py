"""Removes what may be secret from addresses in text that is printed, logged or served."""

from __future__ import annotations

import re

#: What stands for everything that is left out.
HIDDEN = "***"
#: Paths of these are names, and never secret. Elsewhere a path may be all that somebody must know.
_STORES = frozenset(
    {
        "abfs", "abfss", "adl", "az", "chdb", "clickhouse", "clickhouses", "file", "gcs", "gs", "hdfs",
        "kafka", "postgres", "postgresql", "s3", "s3a",
    }
)  # fmt: skip
#: Parts of paths that say what was asked for, and are nobody's secret.
_KNOWN = frozenset(
    {
        "", ".", "..", "2", "api", "acronym", "compliance", "feed", "health", "jobs", "live", "manifest.json",
        "metrics", "ner", "normalization", "public", "ready", "relation", "releases", "rss", "rules",
        "search", "statuses", "stream", "streaming", "subscribe", "summarization", "timelines", "tweets",
        "v1", "v2", HIDDEN,
    }
)  # fmt: skip
_AFTER_SCHEME = re.compile(r"://(\S*)")
_SCHEME = re.compile(r"[a-z0-9]*\Z")
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+|\*\*\*)(?::[0-9]{1,5})?"
_HOSTS = re.compile(rf"(?:{_HOST}(?:,{_HOST})*)?")
_NAME = re.compile(r"[\w.+=%-]*")
#: The path of a request without its host, up to what is no path; and a parameter by its name.
_PATH = re.compile(r"(?<![^\s\"'(=])(/[^\s\"'(=?;#]*)[?;#][^\s\"'<>]+")
_PARAMETER = re.compile(r"([?&;][\w.~%$-]+=)[\"']?[^&\s\"'<>]+")
#: What may follow an address in a sentence.
_CLOSING = "\"'>)},.;:!"
_LONGEST_SCHEME = 12


def redact(text: str) -> str:
    """The text with `***` for everything in its addresses that is not known to be harmless. Of a URL the
    scheme, hosts and ports stay, and of its path the shape and the words that are this project's; paths of
    databases and object stores stay too. User, password, query, parameters and fragment never do: each server
    has names of its own for its keys.
    """
    text = _AFTER_SCHEME.sub(_address, text)
    return _PARAMETER.sub(rf"\1{HIDDEN}", _PATH.sub(rf"\1?{HIDDEN}", text))


def _address(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - _LONGEST_SCHEME) : found.start()].lower()
    scheme = _SCHEME.search(before)
    whole = found[1]
    rest = whole.rstrip(_CLOSING)
    return f"://{_of_rest(rest, scheme[0] if scheme else '')}{whole[len(rest) :]}"


def _of_rest(rest: str, scheme: str) -> str:
    """What follows the scheme of an address. A password may have every character, also `?` and `#`."""
    user, at, _ = rest.partition("/")[0].rpartition("@")
    rest = rest[len(user) + len(at) :]
    hosts = _HOSTS.match(rest)
    end = hosts.end() if hosts else 0
    kept, behind = rest[:end], rest[end:]
    if "@" in behind:
        # With a slash in the password, what looks like the host is the user.
        kept, behind = HIDDEN, "/" + HIDDEN
    path = behind.partition("?")[0].partition("#")[0].partition(";")[0]
    if path and not path.startswith("/"):
        return f"{HIDDEN}@{HIDDEN}" if at else HIDDEN
    query = f"?{HIDDEN}" if len(path) < len(behind) else ""
    shown = "/".join(part if _is_harmless(part, scheme) else HIDDEN for part in path.split("/"))
    return f"{HIDDEN if at else ''}{at}{kept}{shown}{query}"


def _is_harmless(part: str, scheme: str) -> bool:
    return part in _KNOWN or (scheme in _STORES and _NAME.fullmatch(part) is not None)
