"""Undecided events of the same words, code, flags and drugs, which are accepted together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from streams.records import FIRST, Review
from streams.reviews.log import Place
from streams.store.database import Database
from streams.web import review
from streams.web.access import User, form_of, user_of
from streams.web.corrections import decided, state_of
from streams.web.offers import reading_due, shown_hash
from streams.web.queue import is_decided, like, place
from streams.web.reports import opened
from streams.web.site import SITE, Site, message, page
from streams.web.store_queries import rows

#: Events that are accepted at once, and characters around the words of each that are shown.
MOST = 100
AROUND = 120


async def look(request: web.Request) -> web.Response:
    """The events like one of the queue, to be looked at before they are accepted."""
    site, order = request.app[SITE], review.order_of(request.query.get("order", ""))
    (log, _), where = review.topics_of(request), review.place_in(request.query)
    if not user_of(request).may_review or not site.settings.web_texts:
        raise web.HTTPForbidden(text="you may not review, or see no texts")
    await log.refresh()
    one = await site.queries.run(lambda database: review.event_at(database, where))
    found = await site.queries.run(lambda database: found_alike(database, one)) if one else []
    due = [event for event in found if not is_decided(log, place(event))]
    for event in due:
        shown = (*place(event), shown_hash(log, place(event), order, event))
        event["value"] = orjson.dumps(shown).decode()
    return page(request, "same.html", order=order, event=one, found=due[:MOST])


async def accept(request: web.Request) -> web.Response:
    """Accepts those events that are still as they were shown, and that nobody else has got."""
    site, user, form = request.app[SITE], user_of(request), await form_of(request)
    log, _ = review.topics_of(request)
    chosen = _chosen(form)
    await log.refresh()
    now, done = datetime.now(UTC), 0
    for where, shown in chosen:
        done += await _accepted(site, user, where, shown, now)
    back = review.address(review.order_of(str(form.get("order", ""))))
    if done < len(chosen):
        text = f"{done} events were accepted. {len(chosen) - done} were changed or decided meanwhile, or "
        return message(request, 409, f"{text}somebody else has them.", (back, "Back to the queue"))
    return web.Response(status=303, headers={"Location": back})


async def _accepted(site: Site, user: User, where: Place, shown: str, now: datetime) -> bool:
    assert site.log is not None and site.leases is not None
    log = site.log
    if await site.leases.take([where], user.session) is None:
        return False
    event = await site.queries.run(lambda database: review.event_at(database, where))
    is_shown = event is not None and shown == shown_hash(log, where, "", event)
    written = None
    if event is not None and is_shown:
        before = state_of(event)
        made = Review(
            sequence=0, report_id=where[0], start=where[1], end=where[2], fingerprint=where[3],
            reviewer=user.name, decided_at=now, action="accept", before=before,
            after=decided(before, "accept", {}, event, site.vocabulary),
            reason="accepted together with others of the same words and code",
        )  # fmt: skip
        written = await log.append(made, lambda: reading_due(log, where, "", user.name) == FIRST)
    await site.leases.release(where, user.session)
    return written is not None


def _chosen(form: Mapping[str, Any]) -> list[tuple[Place, str]]:
    """The ticked events, each with the hash of what was shown of it."""
    given = form.getall("event", []) if hasattr(form, "getall") else []
    try:
        found = [orjson.loads(str(value)) for value in given[:MOST]]
        return [((str(id_), int(a), int(b), str(text)), str(shown)) for id_, a, b, text, shown in found]
    except (ValueError, TypeError):
        raise web.HTTPBadRequest(text="no events are named") from None


def found_alike(database: Database, one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The events like one, each with what stands before and behind its words."""
    found = rows(
        database,
        "SELECT e.*, r.record_id, r.text FROM events e JOIN reports r ON r.id = e.report_id "
        f"WHERE NOT r.deleted AND r.text IS NOT NULL AND {like(one)} "
        f"ORDER BY e.report_id, e.position LIMIT {2 * MOST}",
    )
    for event in map(opened, found):
        text, start, end = event["text"], event["span_start"], event["span_end"]
        event["before"], event["words"] = text[max(0, start - AROUND) : start], text[start:end]
        event["behind"] = text[end : end + AROUND]
    return found


ROUTES = [web.get("/review/same", look), web.post("/review/same", accept)]
