"""Which event the queue gives a reviewer, and whether a decision on it is still due."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from streams.records import FIRST, RESOLUTION, SECOND, Reading
from streams.reviews.log import Place, ReviewLog
from streams.store.database import Database
from streams.web import reports
from streams.web.access import User
from streams.web.corrections import found_drugs, state_of
from streams.web.queue import (
    FETCHED,
    MINE,
    ORDERS,
    READINGS,
    is_decided,
    of_owner,
    place,
    present,
    reviewed_since,
    waiting,
)
from streams.web.site import Site

#: Events that are tried until one is still as it was when it was first decided.
TRIES = 20


@dataclass(frozen=True, slots=True)
class Offer:
    """An event with its report, as the page of the store shows it."""

    where: Place
    report: dict[str, Any]
    event: dict[str, Any]
    alike: int = 0
    """Undecided events that may be accepted together with it, itself too."""


async def next_event(site: Site, log: ReviewLog, order: str, user: User) -> tuple[int, Offer | None]:
    """How many events wait in an order, and the one that the session gets. Those that were decided since the
    store has run, that others have and that were skipped may be more than are fetched at once.
    """
    if order not in ORDERS:
        free = await _listed(site, log, order, user.name)
        return len(free), await _leased(site, free, order, user)
    for start in itertools.count(0, FETCHED):
        count, listed = await site.queries.run(partial(_waiting, log, order, start))
        free = [where for where in listed if not is_decided(log, where)]
        offer = await _leased(site, free, order, user)
        if offer is not None or len(listed) < FETCHED:
            break
    return count, offer


async def count_waiting(site: Site, log: ReviewLog, order: str, name: str) -> int:
    """How many events wait in an order."""
    if order not in ORDERS:
        return len(await _listed(site, log, order, name))
    return (await site.queries.run(partial(_waiting, log, order, 0)))[0]


async def offer_of(site: Site, where: Place) -> Offer | None:
    """The event at a place; None where the report no longer has it, or has another text."""
    report = await site.queries.run(partial(reports.report_of, id_=where[0], texts=site.settings.web_texts))
    if report is None:
        return None
    reports.show_owner(site.log, report)
    for event in report["events"]:
        if place(event | {"record_id": report["record_id"]}) == where:
            return Offer(where, report, event)
    return None


def show_as_decided_on(offer: Offer, log: ReviewLog, order: str) -> None:
    """Shows the event as the decision will find it: a second reader sees no event as the first decision has
    made it, and a dispute is about what holds at present, which the store may not have yet.
    """
    if order == "disputed" and offer.where in log.current:
        reports.show_as(offer.report, offer.event, log.current[offer.where])
    elif order == "second":
        for event in offer.report["events"]:
            known = log.readings.get(place(event | {"record_id": offer.report["record_id"]}))
            if known is not None:
                reports.show_as(offer.report, event, known.original)


def reading_due(log: ReviewLog, where: Place, order: str, name: str) -> Reading | None:
    """Which reading of an event a decision would be; None where it has that one by now."""
    if order in READINGS:
        due = where in READINGS[order](log, name)
        return (SECOND if order == "second" else RESOLUTION) if due else None
    return None if is_decided(log, where) else FIRST


def shown_hash(log: ReviewLog, where: Place, order: str, event: Mapping[str, Any]) -> str:
    """A hash of what the form shows of an event of the store, before a decision is applied to it. A later
    release may have coded the event anew since: then nobody has decided on what the store has.
    """
    known = log.readings.get(where) if order in READINGS else None
    if known is None:
        shown: tuple[Any, ...] = (state_of(event),)
    elif order == "second":
        shown = (known.original,)
    else:
        shown = (log.current[where], known.first, known.second)
    return hashlib.sha256(repr((shown, found_drugs(event))).encode()).hexdigest()


def _waiting(log: ReviewLog, order: str, start: int, database: Database) -> tuple[int, list[Place]]:
    """The count follows a decision at once, and not again when the store has applied it."""
    with database.snapshot():
        count, listed = waiting(database, order, start)
        return count - reviewed_since(database, log), listed


async def _listed(site: Site, log: ReviewLog, order: str, name: str) -> list[Place]:
    if order == MINE:
        return await site.queries.run(partial(of_owner, log=log, name=name))
    listed = READINGS[order](log, name)
    return await site.queries.run(partial(present, places=listed))


async def _leased(site: Site, free: list[Place], order: str, user: User) -> Offer | None:
    """The event that the session gets a lease of, with its report. Left out are events of a report that has
    changed, and those that were decided before the lease began.
    """
    assert site.leases is not None and site.log is not None
    for _ in range(TRIES):
        mine = await site.leases.take(free, user.session)
        if mine is None:
            break
        await site.log.refresh()
        offer = await offer_of(site, mine)
        if offer is not None and reading_due(site.log, mine, order, user.name) is not None:
            return offer
        await site.leases.release(mine, user.session)
        free.remove(mine)
    return None
