"""What the browser gets where a request fails: a page with the header, what is wrong, and a way back."""

from __future__ import annotations

import logging

from aiohttp import web
from aiokafka.errors import KafkaError

from streams.reviews.chain import BrokenChain
from streams.store.database import DatabaseError
from streams.topics import TopicsError
from streams.web.access import ACCESS, USER, Handler
from streams.web.site import message

log = logging.getLogger(__name__)
LOWEST_ERROR = 400
#: What is wrong, where what raises the error does not say so.
_TEXTS = {404: "There is no such page", 405: "This page takes no form"}
#: What to do when the broker is back; True: the request should have written something.
_ADVICE = {
    False: "Load this page again later.",
    True: "It is not known whether this was saved: load the queue again later, which knows.",
}


@web.middleware
async def report(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers with a page: 503 where the store or the broker cannot be used, or the decisions are no whole
    chain; 500, and a line with its traceback in the log, for what nobody expected.
    """
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < LOWEST_ERROR:
            raise
        return _refused(request, error)
    except DatabaseError as error:
        text = f"The store cannot be read: {error}"
    except BrokenChain as error:
        text = f"Nothing can be reviewed, because the decisions are not whole: {error}"
    except (KafkaError, TopicsError) as error:
        log.warning("%s: %s", request.path, error)
        text = f"The broker cannot be used at present. {_ADVICE[request.method == 'POST']}"
    except ConnectionError:  # the browser has left
        raise
    except Exception:
        log.exception("%s %s", request.method, request.path)
        return message(request, 500, "The page has a fault, which stands in its log.", _way_back(request))
    return message(request, 503, text, _way_back(request))


def _refused(request: web.Request, error: web.HTTPException) -> web.Response:
    text = error.text or ""
    if not text or text == f"{error.status}: {error.reason}":
        text = _TEXTS.get(error.status, error.reason)
    text = f"{text[:1].upper()}{text[1:].removesuffix('.')}."
    response = message(request, error.status, text, _way_back(request))
    for name in ("Allow", "Retry-After"):
        if name in error.headers:
            response.headers[name] = error.headers[name]
    return response


def _way_back(request: web.Request) -> tuple[str, str]:
    """An address that exists, whatever was asked for."""
    access, user = request.app[ACCESS], request.get(USER)
    if user is None and access.by_token:
        return "/login", "Sign in"
    if request.path.startswith("/review") and user is not None and user.may_review:
        return "/review", "Back to the queue"
    return "/", "Back to the overview"
