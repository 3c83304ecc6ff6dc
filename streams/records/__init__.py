"""The records in the topics. Fields are only ever added, with defaults, so that old records stay readable."""

from streams.records.control import Announcement, Cursor
from streams.records.reports import (
    MAX_DRUGS,
    MAX_FOLDED,
    MAX_TEXT,
    NO_TIMESTAMP,
    AuthorHash,
    CodedEvent,
    CodedReport,
    Country,
    DrugName,
    ExpandedReport,
    Headers,
    Id,
    Inbound,
    Indication,
    Language,
    Masked,
    MaskKind,
    Origin,
    Permalink,
    Report,
    Summary,
    TaggedReport,
    Text,
    extend,
)
from streams.records.reviews import (
    FIRST,
    RESOLUTION,
    SECOND,
    Action,
    Assignment,
    Decision,
    Lease,
    Reading,
    Review,
    ReviewedEvent,
    SignalDecision,
    SignalState,
    SignalStatus,
)
from streams.records.signals import History, Limits, Signal, WatchState, WindowStatistics

__all__ = [
    "FIRST", "MAX_DRUGS", "MAX_FOLDED", "MAX_TEXT", "NO_TIMESTAMP", "RESOLUTION", "SECOND",
    "Action", "Announcement", "Assignment", "AuthorHash",
    "CodedEvent", "CodedReport", "Country", "Cursor", "Decision", "DrugName", "ExpandedReport", "Headers",
    "History", "Id", "Inbound", "Indication", "Language", "Lease", "Limits", "MaskKind", "Masked", "Origin",
    "Permalink", "Reading", "Report", "Review", "ReviewedEvent", "Signal", "SignalDecision", "SignalState",
    "SignalStatus", "Summary", "TaggedReport", "Text", "WatchState",
    "WindowStatistics", "extend",
]  # fmt: skip
