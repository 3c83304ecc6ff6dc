"""The review queue: one event at a time, and the decisions on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlencode

from aiohttp import web

from models.terminology import Term
from streams.records import Action, Review, ReviewedEvent
from streams.reviews.log import Place, ReviewLog, place_of
from streams.store.database import Database
from streams.web import reports
from streams.web.access import user_of
from streams.web.app import SITE, page
from streams.web.queue import ORDERS, place, waiting

ACTIONS = ("accept", "reject", "correct")
FLAGS = ("negated", "hypothetical", "other_experiencer")
REASON_LENGTH = 500
NIL = "NIL"


async def queue(request: web.Request) -> web.Response:
    """Gives the reviewer an event, the same one until it is decided, skipped or the lease ends."""
    site, user = request.app[SITE], user_of(request)
    if site.log is None or not user.may_review:
        why = "Reviews need a broker: set PV_BROKER." if site.log is None else "You may read, but not review."
        return page(request, "message.html", 403, message=why)
    order = request.query.get("order", "")
    order = order if order in ORDERS else "uncertainty"
    count, found = await site.reading.ask(lambda database: waiting(database, order))
    free = [where for where in found if not _decided(site.log, where)]
    mine = site.leases.take(free, user.session)
    texts, report, event = site.settings.web_texts, None, None
    if mine is not None:
        report = await site.reading.ask(lambda database: reports.one(database, mine[0], texts=texts))
        event = _of_report(report, mine)
    return page(
        request, "review.html", order=order, orders=list(ORDERS), waiting=count, report=report, event=event,
        place=mine, last=_last_of(site.log, user.name),
    )  # fmt: skip


async def decide(request: web.Request) -> web.Response:
    """Takes a decision on the event that the reviewer has in hand."""
    site, user, form = request.app[SITE], user_of(request), await request.post()
    log = _log(request)
    where, action = _place(form), str(form.get("action", ""))
    order = str(form.get("order", ""))
    if action == "skip":
        site.leases.skip(where, user.session)
        return _back(order)
    if action not in ACTIONS:
        raise web.HTTPBadRequest(text="no such decision")
    if not site.leases.holds(where, user.session):
        raise web.HTTPConflict(text="another reviewer may have this event by now; load the queue again")
    event = await site.reading.ask(lambda database: _event(database, where))
    if event is None or _decided(log, where):
        site.leases.release(where)
        raise web.HTTPConflict(text="the report was changed or decided meanwhile; load the queue again")
    before = _state(event)
    try:
        after = _after(before, action, form, site.terms)
    except ValueError as error:
        raise web.HTTPBadRequest(text=str(error)) from None
    await log.append(
        Review(
            sequence=0, report_id=where[0], start=where[1], end=where[2], fingerprint=where[3],
            reviewer=user.name, decided_at=datetime.now(UTC), action=cast(Action, action),
            before=before, after=after, reason=str(form.get("reason", ""))[:REASON_LENGTH],
        )
    )  # fmt: skip
    site.leases.release(where)
    return _back(order)


async def undo(request: web.Request) -> web.Response:
    """Takes back the reviewer's last decision that is still valid."""
    log, user, form = _log(request), user_of(request), await request.post()
    last = _last_of(log, user.name)
    if last is None or str(last.sequence) != form.get("sequence"):
        raise web.HTTPConflict(text="this decision is not your last one any more; load the queue again")
    await log.append(
        replace(
            last, action="undo", before=last.after, after=last.before, decided_at=datetime.now(UTC), reason=""
        )
    )
    return _back(str(form.get("order", "")))


def _log(request: web.Request) -> ReviewLog:
    log = request.app[SITE].log
    if log is None:
        raise web.HTTPForbidden(text="reviews need a broker")
    return log


def _decided(log: ReviewLog, where: Place) -> bool:
    return where in log.current and log.current[where].review is not None


def _place(form: Mapping[str, Any]) -> Place:
    try:
        return str(form["report"]), int(form["start"]), int(form["end"]), str(form["fingerprint"])
    except (KeyError, ValueError):
        raise web.HTTPBadRequest(text="no event is named") from None


def _event(database: Database, where: Place) -> dict[str, Any] | None:
    """The event at a place, if the report still has the text that was reviewed."""
    found = reports.events_of(database, where[0])
    return next((event for event in found if place(event) == where), None)


def _state(event: Mapping[str, Any]) -> ReviewedEvent:
    return ReviewedEvent(
        llt=event["llt"], pt=event["pt"], soc=event["soc"], negated=bool(event["negated"]),
        hypothetical=bool(event["hypothetical"]), other_experiencer=bool(event["other_experiencer"]),
        serious=bool(event["serious"]), review=event["review"],
    )  # fmt: skip


def _after(
    before: ReviewedEvent, action: str, form: Mapping[str, Any], terms: Mapping[str, Term]
) -> ReviewedEvent:
    """What a decision makes of an event; raises ValueError for an unknown term."""
    if action == "accept":
        return replace(before, review="accept")
    if action == "reject":
        return replace(before, review="reject")
    flags: dict[str, Any] = {name: name in form for name in FLAGS}
    wanted = str(form.get("term", "")).strip()
    corrected = replace(before, review="correct", **flags)
    if not wanted or wanted.lower() == (before.llt or NIL).lower():
        return corrected
    if wanted.upper() == NIL:
        return replace(corrected, llt=None, pt=None, soc=None, serious=False)
    term = terms.get(wanted.lower())
    if term is None:
        raise ValueError("the terminology has no such term; choose one of the list")
    return replace(corrected, llt=term.llt, pt=term.pt, soc=term.soc, serious=term.serious)


def _last_of(log: ReviewLog, name: str) -> Review | None:
    """The last decision of a reviewer that nothing has followed on the same event."""
    seen: set[Place] = set()
    for review in reversed(log.reviews):
        where = place_of(review)
        if review.reviewer == name and review.action != "undo" and where not in seen:
            return review
        seen.add(where)
    return None


def _of_report(report: dict[str, Any] | None, where: Place) -> dict[str, Any] | None:
    """The event at a place of a report as the page shows it; None where it has gone meanwhile."""
    events = report["events"] if report else []
    return next((e for e in events if place(e | {"record_id": report["record_id"]}) == where), None)


def _back(order: str) -> web.Response:
    query = urlencode({"order": order if order in ORDERS else "uncertainty"})
    return web.Response(status=303, headers={"Location": f"/review?{query}"})


ROUTES = [web.get("/review", queue), web.post("/review", decide), web.post("/review/undo", undo)]
