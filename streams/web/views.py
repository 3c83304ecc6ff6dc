"""The pages to look at: overview and a report, which can be assigned; and signing in."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from streams.records import Assignment
from streams.reviews.cases import cases, csv_lines, drafts, json_lines
from streams.reviews.log import ReviewLog
from streams.store.database import Database
from streams.store.tables import quoted
from streams.web import reports
from streams.web.access import ACCESS, clean_name, form_of, set_cookie, user_of
from streams.web.queue import reviewed_since
from streams.web.site import SITE, message, page
from streams.web.store_queries import rows

#: Names that a field is completed to.
SUGGESTED = 12


async def overview(request: web.Request) -> web.Response:
    site = request.app[SITE]
    texts = site.settings.web_texts

    def query(database: Database) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        with database.snapshot():
            totals = reports.totals(database)
            if site.log is not None:
                totals["reviewed"] = (totals["reviewed"] or 0) + reviewed_since(database, site.log)
            return totals, reports.latest(database, texts=texts)

    totals, latest = await site.queries.run(query)
    dead = site.live.dead_letters if site.live else {}
    rate = site.live.rate if site.live else 0.0
    return page(request, "overview.html", totals=totals, reports=latest, dead=dead, rate=rate)


async def live(request: web.Request) -> web.StreamResponse:
    stream = request.app[SITE].live
    if stream is None:
        raise web.HTTPNotFound(text="no broker")
    return await stream.stream(request)


async def report(request: web.Request) -> web.Response:
    site, id_ = request.app[SITE], request.query.get("id", "")
    texts = site.settings.web_texts
    details = await site.queries.run(lambda database: _with_case(database, id_, texts=texts))
    if details is None:
        return message(request, 404, "There is no such report, or it was deleted.")
    reports.show_owner(site.log, details)
    may_assign = site.log is not None and user_of(request).may_review
    people = _people(site.log) if may_assign else ()
    return page(request, "report.html", report=details, people=people, may_assign=may_assign)


def _with_case(database: Database, id_: str, *, texts: bool) -> dict[str, Any] | None:
    """A report, with how complete its case is."""
    found = reports.report_of(database, id_, texts=texts)
    if found is not None:
        reports.show_completeness(database, [found])
    return found


async def assign(request: web.Request) -> web.Response:
    """Writes an assignment, unless somebody else has assigned the report since the form was made."""
    site, user, form = request.app[SITE], user_of(request), await form_of(request)
    log, id_ = site.log, str(form.get("report", ""))
    if log is None:
        raise web.HTTPForbidden(text="assignments need a broker")
    known = f"SELECT 1 FROM reports WHERE NOT deleted AND id = {quoted(id_)}"
    if not await site.queries.run(lambda database: rows(database, known)):
        raise web.HTTPNotFound(text="there is no such report")
    await log.refresh()
    before, seen = log.assigned.get(id_), str(form.get("version"))
    made = Assignment(
        sequence=0, report_id=id_, reviewer=user.name, decided_at=datetime.now(UTC),
        before=before.owner if before else "", owner=clean_name(str(form.get("owner", ""))),
    )  # fmt: skip
    address = f"/report?{urlencode({'id': id_})}"
    if await log.append(made, lambda: str(_version(log, id_)) == seen) is None:
        why = "Somebody else has assigned this report meanwhile."
        return message(request, 409, why, (address, "Back to the report"))
    return web.Response(status=303, headers={"Location": address})


async def case(request: web.Request) -> web.Response:
    """A report as a candidate case, to be saved as a file."""
    site, id_ = request.app[SITE], request.query.get("id", "")
    texts, form = site.settings.web_texts, request.query.get("format", "json")
    lines, ending = {"csv": (csv_lines, "csv"), "e2b": (drafts, "e2b.json")}.get(form, (json_lines, "json"))
    candidates = await site.queries.run(lambda d: list(cases(d, undecided=True, texts=texts, ids=[id_])))
    if not candidates:
        return message(request, 404, "There is no such report with an event.")
    return web.Response(
        text="".join(lines(candidates)),
        content_type="text/csv" if form == "csv" else "application/json", charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="case.{ending}"'},
    )  # fmt: skip


def _people(log: ReviewLog | None) -> list[str]:
    """Who has decided or assigned, and who was assigned to."""
    made = log.decisions if log else ()
    return sorted({d.reviewer for d in made} | {d.owner for d in made if isinstance(d, Assignment)} - {""})


def _version(log: ReviewLog, id_: str) -> int:
    """The place in the chain of the last assignment of a report, as the store has it too."""
    return log.assigned[id_].sequence if id_ in log.assigned else -1


async def login(request: web.Request) -> web.Response:
    return page(request, "login.html", wrong=False)


async def sign_in(request: web.Request) -> web.Response:
    form, access = await form_of(request), request.app[ACCESS]
    if access.by_header:
        raise web.HTTPNotFound
    user = access.sign_in(request, str(form.get("token", "")), str(form.get("name", "")))
    if user is None:
        return page(request, "login.html", 403, wrong=True)
    response = web.Response(status=303, headers={"Location": "/"})
    set_cookie(request, response, user)
    return response


async def terms(request: web.Request) -> web.Response:
    """Lowest-level terms, each with its preferred term."""
    known = request.app[SITE].vocabulary.terms
    return _suggested(request, known, lambda key: (known[key].llt, known[key].pt))


async def drugs(request: web.Request) -> web.Response:
    """Nonproprietary names, each with the name of the lexicon by which it was found."""
    known = request.app[SITE].vocabulary.drug_names
    return _suggested(request, known, lambda key: (known[key], key))


def _suggested(
    request: web.Request, known: Iterable[str], shown: Callable[[str], tuple[str, str]]
) -> web.Response:
    """What has the words of the query in it, first what begins with them: each once, as JSON."""
    wanted = request.query.get("q", "").strip().lower()[:100]
    keys = [key for key in known if wanted and wanted in key]
    keys.sort(key=lambda key: (not key.startswith(wanted), len(key), key))
    labels: dict[str, str] = {}
    for key in itertools.takewhile(lambda _: len(labels) < SUGGESTED, keys):
        labels.setdefault(*shown(key))
    return web.json_response([{"value": value, "label": label} for value, label in labels.items()])


ROUTES = [
    web.get("/", overview),
    web.get("/live", live),
    web.get("/report", report),
    web.post("/review/assign", assign),
    web.get("/case", case),
    web.get("/terms", terms),
    web.get("/drugs", drugs),
    web.get("/login", login),
    web.post("/login", sign_in),
]
