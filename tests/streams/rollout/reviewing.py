"""A store of clinical sentences with the relations that the models found, and reviewers who decide."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from models.types import ADE, DRUG, Mention, Relation
from streams.records import CodedReport, Review
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from streams.store.changes import fold, read_all
from streams.store.open_database import open_database
from tests.streams.store.messages import FOUND, deletion, event, report
from tests.streams.web.conftest import fill

WARFARIN = "Patients on warfarin had fewer strokes, but rash was seen after starting phenytoin."
MISSED = "AEs included UTI on cisplatin."
CANARY = "Intravenous azithromycin - induced ototoxicity ."
#: "INH" is read as its long form.
SHORT = "Hepatotoxicity associated with INH and rifampicin was noted in the fourth week of therapy."
ITCH = "An itchy rash was seen after starting lamotrigine."
TEXTS = {"r-warfarin": WARFARIN, "r-missed": MISSED, "r-canary": CANARY, "r-short": SHORT, "r-itch": ITCH}
#: What the bundled release finds: the effect, all drugs and those that it is related to.
MENTIONED = {
    "r-warfarin": ("rash", ("warfarin", "phenytoin"), ("warfarin", "phenytoin")),
    "r-missed": ("UTI", ("cisplatin",), ()),
    "r-short": ("Hepatotoxicity", ("INH", "rifampicin"), ("INH", "rifampicin")),
    "r-itch": ("rash", ("lamotrigine",), ("lamotrigine",)),
    "r-canary": ("ototoxicity", ("azithromycin",), ("azithromycin",)),
}


def coded(id_: str) -> CodedReport:
    """What the stages make of a sentence."""
    text, (effect, drugs, related), place = TEXTS[id_], MENTIONED[id_], list(TEXTS).index(id_)
    mentions = [_mention(text, effect, ADE), *(_mention(text, drug, DRUG) for drug in drugs)]
    made = report(id_, place, event(), text=text, mentions=tuple(mentions))
    return replace(
        made, source="sentences", releases={"acronym": "0" * 12, "relation": "0" * 12},
        relations=tuple(Relation(1 + drugs.index(drug), 0, 1.0) for drug in related),
        record_id=f"sentences/{id_}/f{place}/normalization@1",
    )  # fmt: skip


def _mention(text: str, words: str, label: str) -> Mention:
    start = text.index(words)
    return Mention(start, start + len(words), words, label, 0.9, words if label == DRUG else None)


def decision(id_: str, action: Any, reviewer: str = "ann", reading: Any = 1, **after: Any) -> Review:
    """On the event of a report; an undo takes back the last decision on it."""
    effect, place = MENTIONED[id_][0], list(TEXTS).index(id_)
    start = TEXTS[id_].index(effect)
    state = FOUND if action == "undo" else replace(FOUND, review=action, **after)
    return Review(
        sequence=0, report_id=id_, start=start, end=start + len(effect), fingerprint=f"f{place}",
        reviewer=reviewer, decided_at=datetime.now(UTC), action=action, before=FOUND, after=state,
        reading=reading,
    )  # fmt: skip


@dataclass(frozen=True)
class Desk:
    """The store with TEXTS, and a broker with the decisions on them."""

    settings: Settings

    def fill(self) -> None:
        fill(Path(self.settings.database), [coded(id_) for id_ in TEXTS])

    def delete(self, id_: str) -> None:
        """What the store does at a tombstone."""
        place = list(TEXTS).index(id_)
        database = open_database(self.settings, write=True)
        database.write(fold(read_all([deletion(9, id_, 90 + place)])[0], {}))
        database.close()

    def decide(self, id_: str, action: Any, **fields: Any) -> None:
        """Appends a `decision` to the topic."""
        made = decision(id_, action, **fields)
        asyncio.run(self._log(made))

    def chain(self) -> list[Review]:
        """All decisions."""
        return asyncio.run(self._log())

    async def _log(self, *made: Review) -> list[Review]:
        log = ReviewLog(self.settings)
        try:
            await log.start()
            for review in made:
                assert await log.append(review) is not None
        finally:
            await log.stop()
        return log.reviews
