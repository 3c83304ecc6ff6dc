"""The web application: routes, templates and background tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

from aiohttp import web

from models.drugs import DrugLexicon
from models.terminology import Term
from streams.broker.watch import BrokerWatch
from streams.monitoring.server import serve
from streams.reviews.leases import Leases
from streams.reviews.log import ReviewLog
from streams.settings import EMBEDDED, Settings
from streams.web import access, errors, figures, review, same, search, signal_pages, views
from streams.web.access import ACCESS, Access
from streams.web.corrections import Vocabulary, names_of_drugs
from streams.web.live import Live
from streams.web.signal_table import Signals
from streams.web.site import HERE, SITE, Site, page_templates
from streams.web.store_queries import StoreQueries

#: The files that pages refer to. The types are stated, because those of `mimetypes` depend on the machine.
STATIC = {
    "style.css": "text/css", "page.js": "text/javascript", "review.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}  # fmt: skip


def application(settings: Settings, terms: list[Term]) -> web.Application:
    """The page of the store; with live reports and reviews if PV_BROKER names a broker. Raises AccessError
    where the settings would give access without authentication.
    """
    app = web.Application(middlewares=[errors.report, access.guard])
    app[ACCESS] = Access(settings)
    templates = page_templates()
    has_broker = settings.broker != EMBEDDED
    app[SITE] = Site(
        settings, templates, StoreQueries(settings), Signals(settings),
        Vocabulary({t.llt.lower(): t for t in terms}, DrugLexicon.load(), names_of_drugs()),
        Live(settings, templates.get_template("live_report.html").render) if has_broker else None,
        ReviewLog(settings) if has_broker else None,
        Leases(settings) if has_broker else None,
    )  # fmt: skip
    pages = (views, review, same, search, figures, signal_pages)
    app.add_routes([*(route for module in pages for route in module.ROUTES), *static_files()])
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


async def _background_tasks(app: web.Application) -> AsyncIterator[None]:
    site = app[SITE]
    topics = [topic for topic in (site.log, site.leases) if topic is not None]
    for topic in topics:
        await BrokerWatch(site.settings).until_answered(partial(_started, topic))
    tasks = [asyncio.create_task(site.signals.start())]
    if site.live is not None:
        tasks.append(asyncio.create_task(site.live.run()))
    if site.log is not None:
        tasks.append(asyncio.create_task(signal_pages.keep_reopened(site, site.log)))
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
