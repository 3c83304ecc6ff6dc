"""Which entry of a feed is which: by its guid, else by its link, and by its text where neither tells."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streams.input_rows import MISSING
from streams.records import MAX_TEXT

Entry = Mapping[str, Any]
#: What generators write for an id that they do not have, without case, beside what programs write for none.
_NO_ID = MISSING | {"undefined", "unknown"}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def identified(entries: Sequence[Entry], seen: Mapping[str, str]) -> tuple[dict[str, Entry], Counter[str]]:
    """The entries by the digest of their id, the oldest first (feeds begin with the newest), and how many are
    left out, by reason.

    `seen` has the digest of the text of each entry that was there before. A link without a guid may be
    another one at each request (`?session=...`): an entry whose link is new, and whose text is that of an
    entry that has gone, is that entry. Of entries with one id the newest counts: each would be a change of
    the other at every request.
    """
    keyed = list(_keyed(entries))
    there = {key for key, _, _ in keyed}
    gone = {text: key for key, text in seen.items() if key not in there}
    found: dict[str, Entry] = {}
    left_out: Counter[str] = Counter()
    for tentative, named, entry in keyed:
        text = digest(entry["text"])
        key = tentative if named or tentative in seen else gone.pop(text, tentative)
        # An entry that was sent, and has no text that can be sent now, is an edit, which takes it back.
        if key not in seen and not 0 < len(entry["text"].strip()) <= len(entry["text"]) <= MAX_TEXT:
            left_out["malformed" if entry["text"].strip() else "empty"] += 1
            continue
        left_out["repeated"] += key in found
        found.pop(key, None)
        found[key] = entry
    return found, +left_out


def _keyed(entries: Sequence[Entry]) -> Iterator[tuple[str, bool, Entry]]:
    """The digest by which an entry is known, whether that is of a guid, and the entry; the oldest first."""
    links_of, texts_of = _others(entries, "guid", "link"), _others(entries, "link", "text")
    for entry in reversed(entries):
        guid, link = entry["guid"], entry["link"]
        if _is_id(guid) and links_of[guid] <= 1:
            yield digest(guid), True, entry
        elif _is_id(link) and texts_of[link] <= 1:
            yield digest(link), False, entry
        else:
            yield digest(entry["text"]), False, entry


def _others(entries: Sequence[Entry], name: str, other: str) -> Counter[str]:
    """How many values of the field `other` stand beside each one of `name`: more than one of an id that is
    that of the whole site.
    """
    return Counter(value for value, _ in {(e[name], e[other]) for e in entries if e[name] and e[other]})


def _is_id(value: str | None) -> bool:
    return value is not None and value.strip().casefold() not in _NO_ID and any(map(str.isalnum, value))
