"""The signals, a signal with its reports, and decisions on it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from aiokafka.errors import KafkaError

from streams.records import SignalDecision, SignalStatus
from streams.reviews.chain import BrokenChain
from streams.reviews.log import ReviewLog
from streams.signals.facts import FLAGS, PARTS_TEXT
from streams.signals.population import WINDOWS, Pair
from streams.signals.states import ENDED, RULE, STATES, UNDECIDED, Standing, standings
from streams.signals.surveillance import CAVEAT
from streams.store.database import Database, DatabaseError
from streams.store.decisions import signal_decisions
from streams.topics import TopicsError
from streams.web import dossier, reports
from streams.web.access import clean_name, form_of, user_of
from streams.web.corrections import FieldError
from streams.web.review import REASON_LENGTH
from streams.web.signal_table import SHOWN, SORTS, SignalFilter, limits_line, select, sparkline, table
from streams.web.site import SITE, Site, csv_file, message, page
from streams.web.store_queries import Rows

logger = logging.getLogger(__name__)


async def signals(request: web.Request) -> web.Response:
    site, wanted = request.app[SITE], SignalFilter.of(request.query)
    outcome = await site.signals.outcome(all_reports=wanted.all_reports)
    chosen = select(site.signals, outcome, wanted, await _standings(site))
    states = Counter(row.standing.status.state for row in chosen)
    chosen = [row for row in chosen if wanted.state in {"", row.standing.status.state}]
    if request.query.get("format") == "csv":
        return csv_file("signals.csv", table(chosen))
    address = {name: value for name, value in request.query.items() if name != "state"}
    return page(
        request, "signals.html", wanted=wanted, shown=chosen[:SHOWN], pairs=len(chosen), outcome=outcome,
        windows=list(WINDOWS), sorts=list(SORTS), caveat=CAVEAT, today=_today(), flags=FLAGS,
        sparkline=sparkline, limits_line=limits_line, parts=PARTS_TEXT, all_states=STATES, ended=ENDED,
        rule=RULE, file=urlencode({**request.query, "format": "csv"}),
        socs=sorted({soc for soc in site.signals.organ_classes.values() if soc}),
        states=[(one, states[one], urlencode(address | {"state": one})) for one in STATES if states[one]],
    )  # fmt: skip


async def signal(request: web.Request) -> web.Response:
    return await _page(request, request.query.get("drug", ""), request.query.get("term", ""))


def _reports(database: Database, pair: Pair, *, texts: bool, sort: bool) -> tuple[dict[str, int], Rows]:
    """The latest reports of a pair, with `sort` those of the most complete cases first; and their numbers."""
    numbers, found = reports.of_pair(database, *pair, texts=texts)
    reports.show_completeness(database, found)
    if sort:
        found.sort(key=lambda report: -report["case"]["completeness"] if report["case"] else 0)
    return numbers, found


async def export(request: web.Request) -> web.Response:
    """A signal with all that belongs to it, to be saved as a file."""
    site, texts = request.app[SITE], request.app[SITE].settings.web_texts
    pair = request.query.get("drug", ""), request.query.get("term", "")
    stored = await site.queries.run(lambda d: dossier.query(d, pair, texts=texts))
    standing, outcome = (await _standings(site)).get(pair, UNDECIDED), await site.signals.outcome()
    if not stored["reports"] and not standing.decisions:
        return message(request, 404, "No report has this pair.", ("/signals", "Back to the signals"))
    made = dossier.dossier(pair, outcome, standing, stored, site.signals)
    is_json = request.query.get("format") == "json"
    return web.Response(
        body=dossier.as_json(made) if is_json else dossier.as_html(made).encode(),
        content_type="application/json" if is_json else "text/html", charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="signal.{"json" if is_json else "html"}"'},
    )  # fmt: skip


async def decide(request: web.Request) -> web.Response:
    """Writes a decision, unless somebody else has decided on the signal since the form was made."""
    site, user, form = request.app[SITE], user_of(request), await form_of(request)
    log, pair = site.log, (str(form.get("drug", "")), str(form.get("term", "")))
    if log is None:
        raise web.HTTPForbidden(text="decisions need a broker")
    await log.refresh()
    standing, numbers = (await _standings(site)).get(pair, UNDECIDED), await _numbers(site, pair)
    if not numbers["reports"] and not standing.decisions:
        raise web.HTTPNotFound(text="no report has this pair")
    if form.get("version") != str(standing.version):
        return _conflict(request, pair)
    try:
        after = _status(form, standing)
    except FieldError as error:
        return await _page(request, *pair, dict(form), error)
    made = SignalDecision(
        sequence=0, drug=pair[0], term=pair[1], reviewer=user.name, decided_at=datetime.now(UTC),
        before=standing.status, after=after, reason=_text(form, "reason"), comment=_text(form, "comment"),
        **numbers,
    )  # fmt: skip
    is_due = partial(_is_last, log, pair, standing.version)
    if await log.append(made, is_due) is None:
        return _conflict(request, pair)
    return web.Response(status=303, headers={"Location": _address(pair)})


async def keep_reopened(site: Site, log: ReviewLog) -> None:
    """Writes after each computation which ended signals are new again, else they would be ended as before
    when the numbers fall. What cannot be written now is written after a later one.
    """
    while True:
        await site.signals.renewed.wait()
        site.signals.renewed.clear()
        try:
            await _write_reopened(site, log)
        except (BrokenChain, DatabaseError, KafkaError, TopicsError) as error:
            logger.warning("signals that are new again are not written: %s", type(error).__name__)


async def _write_reopened(site: Site, log: ReviewLog) -> None:
    await log.refresh()
    computed_at = (await site.signals.outcome()).computed_at
    for pair, standing in (await _standings(site)).items():
        last, now = standing.decisions[-1], datetime.now(UTC)
        # Numbers from before the decision say nothing of what has come since.
        if standing.reopened and not standing.is_by_rule and last.decided_at < computed_at:
            made = SignalDecision(
                sequence=0, drug=pair[0], term=pair[1], reviewer="", decided_at=now, before=last.after,
                after=standing.status, reason=standing.reopened, **await _numbers(site, pair),
            )  # fmt: skip
            await log.append(made, partial(_is_last, log, pair, standing.version))


def _is_last(log: ReviewLog, pair: Pair, version: int) -> bool:
    """Whether nobody has decided on a signal after the decision of this number."""
    return all(d.sequence <= version for d in log.signals if (d.drug, d.term) == pair)


async def _standings(site: Site) -> dict[Pair, Standing]:
    """By what this process has read of the topic and what the store has: each may be ahead."""
    stored = await site.queries.run(signal_decisions)
    outcome = await site.signals.outcome()
    return standings([*stored, *(site.log.signals if site.log else ())], outcome.signals)


async def _numbers(site: Site, pair: Pair) -> dict[str, Any]:
    """The numbers of a pair that a decision has."""
    outcome = await site.signals.outcome()
    for one in outcome.signals:
        if (one.drug, one.term) == pair:
            s = one.windows["all"]
            return {"reports": s.n, "ic025": s.ic.low, "eb05": s.ebgm.low}
    return {"reports": await site.queries.run(lambda database: reports.unique_reports(database, *pair))}


def _status(form: Mapping[str, Any], standing: Standing) -> SignalStatus:
    """What the form states. Raises FieldError."""
    state = next((state for state in STATES if state == form.get("state")), None)
    if state is None:
        raise FieldError("state", "Choose one of the states.")
    if state != standing.status.state and not _text(form, "reason"):
        raise FieldError("reason", "Another state needs a reason.")
    try:
        due = date.fromisoformat(str(form["due"])) if form.get("due") else None
    except ValueError:
        raise FieldError("due", "A date is needed, such as 2026-12-31.") from None
    return SignalStatus(state=state, owner=clean_name(str(form.get("owner", ""))), due=due)


def _text(form: Mapping[str, Any], field: str) -> str:
    """In one line, because some browsers send other ends of lines."""
    return " ".join(str(form.get(field, "")).split())[:REASON_LENGTH]


async def _page(
    request: web.Request, drug: str, term: str, form: Mapping[str, Any] | None = None,
    error: FieldError | None = None,
) -> web.Response:  # fmt: skip
    site = request.app[SITE]
    texts, pair = site.settings.web_texts, (drug, term)
    sort = request.query.get("sort") == "completeness"
    numbers, reported = await site.queries.run(lambda d: _reports(d, pair, texts=texts, sort=sort))
    states, outcome = await _standings(site), await site.signals.outcome()
    found = select(site.signals, outcome, SignalFilter(drug, term), states)
    row = next((row for row in found if (row.signal.drug, row.signal.term) == pair), None)
    standing = states.get(pair, UNDECIDED)
    counted = standing.decisions or (await _numbers(site, pair))["reports"]
    fields = {"reason": "", "comment": ""} | asdict(standing.status) | dict(form or {})
    return page(
        request, "pair.html", 400 if error else 200, drug=drug, term=term, reports=reported, numbers=numbers,
        row=row, caveat=CAVEAT, standing=standing, states=STATES, rule=RULE, fields=fields, error=error,
        may_decide=site.log is not None and user_of(request).may_review and bool(counted),
    )  # fmt: skip


def _conflict(request: web.Request, pair: Pair) -> web.Response:
    why = "Somebody else has decided on this signal meanwhile; look at that decision first."
    return message(request, 409, why, (_address(pair), "Back to the signal"))


def _address(pair: Pair) -> str:
    return f"/pair?{urlencode({'drug': pair[0], 'term': pair[1]})}"


def _today() -> date:
    return datetime.now(UTC).date()


ROUTES = [
    web.get("/signals", signals),
    web.get("/pair", signal),
    web.get("/signal", export),
    web.post("/review/signal", decide),
]
