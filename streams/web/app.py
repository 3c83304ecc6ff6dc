"""The web application: routes, templates and background tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jinja2
from aiohttp import web
from markupsafe import Markup, escape

from models.drugs import DrugLexicon
from models.terminology import Term
from streams.broker.watch import BrokerWatch
from streams.monitoring.server import serve
from streams.reviews.leases import Leases
from streams.reviews.log import ReviewLog
from streams.settings import EMBEDDED, Settings
from streams.web import access
from streams.web.access import ACCESS, USER, Access
from streams.web.corrections import Vocabulary
from streams.web.live import Live
from streams.web.signal_table import Signals
from streams.web.store_queries import StoreQueries

HERE = Path(__file__).parent
#: The files that pages refer to. The types are stated, because those of `mimetypes` depend on the machine.
STATIC = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Site:
    """What the handlers share."""

    settings: Settings
    templates: jinja2.Environment
    queries: StoreQueries
    signals: Signals
    vocabulary: Vocabulary
    live: Live | None
    """None, like `log` and `leases`, without a broker."""
    log: ReviewLog | None
    leases: Leases | None


SITE: web.AppKey[Site] = web.AppKey("site", Site)


def application(settings: Settings, terms: list[Term]) -> web.Application:
    """The page of the store; with live reports and reviews if PV_BROKER names a broker. Raises AccessError
    where the settings would give access without authentication.
    """
    from streams.web import errors, review, views  # noqa: PLC0415  they need SITE

    app = web.Application(middlewares=[errors.report, access.guard])
    app[ACCESS] = Access(settings)
    templates = environment()
    has_broker = settings.broker != EMBEDDED
    app[SITE] = Site(
        settings, templates, StoreQueries(settings), Signals(StoreQueries(settings)),
        Vocabulary({t.llt.lower(): t for t in terms}, DrugLexicon.load()),
        Live(settings, templates.get_template("live_report.html").render) if has_broker else None,
        ReviewLog(settings) if has_broker else None,
        Leases(settings) if has_broker else None,
    )  # fmt: skip
    app.add_routes([*views.ROUTES, *review.ROUTES, *static_files()])
    app.on_response_prepare.append(access.add_headers)
    app.cleanup_ctx.append(_background_tasks)
    return app


def static_files() -> list[web.RouteDef]:
    """The routes of the style sheet, the script and the icon, which are kept in memory: aiohttp's own route
    leaves a file open where a browser leaves while it is opened.
    """

    def route(name: str, kind: str) -> web.RouteDef:
        content = (HERE / "static" / name).read_bytes()

        async def answer(_request: web.Request) -> web.Response:
            return web.Response(body=content, content_type=kind)

        return web.get(f"/static/{name}", answer)

    return [route(name, kind) for name, kind in STATIC.items()]


async def start(app: web.Application) -> tuple[web.AppRunner, int]:
    """Serves at PV_WEB_HOST and PV_WEB_PORT; returns the runner, whose `cleanup` stops the server, and the
    port. Raises OSError, with the errno of the cause, where the port is in use or the address is not one of
    this machine; then nothing is left running.
    """
    settings = app[SITE].settings
    try:
        return await serve(app, settings.web_host, settings.web_port)
    except OSError as error:
        place = f"{settings.web_host}:{settings.web_port} (PV_WEB_HOST and PV_WEB_PORT)"
        raise OSError(error.errno, f"the page cannot be served at {place}: {error.strerror}") from None


def environment() -> jinja2.Environment:
    """Templates in which every value is escaped and an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    made.filters["when"] = _when
    made.filters["exact"] = _exact
    return made


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """A page from a template; `values` are added to those that all pages have."""
    site, user = request.app[SITE], request.get(USER)
    common = {
        "user": user,
        "csrf": request.app[ACCESS].csrf(user) if user else "",
        "path": request.path,
        "texts": site.settings.web_texts,
        "has_broker": site.log is not None,
        "can_sign_in": not request.app[ACCESS].by_header,
        "by_token": request.app[ACCESS].by_token,
    }
    html = site.templates.get_template(template).render(common | values)
    return web.Response(text=html, content_type="text/html", status=status)


def message(
    request: web.Request, status: int, text: str, back: tuple[str, str] = ("/", "Back to the overview")
) -> web.Response:
    """A page that only says something, with a way back: an address and its name."""
    title = HTTPStatus(status).phrase
    return page(request, "message.html", status, title=title, message=text, back=back)


async def _background_tasks(app: web.Application) -> AsyncIterator[None]:
    site = app[SITE]
    topics = [topic for topic in (site.log, site.leases) if topic is not None]
    for topic in topics:
        await BrokerWatch(site.settings).until_answered(partial(_started, topic))
    tasks = [asyncio.create_task(site.signals.start())]
    if site.live is not None:
        tasks.append(asyncio.create_task(site.live.run()))
    yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for topic in topics:
        await topic.stop()
    await site.signals.close()
    await site.queries.close()


async def _started(topic: ReviewLog | Leases) -> None:
    """After an error nothing stays open."""
    try:
        await topic.start()
    except BaseException:
        await topic.stop()
        raise


def _when(time: datetime | str | None) -> str:
    """To the minute, in UTC."""
    if time is None:
        return ""
    return (time if isinstance(time, str) else time.isoformat(" "))[:16].replace("T", " ")


def _exact(text: str) -> Markup:
    """Escaped; a carriage return as a reference, because a browser would make one character of it and a line
    feed behind it, and the places in the text would move.
    """
    return Markup(escape(text).replace("\r", Markup("&#13;")))
