"""The intake of a source: filter, masking, hash of the author and duplicates, in this order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from models.reading_form.form import reading_form
from streams import metrics
from streams.codec import BadRecord
from streams.dates import stated_time
from streams.input_reports import report_of
from streams.intake.authors import AuthorKeys
from streams.intake.duplicates import Sighting, Window
from streams.intake.filter import Filter, Terms, drug_terms, read_terms
from streams.intake.items import Post
from streams.intake.masking import MAX_MASKED, mask, unmasked_parts
from streams.records import (
    MAX_DRUGS,
    MAX_TEXT,
    Country,
    DrugName,
    Id,
    Indication,
    Language,
    Permalink,
    Report,
    Text,
)
from streams.settings import Settings

_ID, _TEXT, _DRUG = TypeAdapter(Id), TypeAdapter(Text), TypeAdapter(DrugName)
_LANGUAGE, _COUNTRY, _PERMALINK = (TypeAdapter(kind) for kind in (Language, Country, Permalink))
_INDICATION = TypeAdapter(Indication)


@dataclass(frozen=True, slots=True)
class Privacy:
    """Masks and hashes that are applied to every text and author of all sources."""

    keys: AuthorKeys
    regions: tuple[str, ...]
    """Countries whose national phone numbers are masked."""

    @classmethod
    def of(cls, settings: Settings) -> Privacy:
        return cls(AuthorKeys.of(settings), tuple(filter(None, settings.phone_regions.split(","))))

    def regions_with(self, country: str | None) -> tuple[str, ...]:
        """`regions`, and the country of a post where its source states it as ISO 3166-1 does."""
        stated, regions = (country or "").upper(), self.regions
        return (*regions, stated) if len(stated) == 2 and stated not in regions else regions  # noqa: PLR2004


class PostIntake:
    """Makes the reports of posts; an `Intake` for the sources. Not for use by several threads at once."""

    def __init__(
        self, filter_: Filter, privacy: Privacy, window: Window, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock`: seconds since 1970."""
        self._filter = filter_
        self._privacy = privacy
        self.window = window
        self._clock = clock
        self._posts = metrics.prepare_intake()

    @classmethod
    def of(cls, settings: Settings, *, everything: bool = False) -> PostIntake:
        """With an empty window; `streams.intake.rebuild` fills it. `everything` passes all posts. Raises
        ValueError where the file of terms cannot be read.
        """
        terms = None
        if not everything:
            added = read_terms(settings.terms) if settings.terms else []
            terms = Terms([*drug_terms(), *added])
        window = Window(settings.duplicate_reports, settings.duplicate_days)
        return cls(Filter(terms, settings.languages.split(",")), Privacy.of(settings), window)

    def take(self, post: Post) -> Report | None:
        """The report to send, or None where the post is left out: by the filter, or because it is malformed.
        A repeated post gives an equal report.
        """
        if not (_is_valid(_ID, post.id) and _is_valid(_TEXT, post.text)):
            self._posts["malformed"].inc()
            return None
        regions = self._privacy.regions_with(post.country)
        drugs = drugs_without_person(post.drugs, regions)
        verdict = self._filter.judge(reading_form(post.text).text, post.language, drugs)
        if verdict != "passed":
            self._posts[verdict].inc()
            return None
        text, masked = mask(post.text, regions)
        if len(masked) > MAX_MASKED or len(text) > MAX_TEXT:
            self._posts["malformed"].inc()
            return None
        self._posts[verdict].inc()
        for m in masked:
            metrics.MASKED.labels(m.kind).inc()
        seen = self._sighting(post, unmasked_parts(text, masked))
        keeps_person = not post.aggregate_only
        return Report(
            id=post.id,
            text=text,
            drug=drugs[0] if len(drugs) == 1 else drugs or None,
            indication=indication_without_person(post.indication, regions),
            **self._created_at(post),
            language=_valid(_LANGUAGE, post.language),
            permalink=_valid(_PERMALINK, post.permalink) if keeps_person else None,
            author=self.author_hash(post.author) if post.author and keeps_person else None,
            country=_valid(_COUNTRY, post.country),
            duplicate_of=seen.first,
            similar_to=seen.similar,
            reworded=seen.reworded,
            aggregate_only=post.aggregate_only,
            masked=masked,
        )

    def _sighting(self, post: Post, text: str) -> Sighting:
        """What the post repeats. `text`: without what was masked."""
        keeps_text = not post.aggregate_only
        seen = self.window.sight(post.id, text, self._clock(), post.repost_of, keeps_text=keeps_text)
        if seen.first is not None:
            metrics.DUPLICATES.labels(seen.how).inc()
        return seen

    def _created_at(self, post: Post) -> dict[str, Any]:
        """The time of the post, if it is believed; a text that is no time stays out: it may hold anything."""
        stated = stated_time(post.created_at, datetime.fromtimestamp(self._clock(), UTC))
        if stated.doubt:
            return {"meta": {"created_at": stated.time.isoformat()}} if stated.time else {}
        return {"created_at": stated.time, "created_at_assumed_utc": stated.assumed_utc}

    def author_hash(self, author: str) -> str | None:
        """The keyed hash under which new reports of the author are kept; None without a key."""
        return self._privacy.keys.hash(author)

    def author_hashes(self, author: str) -> frozenset[str]:
        """All hashes under which reports of the author may be kept, for `streams.intake.forget`."""
        return self._privacy.keys.hashes(author)

    def has_taken(self, id_: str) -> bool:
        """Whether the window of duplicates has a report of that id."""
        return id_ in self.window

    def forget(self, id_: str) -> None:
        """The report was deleted: later copies of it are first sightings again."""
        self.window.forget(id_)


def drugs_without_person(names: Iterable[str], regions: tuple[str, ...]) -> tuple[str, ...]:
    """Of the drugs that a source states those that a record may hold; one that names a person, or how to
    reach one, is no drug.
    """
    fitting = (n for n in names if n.strip() and _is_valid(_DRUG, n) and not mask(n, regions)[1])
    return tuple(fitting)[:MAX_DRUGS]


def indication_without_person(stated: str | None, regions: tuple[str, ...]) -> str | None:
    """What a source states that drugs were taken for, like `drugs_without_person`."""
    fits = stated and stated.strip() and _is_valid(_INDICATION, stated) and not mask(stated, regions)[1]
    return stated if fits else None


def _is_valid(kind: TypeAdapter[str], value: str) -> bool:
    try:
        kind.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _valid(kind: TypeAdapter[str], value: str | None) -> str | None:
    """The value, or None where a source gives what a record may not hold."""
    return value if value is not None and _is_valid(kind, value) else None


def masked_report(content: dict[str, Any], privacy: Privacy) -> Report:
    """The report in an object, with what identifies people masked in its text, and the hash of its
    `author`, a handle. Unknown fields are left out and counted: they may hold anything. Raises BadRecord;
    changes `content`.
    """
    author = content.pop("author", None)
    if isinstance(author, int) and not isinstance(author, bool):
        author = str(author)  # the id of an account, as a source takes it
    report = report_of(content)
    regions = privacy.regions_with(report.country)
    text, masked = mask(report.text, regions)
    if len(text) > MAX_TEXT or len(masked) > MAX_MASKED:
        raise BadRecord(f"text: longer than {MAX_TEXT} characters, or more than {MAX_MASKED} of them masked")
    drugs = drugs_without_person(report.stated_drugs, regions)
    keeps_person = not report.aggregate_only
    return replace(
        report,
        text=text,
        drug=drugs[0] if len(drugs) == 1 else drugs or None,
        indication=indication_without_person(report.indication, regions),
        masked=masked,
        author=privacy.keys.hash(author) if isinstance(author, str) and author and keeps_person else None,
        permalink=report.permalink if keeps_person else None,
        meta={},
        meta_dropped=report.meta_dropped + len(report.meta),
    )
