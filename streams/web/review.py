"""The review queue: one event at a time, and the decisions on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

from aiohttp import web

from streams.records import RESOLUTION, SECOND, Action, Reading, Review, ReviewedEvent
from streams.reviews.agreement import agreement
from streams.reviews.leases import Leases
from streams.reviews.log import Place, ReviewLog
from streams.store.database import Database
from streams.web import offers, reports
from streams.web.access import form_of, user_of
from streams.web.corrections import ACTIONS, FieldError, decided, shown_fields, state_of, typed_fields
from streams.web.offers import Offer, count_waiting, next_event, offer_of, reading_due, shown_hash
from streams.web.queue import NAMES, ORDERS, READINGS, alike, place
from streams.web.site import SITE, Site, message, page
from streams.web.today import day_of, is_standing, last_step

REASON_LENGTH = 500
#: Of the nearest terms, those that have a button.
CHOICES = 5
#: Of an event that has got another code, text or decision while it was looked at.
CHANGED = "The report was changed or decided meanwhile; load the queue again."


@dataclass(frozen=True, slots=True)
class Draft:
    """What the form has: a hash of what is decided on, the fields, and what is wrong with one of them."""

    shown: str
    fields: Mapping[str, Any]
    error: FieldError | None = None


async def queue(request: web.Request) -> web.Response:
    """Gives the reviewer an event, the same one until it is decided, skipped or the lease ends."""
    site, user = request.app[SITE], user_of(request)
    if site.log is None or site.leases is None or not user.may_review:
        why = "Reviews need a broker: set PV_BROKER." if site.log is None else "You may read, but not review."
        return message(request, 403, why)
    order = order_of(request.query.get("order", ""))
    await site.log.refresh()
    count, offer = await next_event(site, site.log, order, user)
    if offer is None:
        return _page(request, order, count)
    shown = shown_hash(site.log, offer.where, order, offer.event)
    offers.show_as_decided_on(offer, site.log, order)
    if order in ORDERS and offer.event["mention"] and site.settings.web_texts:
        offer = replace(offer, alike=await site.queries.run(partial(alike, event=offer.event)))
    return _page(request, order, count, offer, Draft(shown, shown_fields(offer.event)))


async def decide(request: web.Request) -> web.Response:
    """Saves a decision on the event that the session has a lease of."""
    site, user, form = request.app[SITE], user_of(request), await form_of(request)
    (log, leases), where = topics_of(request), place_in(form)
    action, order = str(form.get("action", "")), order_of(str(form.get("order", "")))
    if action == "skip":
        await leases.skip(where, user.session)
        return _back(order)
    if not await leases.holds(where, user.session):
        return _conflict(request, order, "Another reviewer may have this event by now; load the queue again.")
    await log.refresh()
    event = await site.queries.run(lambda database: event_at(database, where))
    reading = reading_due(log, where, order, user.name)
    is_shown = event is not None and reading and form.get("shown") == shown_hash(log, where, order, event)
    if event is None or reading is None or not is_shown:
        await leases.release(where, user.session)
        return _conflict(request, order, CHANGED)
    try:
        action, before, after = _decided(site, where, reading, form, event)
    except FieldError as error:
        return await _kept_form(request, where, form, error)
    made = Review(
        sequence=0, report_id=where[0], start=where[1], end=where[2], fingerprint=where[3],
        reviewer=user.name, decided_at=datetime.now(UTC), action=action, reading=reading,
        before=before, after=after, reason=str(form.get("reason", ""))[:REASON_LENGTH],
    )  # fmt: skip
    written = await log.append(made, lambda: reading_due(log, where, order, user.name) == reading)
    await leases.release(where, user.session)
    if written is None:
        return _conflict(request, order, CHANGED)
    return _back(order)


async def undo(request: web.Request) -> web.Response:
    """Takes back the reviewer's last decision that is still valid, or the last that were made together."""
    (log, _), user, form = topics_of(request), user_of(request), await form_of(request)
    order = order_of(str(form.get("order", "")))
    await log.refresh()
    step, now, written = last_step(log, user.name), datetime.now(UTC), None
    for last in step if step and str(step[0].sequence) == form.get("sequence") else []:
        made = replace(last, action="undo", before=last.after, after=last.before, decided_at=now, reason="")
        written = await log.append(made, partial(is_standing, log, last)) or written
    if written is None:
        return _conflict(request, order, "This decision is not your last one any more; load the queue again.")
    return _back(order)


async def _kept_form(
    request: web.Request, where: Place, form: Mapping[str, Any], error: FieldError
) -> web.Response:
    """The form again with all that was typed, and what is wrong at its field."""
    site, (log, _), order = request.app[SITE], topics_of(request), order_of(str(form.get("order", "")))
    offer = await offer_of(site, where)
    if offer is None:
        return _conflict(request, order, CHANGED)
    count = await count_waiting(site, log, order, user_of(request).name)
    offers.show_as_decided_on(offer, log, order)
    draft = Draft(str(form["shown"]), typed_fields(form, offer.event), error)
    return _page(request, order, count, offer, draft)


def _page(
    request: web.Request, order: str, count: int, offer: Offer | None = None, draft: Draft | None = None
) -> web.Response:
    (log, _), status = topics_of(request), 400 if draft and draft.error else 200
    name = user_of(request).name
    return page(
        request, "review.html", status, order=order, orders=NAMES, waiting=count, offer=offer,
        draft=draft, readings=log.readings.get(offer.where) if offer and order in READINGS else None,
        choices=CHOICES, last=last_step(log, name), day=day_of(log, name, datetime.now(UTC)),
        agreement=agreement(log.readings.values()),
    )  # fmt: skip


def _decided(
    site: Site, where: Place, reading: Reading, form: Mapping[str, Any], event: Mapping[str, Any]
) -> tuple[Action, ReviewedEvent, ReviewedEvent]:
    """The action, and the event before and after it. Raises FieldError, and HTTPBadRequest for another
    action.
    """
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
        raise web.HTTPBadRequest(text="no such decision")
    return cast(Action, action), before, decided(before, action, form, event, site.vocabulary)


def topics_of(request: web.Request) -> tuple[ReviewLog, Leases]:
    log, leases = request.app[SITE].log, request.app[SITE].leases
    if log is None or leases is None:
        raise web.HTTPForbidden(text="reviews need a broker")
    return log, leases


def place_in(form: Mapping[str, Any]) -> Place:
    try:
        return str(form["report"]), int(form["start"]), int(form["end"]), str(form["fingerprint"])
    except (KeyError, ValueError):
        raise web.HTTPBadRequest(text="no event is named") from None


def event_at(database: Database, where: Place) -> dict[str, Any] | None:
    """The event at a place, if the report still has the text that was reviewed."""
    events = reports.events_of(database, where[0])
    return next((reports.opened(event) for event in events if place(event) == where), None)


def order_of(given: str) -> str:
    return given if given in NAMES else "uncertainty"


def _conflict(request: web.Request, order: str, why: str) -> web.Response:
    return message(request, 409, why, (address(order), "Back to the queue"))


def _back(order: str) -> web.Response:
    return web.Response(status=303, headers={"Location": address(order)})


def address(order: str) -> str:
    return f"/review?{urlencode({'order': order})}"


ROUTES = [web.get("/review", queue), web.post("/review", decide), web.post("/review/undo", undo)]
