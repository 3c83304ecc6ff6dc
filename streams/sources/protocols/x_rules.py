"""The rules of X's filtered stream, from a file or from the drug lexicon, and their copy on the server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from models.tables import read_tsv
from streams.sources.protocols.connection import json_of
from streams.sources.source import Interrupted, SourceFailed

#: Limits of the API.
MAX_RULES, MAX_RULE = 1_000, 1_024
#: Pages of rules that are read; a page has a thousand.
MAX_PAGES = 100
#: Rules of one request.
AT_ONCE = 100
#: Added to each rule of names: the tagger reads English.
SUFFIX = " lang:en"
_PLAIN = re.compile(r"[a-z0-9]+")
_RESERVED = frozenset({"and", "or", "not"})


def from_file(path: Path) -> list[str]:
    """One rule in each line; empty lines and lines that begin with # are left out. Raises SourceFailed."""
    try:
        # A file of Windows may begin with a byte order mark.
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise SourceFailed(f"the rules {path} cannot be read: {type(error).__name__}") from None
    return checked([line for line in lines if line and not line.startswith("#")])


def from_lexicon(path: Path, suffix: str = SUFFIX) -> list[str]:
    """The fewest rules that hold all names of a drug lexicon."""
    return checked(joined((row[0] for row in read_tsv(path, ("name", "generic"))), suffix))


def joined(names: Iterable[str], suffix: str = SUFFIX) -> list[str]:
    """Rules `(name OR "other name" ...) suffix` with every name in one of them."""
    rules: list[str] = []
    terms: list[str] = []
    size = len(suffix) + 2
    for name in sorted({name.lower().replace('"', " ").strip() for name in names} - {""}):
        term = name if _PLAIN.fullmatch(name) and name not in _RESERVED else f'"{name}"'
        if terms and size + len(term) + 4 > MAX_RULE:
            rules.append(f"({' OR '.join(terms)}){suffix}")
            terms, size = [], len(suffix) + 2
        terms.append(term)
        size += len(term) + 4
    return [*rules, f"({' OR '.join(terms)}){suffix}"] if terms else rules


def checked(rules: Sequence[str]) -> list[str]:
    """The rules without repeats; raises SourceFailed where the API would refuse them."""
    unique = list(dict.fromkeys(rules))
    if not unique or len(unique) > MAX_RULES:
        raise SourceFailed(f"{len(unique)} rules; there must be 1 to {MAX_RULES}")
    for number, rule in enumerate(unique, 1):
        if len(rule) > MAX_RULE:
            raise SourceFailed(f"rule {number} has {len(rule)} characters; a rule may have {MAX_RULE}")
    return unique


async def synchronise(client: aiohttp.ClientSession, url: str, rules: Sequence[str]) -> tuple[int, int]:
    """Deletes the rules of the server that are not in `rules` and adds the missing ones; returns both
    numbers. Deleting comes first, because the number of rules is limited. Raises SourceFailed where some are
    refused.
    """
    present: dict[str, str] = {}
    query: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        page = await _answer(client.get(url, params=query))
        try:
            present |= {rule["value"]: rule["id"] for rule in page.get("data", ())}
            token = page.get("meta", {}).get("next_token")
        except (KeyError, TypeError, AttributeError):
            raise Interrupted("http", "an answer that is no list of rules") from None
        if not token:
            break
        query = {"pagination_token": token}
    else:
        raise Interrupted("http", f"rules on more than {MAX_PAGES} pages")
    obsolete = [id_ for value, id_ in present.items() if value not in set(rules)]
    missing = [rule for rule in rules if rule not in present]
    for i in range(0, len(obsolete), AT_ONCE):
        await _answer(client.post(url, json={"delete": {"ids": obsolete[i : i + AT_ONCE]}}))
    for i in range(0, len(missing), AT_ONCE):
        body = {"add": [{"value": rule} for rule in missing[i : i + AT_ONCE]]}
        refused = (await _answer(client.post(url, json=body))).get("errors", ())
        if refused:
            raise SourceFailed(f"{len(refused)} of the rules are refused")
    return len(obsolete), len(missing)


async def _answer(request: Any) -> dict[str, Any]:
    answer = await json_of(request)
    if not isinstance(answer, dict):
        raise Interrupted("http", "an answer that is not readable")
    return answer
