"""HTTP server of a worker: /metrics, /health/live, /health/ready and /releases."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from streams.metrics import REGISTRY
from streams.monitoring.server import serve

READINESS: web.AppKey[Callable[[], Mapping[str, bool]]] = web.AppKey("readiness")
STALLED: web.AppKey[Callable[[], Sequence[str]]] = web.AppKey("stalled")
RELEASES: web.AppKey[Callable[[], Mapping[str, Any]]] = web.AppKey("releases")


async def start(
    host: str,
    port: int,
    readiness: Callable[[], Mapping[str, bool]],
    releases: Callable[[], Mapping[str, Any]],
    stalled: Callable[[], Sequence[str]],
) -> tuple[web.AppRunner, int]:
    """Starts the server; returns its runner, whose cleanup stops it, and the port, which differs from `port`
    when that is 0. Raises OSError, which names the setting, where the port is in use or the
    address is not one of this machine.
    """
    app = web.Application()
    app[READINESS] = readiness
    app[RELEASES] = releases
    app[STALLED] = stalled
    app.add_routes(
        [
            web.get("/metrics", _metrics),
            web.get("/health/live", _live),
            web.get("/health/ready", _ready),
            web.get("/releases", _releases),
        ]
    )
    try:
        return await serve(app, host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            taken = f"{host}:{port} is in use, by another worker or source perhaps: set PV_HTTP_PORT"
            raise OSError(f"{taken} to another port, or to 0 for any free one") from None
        reason = error.strerror or error
        raise OSError(
            f"nothing can be served at {host}:{port} (PV_HTTP_HOST and PV_HTTP_PORT): {reason}"
        ) from None


async def _metrics(request: web.Request) -> web.Response:
    # Called for its side effect: it updates the gauge pv_ready.
    request.app[READINESS]()
    return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def _live(request: web.Request) -> web.Response:
    """503 where an inference is beyond its deadline, else 200; silent if the event loop stands."""
    stalled = list(request.app[STALLED]())
    return web.json_response({"live": not stalled, "stalled": stalled}, status=503 if stalled else 200)


async def _ready(request: web.Request) -> web.Response:
    """Status 200 when every stage of this process has its partitions and the broker answers, else 503."""
    stages = dict(request.app[READINESS]())
    return web.json_response(stages, status=200 if stages and all(stages.values()) else 503)


async def _releases(request: web.Request) -> web.Response:
    """For each task of this process the live release and the refused one."""
    return web.Response(body=orjson.dumps(request.app[RELEASES]()), content_type="application/json")
