"""Fuzzed source records: mutations of real ones, and JSON and bytes that hypothesis draws."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from models.types import ADE, DRUG, Expansion, Mention
from streams.cli.demo.run import samples
from streams.codec import encode
from streams.records import ExpandedReport, Headers, Inbound, Origin, TaggedReport
from streams.topics import EXPANDED, MENTIONS, POSTS, SENTENCES, by_name

#: Texts with this word raise in the stub model.
POISON = "unreadable"
NOW = 1_760_000_000.0
#: Records of 30 are sound, and must come out as outputs.
SOUND_OF_30 = 6
DEEP = 3000
#: Shares of the other records.
TOMBSTONES, ODD_TIMES, WITH_HEADERS = 0.03, 0.05, 0.2
Value = bytes | None

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@dataclass(frozen=True, slots=True)
class Pool:
    """What mutations are made of: real records, and values and bytes that hypothesis has drawn."""

    real: Sequence[dict[str, Any]]
    values: Sequence[Any]
    data: Sequence[bytes]


def draw_pool(topic: str, number: int, examples: int) -> Pool:
    """The pool of a source topic; the seed determines it."""
    drawn: list[tuple[Any, bytes]] = []

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_json, st.binary(max_size=60))
    def draw(value: Any, data: bytes) -> None:
        drawn.append((value, data))

    draw()
    return Pool(real_records(topic), [value for value, _ in drawn], [data for _, data in drawn])


def real_records(topic: str) -> list[dict[str, Any]]:
    """The sample texts as they are on a source topic."""
    sample = {EXPANDED.name: SENTENCES, MENTIONS.name: POSTS}.get(topic, by_name(topic)).name
    real = [orjson.loads(line) for line in samples()[sample].read_bytes().splitlines()]
    made = {EXPANDED.name: _expanded, MENTIONS.name: _tagged}.get(topic)
    return real if made is None else [made(one, i) for i, one in enumerate(real)]


def fuzzed(topic: str, pool: Pool, rng: random.Random, n: int) -> Iterator[tuple[Inbound, bool]]:
    """`n` source records of a partition, each with whether it is sound."""
    for offset in range(n):
        if rng.randrange(30) < SOUND_OF_30:
            value: Value = orjson.dumps(_named(rng.choice(pool.real), rng))
            yield Inbound(topic, 0, offset, b"k", value, NOW, ()), True
            continue
        value = _bytes_of(pool, rng)
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            value = _damaged(value, pool, rng)
        key = rng.choice((b"k", b"k", b"", None, b"\xff\xfe", b"k" * 2000))
        if rng.random() < TOMBSTONES:
            value = None
        yield Inbound(topic, 0, offset, key, value, _timestamp(rng), _headers(pool, rng)), False


def _expanded(sentence: dict[str, Any], number: int) -> dict[str, Any]:
    """A record as the stage for acronyms writes it."""
    report = ExpandedReport(
        id=str(number), text=sentence["text"], origin=Origin(SENTENCES.name, 0, number),
        expansions=(Expansion(0, 1, sentence["text"][:1], "long", 0.9, "text"),),
        releases={"acronym": "0" * 12}, source=SENTENCES.name,
    )  # fmt: skip
    return dict(orjson.loads(encode(report)))


def _tagged(post: dict[str, Any], number: int) -> dict[str, Any]:
    """A record as the tagger's stage writes it."""
    text = post["text"]
    spans = ((0, 4, ADE), (5, 9, DRUG))
    mentions = tuple(Mention(a, b, text[a:b], label, 0.9) for a, b, label in spans)
    report = TaggedReport(
        id=str(number), text=text, origin=Origin("posts", 0, number), mentions=mentions,
        releases={"ner": "0" * 12}, source="posts", read=True,
    )  # fmt: skip
    return dict(orjson.loads(encode(report)))


def _named(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The record under one of few ids, so that many are repeated."""
    return record | {"id": f"r{rng.randrange(500)}"}


def _bytes_of(pool: Pool, rng: random.Random) -> Value:
    record = _named(rng.choice(pool.real), rng)
    match rng.choices(("changed", "json", "bytes", "special", "real"), (7, 1, 1, 1, 2))[0]:
        case "changed":
            for _ in range(rng.randint(1, 3)):
                rng.choice(_CHANGES)(record, pool, rng)
            return _dumped(record)
        case "json":
            return _dumped(rng.choice(pool.values))
        case "bytes":
            return rng.choice(pool.data)
        case "special":
            return rng.choice(_SPECIAL)(rng)
        case _:
            return _dumped(record)


def _dumped(value: Any) -> bytes:
    """JSON as Python writes it: with NaN, and integers of any size."""
    return json.dumps(value).encode()


def _replace(record: dict[str, Any], pool: Pool, rng: random.Random) -> None:
    record[rng.choice(list(record))] = rng.choice(pool.values)


def _add(record: dict[str, Any], pool: Pool, rng: random.Random) -> None:
    names = (
        "created_at",
        "drug",
        "author",
        "language",
        "masked",
        "expansions",
        "meta",
        "origin",
        "source",
        "mentions",
        "x",
    )
    record[rng.choice(names)] = rng.choice(pool.values)


def _time(record: dict[str, Any], pool: Pool, rng: random.Random) -> None:
    record["created_at"] = rng.choice(
        (
            0,
            -1,
            1e30,
            1.7e12,
            "2026-02-30",
            "0001-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59-23:00",
            "now",
            "",
        )
    )


def _text(record: dict[str, Any], pool: Pool, rng: random.Random) -> None:
    text = str(record.get("text") or "")
    record["text"] = rng.choice(
        (" ", "\x00" + text, text + "\u202e\u200d\U0001f9ec", text[:3], f"{text} {POISON}", text[::-1])
    )


def _meta(record: dict[str, Any], pool: Pool, rng: random.Random) -> None:
    record |= {f"field{i}": "x" * 400 for i in range(rng.choice((3, 100)))}


def _drop(record: dict[str, Any], pool: Pool, rng: random.Random) -> None:
    del record[rng.choice(list(record))]
    record.setdefault("id", rng.choice((None, 7, 1e400, True, "", " ", "\n", "i" * 300)))


_CHANGES: tuple[Callable[[dict[str, Any], Pool, random.Random], None], ...] = (
    _replace, _add, _time, _text, _meta, _drop,
)  # fmt: skip
_SPECIAL: tuple[Callable[[random.Random], bytes], ...] = (
    lambda rng: b"[" * DEEP + b"]" * DEEP,
    lambda rng: b'{"id":"a","text":"b","x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    lambda rng: b'{"id":"\\ud800","text":"lone \\udfff surrogate"}',
    lambda rng: b'{"id":"a","text":"\\ud83d alone"}',
    lambda rng: b'{"id":"a","id":"b","text":"twice"}',
    lambda rng: b'{"id":"a","text":NaN}',
    lambda rng: b"\xef\xbb\xbf{}",
    lambda rng: b'{"id":' + b"9" * 400 + b',"text":"a"}',
    lambda rng: b"",
    lambda rng: orjson.dumps({"id": "big", "text": "word " * rng.choice((30, 3000, 60_000))}),
)


def _damaged(value: Value, pool: Pool, rng: random.Random) -> Value:
    """The bytes cut, with a byte changed, or with others in between."""
    if not value:
        return value
    place = rng.randrange(len(value))
    match rng.randrange(3):
        case 0:
            return value[:place]
        case 1:
            return value[:place] + bytes((rng.randrange(256),)) + value[place + 1 :]
        case _:
            return value[:place] + rng.choice(pool.data) + value[place:]


def _timestamp(rng: random.Random) -> float:
    odd = (0.0, -1.0, -7e10, 7e15, 253402300800.0, float("inf"), float("nan"))
    return rng.choice(odd) if rng.random() < ODD_TIMES else NOW


def _headers(pool: Pool, rng: random.Random) -> Headers:
    """As the consumer reads them: bytes of a name that are not UTF-8 are escaped."""
    if rng.random() > WITH_HEADERS:
        return ()
    names = ("origin", "traceparent", "pv-attempts", "pv-reason", "", rng.choice(string.printable))
    return tuple(
        (rng.choice((*names, data.decode(errors="backslashreplace"))), rng.choice((None, data)))
        for data in rng.choices(pool.data, k=3)
    )
