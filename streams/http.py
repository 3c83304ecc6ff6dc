"""/metrics, /health/live and /health/ready of a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from streams.metrics import REGISTRY

READINESS: web.AppKey[Callable[[], Mapping[str, bool]]] = web.AppKey("readiness")


async def start(
    host: str, port: int, readiness: Callable[[], Mapping[str, bool]]
) -> tuple[web.AppRunner, int]:
    """Serves until the runner is cleaned up; gives the port, which matters when 0 was asked for."""
    app = web.Application()
    app[READINESS] = readiness
    app.add_routes(
        [web.get("/metrics", _metrics), web.get("/health/live", _live), web.get("/health/ready", _ready)]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    return runner, runner.addresses[0][1]


async def _metrics(request: web.Request) -> web.Response:
    request.app[READINESS]()
    return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def _live(_request: web.Request) -> web.Response:
    """The event loop turns."""
    return web.json_response({"live": True})


async def _ready(request: web.Request) -> web.Response:
    """Every stage of this process has its partitions and a model."""
    stages = dict(request.app[READINESS]())
    return web.json_response(stages, status=200 if stages and all(stages.values()) else 503)
