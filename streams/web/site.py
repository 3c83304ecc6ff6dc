"""What the handlers share, and the pages that they answer with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jinja2
from aiohttp import web

from streams.html import environment
from streams.reviews.leases import Leases
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from streams.store.csv_line import csv_line, no_formula
from streams.web.access import ACCESS, USER
from streams.web.corrections import Vocabulary
from streams.web.live import Live
from streams.web.signal_table import Signals
from streams.web.store_queries import StoreQueries

HERE = Path(__file__).parent


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


def page_templates() -> jinja2.Environment:
    """The templates of the pages, with their filters."""
    made = environment(HERE / "templates")
    made.filters["when"] = _when
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


def csv_file(name: str, lines: Iterable[Iterable[Any]]) -> web.Response:
    """The lines as a file to be saved, in which no text is a formula."""
    shown = ((no_formula(cell) if isinstance(cell, str) else cell for cell in line) for line in lines)
    return web.Response(
        text="".join(map(csv_line, shown)), content_type="text/csv", charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )  # fmt: skip


def _when(time: datetime | str | None) -> str:
    """To the minute, in UTC."""
    if time is None:
        return ""
    return (time if isinstance(time, str) else time.isoformat(" "))[:16].replace("T", " ")
