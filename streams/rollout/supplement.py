"""Makes the supplement of the live relation release from the decisions of reviewers, and announces it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from models.loading import EXTENDS
from models.relation import supplement
from models.relation.support_set import Floats
from models.releases import remote
from models.releases.manifest import Manifest, PassingError, Release, ReleaseError, TrainingData
from models.releases.signature import read_private_key
from models.releases.store import build, describe, sign
from models.types import Mention
from streams.agents.pipeline import expand
from streams.records import Announcement, Report
from streams.reviews.decided_pairs import DecidedPair, decided_pairs
from streams.reviews.log import ReviewLog
from streams.rollout import announcing
from streams.rollout.announcements import read_announcements
from streams.rollout.loading import load_opened, load_release, open_verified
from streams.settings import Settings
from streams.store.open_database import open_database

TASK: Literal["relation"] = "relation"
#: The least cosine to a decided pair with which it decides: see docs/results/review.md.
LEAST_COSINE = 0.95
SOURCE = TrainingData(name="decisions of reviewers", licence="that of the reports")
Key = tuple[str, Mention, Mention]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the supplement is made of."""

    base: str
    """version of the release that it extends"""
    acronym: str | None
    """version of the live acronym release, by which the texts are read"""
    live: Announcement | None
    pairs: list[DecidedPair]
    taken_back: bool
    """The live release was gone back to, and nobody has decided anything since."""


class Supplements:
    """Makes supplements; vectors of one base are computed once."""

    def __init__(self, settings: Settings, signing_key: Path | None = None) -> None:
        self._settings = settings
        self._signing_key = signing_key
        self._of = ("", "")
        """what the vectors were computed with: versions of the base and of the acronym release"""
        self._vectors: dict[Key, Floats | None] = {}
        self._refused = ""
        """version of the last one, which would be refused again"""

    async def plan(self) -> Plan:
        """Raises TopicsError, BrokenChain, DatabaseError and ReleaseError."""
        valid = await read_announcements(self._settings)
        live = valid.get(TASK)
        acronym = valid["acronym"].version if "acronym" in valid else None
        with open_verified(TASK, live.version if live else None, self._settings) as release:
            base = str(release.manifest.configuration.get(EXTENDS, release.version))
        log = ReviewLog(self._settings)
        try:
            await log.start()
        finally:
            await log.stop()
        went_back = live is not None and live.reason == "rollback"
        since = [r for r in log.reviews if live is None or r.decided_at > live.announced_at]
        pairs = await asyncio.to_thread(self._pairs, log)
        return Plan(base, acronym, live, pairs, went_back and not since)

    def _pairs(self, log: ReviewLog) -> list[DecidedPair]:
        database = open_database(self._settings)
        try:
            return decided_pairs(log.readings, database)
        finally:
            database.close()

    @contextmanager
    def made(self, plan: Plan) -> Iterator[Release | None]:
        """The supplement, signed if there is a key, in a folder for the duration of the block; None where no
        decided pair is in one sentence. Equal plans give equal versions. Raises ReleaseError.
        """
        with open_verified(TASK, plan.base, self._settings) as base, tempfile.TemporaryDirectory() as name:
            self._compute(plan, base)
            # Of equal pairs the last decision counts.
            found = {v.tobytes(): (v, p) for p in plan.pairs if (v := self._vectors[_key(p)]) is not None}
            if not found:
                yield None
                return
            files, root = Path(name) / "files", Path(name) / "made"
            files.mkdir()
            vectors, pairs = zip(*found.values(), strict=True)
            supplement.write(files, vectors, [_decision(pair) for pair in pairs])
            release = build(files, _manifest(base, files), root)
            if self._signing_key is not None:
                sign(release, read_private_key(self._signing_key))
            yield release

    def _compute(self, plan: Plan, base: Release) -> None:
        used = (base.version, plan.acronym or "")
        if self._of != used:
            self._of, self._vectors = used, {}
        new = list(dict.fromkeys(key for p in plan.pairs if (key := _key(p)) not in self._vectors))
        if new:
            acronyms = load_release("acronym", plan.acronym, self._settings).model
            read = expand(acronyms, [Report(id="-", text=text) for text, *_ in new])
            model: Any = load_opened(base, self._settings).model
            vectors = model.pair_vectors(
                [report.text for report in read], [pair for _, *pair in new], [r.expansions for r in read]
            )
            self._vectors |= dict(zip(new, vectors, strict=True))

    async def announce(self, plan: Plan) -> Announcement | None:
        """Announces the supplement of a plan where it is not live yet, nor was refused; without any pair the
        release that it would extend. Raises ReleaseError, also where a decision changes a canary answer, and
        GateError.
        """
        live = plan.live.version if plan.live else plan.base
        with self.made(plan) as release:
            if release is None and live != plan.base:
                return await announcing.roll_back(TASK, plan.base, self._settings, self._signing_key)
            if release is None or release.version in (live, self._refused):
                return None
            try:
                return await announcing.announce(
                    release.path, self._settings, None, force=True, signing_key=self._signing_key
                )
            except PassingError:
                raise
            except ReleaseError:
                self._refused = release.version
                raise

    def store(self, plan: Plan) -> Release | None:
        """Verifies the supplement of a plan and copies it to the store, where a replay finds it."""
        with self.made(plan) as release:
            if release is not None:
                with announcing.verified(release.path, self._settings):
                    remote.deliver(release, self._settings.store)
            return release


def _key(pair: DecidedPair) -> Key:
    return pair.text, pair.drug, pair.effect


def _decision(pair: DecidedPair) -> supplement.Decision:
    review = pair.review
    return supplement.Decision(
        review.report_id, review.sequence, review.reviewer, pair.related, pair.drug.generic or "",
        review.after.pt or "",
    )  # fmt: skip


def _manifest(base: Release, files: Path) -> Manifest:
    return Manifest(
        task=TASK,
        kind=f"pairs that reviewers decided, beside the training pairs of {base.version}",
        base=base.manifest.base,
        base_sha256=base.manifest.base_sha256,
        files=describe(files),
        configuration={EXTENDS: base.version, supplement.LEAST_COSINE: LEAST_COSINE},
        scores=[],
        training_data=[SOURCE],
        code_commit=base.manifest.code_commit,
        canary=base.manifest.canary,
    )
