"""The tables of the store. Times are UTC without a zone; JSON stands in columns of text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Literal

Kind = Literal["text", "bigint", "double precision", "boolean", "timestamp"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its columns in their order; the key is that of the upsert."""

    name: str
    columns: dict[str, Kind]
    key: tuple[str, ...] = ()

    def ddl(self) -> str:
        """The statement that creates it, for DuckDB and PostgreSQL."""
        parts = [f"{name} {kind}" for name, kind in self.columns.items()]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(parts)})"

    def upsert(self) -> str:
        """What follows an INSERT so that a row of the same key is replaced."""
        if not self.key:
            return ""
        changed = ", ".join(f"{c} = excluded.{c}" for c in self.columns if c not in self.key)
        return f" ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changed}"


#: What `reports` and `summaries` end with: where a record stands among those of its key.
PROVENANCE: dict[str, Kind] = {
    "deleted": "boolean",
    "origin_topic": "text",
    "origin_partition": "bigint",
    "origin_offset": "bigint",
    "generations": "text",
    "releases": "text",
}
REPORTS = Table(
    "reports",
    {
        "id": "text",
        "source": "text",
        "text": "text",
        "language": "text",
        "drug": "text",
        "indication": "text",  # what the drug was taken for, as the source states it
        "created_at": "timestamp",
        "received_at": "timestamp",
        "reported_at": "timestamp",  # created_at; received_at without it or where it is in the future
        "report_group": "text",  # equal for reports of one case
        "duplicate_of": "text",  # the first report with this text
        "mentions": "text",  # JSON; words of the text only where the text is kept
        "record_id": "text",
        "permalink": "text",  # address at the source
        "author_known": "boolean",  # the record has the hash of an author, which is not kept, or an address
        "country": "text",  # as the source states it
        "case_fields": "text",  # JSON; null where the text is not kept, and in records of earlier versions
        **PROVENANCE,
    },
    ("id",),
)
EVENTS = Table(
    "events",
    {
        "report_id": "text",
        "position": "bigint",
        "mention": "text",
        "span_start": "bigint",
        "span_end": "bigint",
        "label": "text",
        "llt": "text",
        "pt": "text",
        "soc": "text",
        "score": "double precision",
        "nil": "boolean",
        "negated": "boolean",
        "hypothetical": "boolean",
        "other_experiencer": "boolean",
        "serious": "boolean",
        "drug_evidence": "text",
        "drugs": "text",  # JSON
        "candidates": "text",  # JSON
        "review": "text",  # the last decision on it, if there is one
        "found": "text",  # JSON: span, code, flags and drugs of the models, where a reviewer has decided
    },
)
PAIRS = Table(
    "pairs",
    {
        "report_id": "text",
        "report_group": "text",
        "drug": "text",
        "pt": "text",
        "soc": "text",
        "affirmed": "boolean",  # neither negated nor hypothetical
        "other_experiencer": "boolean",
        "serious": "boolean",
        "drug_evidence": "text",
        "source": "text",
        "language": "text",
        "reported_at": "timestamp",
    },
)
#: A question is also in `reports`, and the records of both come by different stages, in any order.
SUMMARIES = Table(
    "summaries",
    {
        "id": "text",
        "source": "text",
        "summary": "text",
        "received_at": "timestamp",
        "reported_at": "timestamp",
        "record_id": "text",
        **PROVENANCE,
    },
    ("id",),
)
OFFSETS = Table(
    "offsets", {"topic": "text", "partition": "bigint", "next_offset": "bigint"}, ("topic", "partition")
)
#: The cluster and the topic that the offsets are of.
TOPICS = Table("topics", {"topic": "text", "cluster_id": "text", "topic_id": "text"}, ("topic",))
#: Every decision of a reviewer, in the order of the topic.
REVIEWS = Table(
    "reviews",
    {
        "sequence": "bigint",
        "report_id": "text",
        "span_start": "bigint",
        "span_end": "bigint",
        "fingerprint": "text",  # of the text that was reviewed
        "reviewer": "text",
        "decided_at": "timestamp",
        "action": "text",
        "reading": "bigint",  # 2: a second reading, which changes nothing
        "outcome": "text",  # JSON, see ReviewedEvent
    },
    ("sequence",),
)
TABLES = (REPORTS, EVENTS, PAIRS, SUMMARIES, REVIEWS, OFFSETS, TOPICS)
#: What a user reads; OFFSETS and TOPICS are the store's own.
DATA = (REPORTS, EVENTS, PAIRS, SUMMARIES)


def quoted(text: str) -> str:
    """The text as a literal of SQL, for every database. A backslash in quotes is an escape in ClickHouse
    only; between dollars it is itself everywhere.
    """
    text = text.replace("\0", "")
    if "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    # The literal ends where its tag comes first, also where the text ends with a part of it.
    tag = next(tag for tag in map("$t{}$".format, count()) if (text + tag).index(tag) == len(text))
    return tag + text + tag
