"""Makes supplements of the live releases of relation and normalization from what reviewers decided, and
announces them.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from models import supplement
from models.loading import EXTENDS
from models.normalization.queries import query_of
from models.normalization.short_forms import usual_expansions
from models.releases import remote
from models.releases.manifest import Manifest, PassingError, Release, ReleaseError, TrainingData
from models.releases.signature import read_private_key
from models.releases.store import build, describe, sign
from models.supplement import Decision, Floats
from streams.agents.pipeline import expand
from streams.reading_form import Read
from streams.records import Announcement, ExpandedReport, Report, TaggedReport, extend
from streams.reviews.agreement import Readings
from streams.reviews.decided import DecidedCode, DecidedPair, decided_codes, decided_pairs
from streams.reviews.log import Place, ReviewLog
from streams.rollout import announcing
from streams.rollout.announcements import read_announcements
from streams.rollout.loading import load_opened, load_release, open_verified
from streams.settings import Settings
from streams.store.database import Database
from streams.store.open_database import open_database

SOURCE = TrainingData(name="decisions of reviewers", licence="that of the reports")
Decided = DecidedPair | DecidedCode


@dataclass(frozen=True, slots=True)
class Kind:
    """What is decided for the model of a task."""

    task: Literal["relation", "normalization"]
    called: str
    least_cosine: float
    """The least cosine to a decision with which it decides: see docs/results/review.md."""
    decided: Callable[[Mapping[Place, Readings], Database], Sequence[Decided]]
    vectors: Callable[
        [Any, Sequence[Any], Sequence[ExpandedReport]], Iterator[tuple[Hashable, Floats | None]]
    ]
    """By a model of the task, of what was decided in reports whose acronyms are expanded; what has the same
    key has the same vector."""
    decision: Callable[[Any], Decision]


def _pair_vectors(
    model: Any, pairs: Sequence[DecidedPair], reports: Sequence[ExpandedReport]
) -> Iterator[tuple[Hashable, Floats | None]]:
    tagged = [
        extend(TaggedReport, report, mentions=(pair.drug, pair.effect))
        for pair, report in zip(pairs, reports, strict=True)
    ]
    read = [Read.of(report, long_forms=True).read for report in tagged]
    vectors = model.pair_vectors([r.text for r in read], [r.mentions for r in read])
    return zip(map(_key, pairs), vectors, strict=True)


def _code_vectors(
    model: Any, codes: Sequence[DecidedCode], reports: Sequence[ExpandedReport]
) -> Iterator[tuple[Hashable, Floats | None]]:
    queries = []
    for code, report in zip(codes, reports, strict=True):
        effect = code.effect
        usual = () if code.clinical else usual_expansions(code.text, effect.start, effect.end)
        expansions = report.expansions if code.clinical else usual
        queries.append(query_of(code.text, effect, code.mentions, expansions))
    return zip([q.surface.lower() for q in queries], model.embed(queries), strict=True)


def _pair_decision(pair: DecidedPair) -> Decision:
    review = pair.review
    return Decision(
        review.report_id, review.sequence, review.reviewer, pair.related, pair.drug.generic or "",
        review.after.pt or "",
    )  # fmt: skip


def _code_decision(code: DecidedCode) -> Decision:
    review = code.review
    return Decision(review.report_id, review.sequence, review.reviewer, True, "", review.after.pt or "")


PAIRS = Kind("relation", "pairs", 0.95, decided_pairs, _pair_vectors, _pair_decision)
CODES = Kind("normalization", "codes", 0.9, decided_codes, _code_vectors, _code_decision)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the supplement is made of."""

    base: str
    """version of the release that it extends"""
    acronym: str | None
    """version of the live acronym release, by which the texts are read"""
    live: Announcement | None
    decided: Sequence[Decided]
    taken_back: bool
    """The live release was gone back to, and nobody has decided anything since."""


class Supplements:
    """Makes supplements of one kind; vectors of one base are computed once."""

    def __init__(self, settings: Settings, signing_key: Path | None = None, kind: Kind = PAIRS) -> None:
        self.kind = kind
        self._settings = settings
        self._signing_key = signing_key
        self._of = ("", "")
        """what the vectors were computed with: versions of the base and of the acronym release"""
        self._vectors: dict[Hashable, Floats | None] = {}
        self._by_words: dict[Hashable, Floats | None] = {}
        self._refused = ""
        """version of the last one, which would be refused again"""

    async def plan(self) -> Plan:
        """Raises TopicsError, BrokenChain, DatabaseError and ReleaseError."""
        valid = await read_announcements(self._settings)
        live = valid.get(self.kind.task)
        acronym = valid["acronym"].version if "acronym" in valid else None
        with open_verified(self.kind.task, live.version if live else None, self._settings) as release:
            base = str(release.manifest.configuration.get(EXTENDS, release.version))
        log = ReviewLog(self._settings)
        try:
            await log.start()
        finally:
            await log.stop()
        went_back = live is not None and live.reason == "rollback"
        since = [r for r in log.reviews if live is None or r.decided_at > live.announced_at]
        decided = await asyncio.to_thread(self._decided, log)
        return Plan(base, acronym, live, decided, went_back and not since)

    def _decided(self, log: ReviewLog) -> Sequence[Decided]:
        database = open_database(self._settings)
        try:
            return self.kind.decided(log.readings, database)
        finally:
            database.close()

    @contextmanager
    def made(self, plan: Plan) -> Iterator[Release | None]:
        """The supplement, signed if there is a key, in a folder for the duration of the block; None where no
        decided pair is in one sentence. Equal plans give equal versions. Raises ReleaseError.
        """
        task = self.kind.task
        with open_verified(task, plan.base, self._settings) as base, tempfile.TemporaryDirectory() as name:
            self._compute(plan, base)
            found = self._found(plan)
            if not found:
                yield None
                return
            files, root = Path(name) / "files", Path(name) / "made"
            files.mkdir()
            vectors, decisions = zip(*found, strict=True)
            supplement.write(files, vectors, decisions)
            release = build(files, self._manifest(base, files), root)
            if self._signing_key is not None:
                sign(release, read_private_key(self._signing_key))
            yield release

    def _found(self, plan: Plan) -> list[tuple[Floats, Decision]]:
        """Of equal pairs the last decision counts; words that have several codes decide nothing."""
        found: dict[bytes, tuple[Floats, Decision]] = {}
        several = set[bytes]()
        for one in plan.decided:
            vector, decision = self._vectors[_key(one)], self.kind.decision(one)
            if vector is None:
                continue
            key = vector.tobytes()
            if self.kind is CODES and key in found and found[key][1].effect != decision.effect:
                several.add(key)
            found[key] = vector, decision
        return [pair for key, pair in found.items() if key not in several]

    def _compute(self, plan: Plan, base: Release) -> None:
        used = (base.version, plan.acronym or "")
        if self._of != used:
            self._of, self._vectors, self._by_words = used, {}, {}
        new = {key: one for one in plan.decided if (key := _key(one)) not in self._vectors}
        if new:
            acronyms = load_release("acronym", plan.acronym, self._settings).model
            read = expand(acronyms, [Report(id="-", text=one.text) for one in new.values()])
            model = load_opened(base, self._settings).model
            vectors = self.kind.vectors(model, list(new.values()), read)
            for key, (words, vector) in zip(new, vectors, strict=True):
                self._vectors[key] = self._by_words.setdefault(words, vector)

    def _manifest(self, base: Release, files: Path) -> Manifest:
        return Manifest(
            task=self.kind.task,
            kind=f"{self.kind.called} that reviewers decided, beside those of {base.version}",
            base=base.manifest.base,
            base_sha256=base.manifest.base_sha256,
            files=describe(files),
            configuration={EXTENDS: base.version, supplement.LEAST_COSINE: self.kind.least_cosine},
            scores=[],
            training_data=[SOURCE],
            code_commit=base.manifest.code_commit,
            canary=base.manifest.canary,
        )

    async def announce(self, plan: Plan) -> Announcement | None:
        """Announces the supplement of a plan where it is not live yet, nor was refused; without any pair the
        release that it would extend. Raises ReleaseError, also where a decision changes a canary answer, and
        GateError.
        """
        live = plan.live.version if plan.live else plan.base
        with self.made(plan) as release:
            if release is None and live != plan.base:
                return await announcing.roll_back(
                    self.kind.task, plan.base, self._settings, self._signing_key
                )
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


def _key(one: Decided) -> Hashable:
    ends = (
        (one.drug, one.effect) if isinstance(one, DecidedPair) else (one.effect, one.mentions, one.clinical)
    )
    return one.text, *ends
