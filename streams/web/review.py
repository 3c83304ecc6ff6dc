"""The review queue: one event at a time, and the decisions on it."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

from aiohttp import web

from streams.records import FIRST, RESOLUTION, SECOND, Action, Reading, Review, ReviewedEvent
from streams.reviews.agreement import agreement
from streams.reviews.leases import Leases
from streams.reviews.log import Place, ReviewLog, place_of
from streams.store.database import Database
from streams.web import reports
from streams.web.access import User, form_of, user_of
from streams.web.app import SITE, Site, page
from streams.web.corrections import ACTIONS, decided, found_drugs, state_of
from streams.web.queue import FETCHED, ORDERS, READINGS, place, present, waiting

REASON_LENGTH = 500
#: Events that are tried until one is still as it was when it was first decided.
TRIES = 20


Leased = tuple[Place | None, dict[str, Any] | None, dict[str, Any] | None]
"""The place of an event, its report and the event; None where there is none."""


async def queue(request: web.Request) -> web.Response:
    """Gives the reviewer an event, the same one until it is decided, skipped or the lease ends."""
    site, user = request.app[SITE], user_of(request)
    if site.log is None or site.leases is None or not user.may_review:
        why = "Reviews need a broker: set PV_BROKER." if site.log is None else "You may read, but not review."
        return page(request, "message.html", 403, message=why)
    order = _order(request.query.get("order", ""))
    await site.log.refresh()
    count, (mine, report, event) = await _next_event(site, site.log, order, user)
    readings = site.log.readings.get(mine) if mine and order in READINGS else None
    shown = _shown(site.log, mine, order, event) if mine is not None and event is not None else ""
    if mine is not None and report is not None and event is not None and readings is not None:
        before = readings.original if order == "second" else site.log.current[mine]
        reports.show_as(report, event, before)
    return page(
        request, "review.html", order=order, orders=[*ORDERS, *READINGS], waiting=count, report=report,
        event=event, place=mine, shown=shown, last=_last_of(site.log, user.name), readings=readings,
        agreement=agreement(site.log.readings.values()),
    )  # fmt: skip


async def decide(request: web.Request) -> web.Response:
    """Saves a decision on the event that the session has a lease of."""
    site, user, form = request.app[SITE], user_of(request), await form_of(request)
    (log, leases), where = _topics(request), _place(form)
    action, order = str(form.get("action", "")), _order(str(form.get("order", "")))
    if action == "skip":
        await leases.skip(where, user.session)
        return _back(order)
    if not await leases.holds(where, user.session):
        raise web.HTTPConflict(text="another reviewer may have this event by now; load the queue again")
    await log.refresh()
    event = await site.queries.run(lambda database: _event(database, where))
    reading = _reading_due(log, where, order, user.name)
    is_shown = event is not None and reading and form.get("shown") == _shown(log, where, order, event)
    if event is None or reading is None or not is_shown:
        await leases.release(where, user.session)
        raise web.HTTPConflict(text="the report was changed or decided meanwhile; load the queue again")
    try:
        action, before, after = _decided(site, where, reading, form, event)
    except ValueError as error:
        raise web.HTTPBadRequest(text=str(error)) from None
    made = Review(
        sequence=0, report_id=where[0], start=where[1], end=where[2], fingerprint=where[3],
        reviewer=user.name, decided_at=datetime.now(UTC), action=action, reading=reading,
        before=before, after=after, reason=str(form.get("reason", ""))[:REASON_LENGTH],
    )  # fmt: skip
    written = await log.append(made, lambda: _reading_due(log, where, order, user.name) == reading)
    await leases.release(where, user.session)
    if written is None:
        raise web.HTTPConflict(text="the event was decided meanwhile; load the queue again")
    return _back(order)


async def undo(request: web.Request) -> web.Response:
    """Takes back the reviewer's last decision that is still valid."""
    (log, _), user, form = _topics(request), user_of(request), await form_of(request)
    await log.refresh()
    last = _last_of(log, user.name)
    written = None
    if last is not None and str(last.sequence) == form.get("sequence"):
        made = replace(
            last, action="undo", before=last.after, after=last.before, decided_at=datetime.now(UTC), reason=""
        )
        written = await log.append(made, lambda: _last_of(log, user.name) is last)
    if written is None:
        raise web.HTTPConflict(text="this decision is not your last one any more; load the queue again")
    return _back(_order(str(form.get("order", ""))))


async def _next_event(site: Site, log: ReviewLog, order: str, user: User) -> tuple[int, Leased]:
    """How many events wait in an order, and the one that the session gets. Those that were decided since the
    store has run, that others have and that were skipped may be more than are fetched at once.
    """
    if order in READINGS:
        listed = READINGS[order](log, user.name)
        found = await site.queries.run(lambda database: present(database, listed))
        return len(found), await _leased_event(site, found, order, user)
    for start in itertools.count(0, FETCHED):
        count, listed = await site.queries.run(partial(waiting, order=order, start=start))
        free = [where for where in listed if not _is_decided(log, where)]
        leased = await _leased_event(site, free, order, user)
        if leased[0] is not None or len(listed) < FETCHED:
            break
    return count, leased


async def _leased_event(site: Site, free: list[Place], order: str, user: User) -> Leased:
    """The event that the session gets a lease of, with its report. Left out are events of a report that has
    changed, and those that were decided before the lease began.
    """
    assert site.leases is not None and site.log is not None
    texts = site.settings.web_texts
    for _ in range(TRIES):
        mine = await site.leases.take(free, user.session)
        if mine is None:
            break
        await site.log.refresh()
        report = await site.queries.run(partial(reports.one, id_=mine[0], texts=texts))
        event = _of_report(report, mine)
        if event is not None and _reading_due(site.log, mine, order, user.name) is not None:
            return mine, report, event
        await site.leases.release(mine, user.session)
        free.remove(mine)
    return None, None, None


def _reading_due(log: ReviewLog, where: Place, order: str, name: str) -> Reading | None:
    """Which reading of an event a decision would be; None where it has that one by now."""
    if order in READINGS:
        due = where in READINGS[order](log, name)
        return (SECOND if order == "second" else RESOLUTION) if due else None
    return None if _is_decided(log, where) else FIRST


def _shown(log: ReviewLog, where: Place, order: str, event: Mapping[str, Any]) -> str:
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


def _decided(
    site: Site, where: Place, reading: Reading, form: Mapping[str, Any], event: Mapping[str, Any]
) -> tuple[Action, ReviewedEvent, ReviewedEvent]:
    """The action, and the event before and after it. Raises ValueError where it cannot be saved."""
    assert site.log is not None
    action, before = str(form.get("action", "")), state_of(event)
    if reading == SECOND:
        before = site.log.readings[where].original
    elif reading == RESOLUTION:
        before, readings = site.log.current[where], site.log.readings[where]
        adopted = {"first": readings.first, "second": readings.second}.get(action)
        if adopted is not None:
            return adopted.action, before, adopted.after
    if action not in ACTIONS:
        raise ValueError("no such decision")
    return cast(Action, action), before, decided(before, action, form, event, site.vocabulary)


def _topics(request: web.Request) -> tuple[ReviewLog, Leases]:
    log, leases = request.app[SITE].log, request.app[SITE].leases
    if log is None or leases is None:
        raise web.HTTPForbidden(text="reviews need a broker")
    return log, leases


def _is_decided(log: ReviewLog, where: Place) -> bool:
    return where in log.current and log.current[where].review is not None


def _place(form: Mapping[str, Any]) -> Place:
    try:
        return str(form["report"]), int(form["start"]), int(form["end"]), str(form["fingerprint"])
    except (KeyError, ValueError):
        raise web.HTTPBadRequest(text="no event is named") from None


def _event(database: Database, where: Place) -> dict[str, Any] | None:
    """The event at a place, if the report still has the text that was reviewed."""
    found = reports.events_of(database, where[0])
    return next((reports.opened(event) for event in found if place(event) == where), None)


def _of_report(report: dict[str, Any] | None, where: Place) -> dict[str, Any] | None:
    """The event at a place of a report as the page shows it; None where it no longer exists."""
    if report is None:
        return None
    record_id = report["record_id"]
    return next((e for e in report["events"] if place(e | {"record_id": record_id}) == where), None)


def _last_of(log: ReviewLog, name: str) -> Review | None:
    """The last decision of a reviewer that nothing has followed on the same event."""
    seen: set[Place] = set()
    for review in reversed(log.reviews):
        where = place_of(review)
        if review.reviewer == name and review.action != "undo" and where not in seen:
            return review
        seen.add(where)
    return None


def _order(given: str) -> str:
    return given if given in {*ORDERS, *READINGS} else "uncertainty"


def _back(order: str) -> web.Response:
    return web.Response(status=303, headers={"Location": f"/review?{urlencode({'order': order})}"})


ROUTES = [web.get("/review", queue), web.post("/review", decide), web.post("/review/undo", undo)]
