"""Who may see the page and who may review: sessions, roles, tokens, and the headers of every answer."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from aiohttp import web

from streams.settings import Settings
from streams.web.attempts import Attempts, addresses_of

Role = Literal["reader", "reviewer"]
Form = Mapping[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
COOKIE = "pvstream"
LOCAL = "local"
NAME_LENGTH = 60
#: Seconds after which a session ends that is not used.
SESSION_SECONDS = 12 * 3600
_now = time.time
#: Nothing is loaded from elsewhere, and nothing in the page itself is run.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN = ("/login", "/static/")


class AccessError(Exception):
    """The settings would give access without authentication; the message is one line for an operator."""


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request. `session` is random, one for each browser."""

    name: str
    role: Role
    session: str
    until: int = 0
    """When the cookie expires, in seconds since 1970; 0: it is to be renewed."""

    @property
    def may_review(self) -> bool:
        return self.role == "reviewer"


class Access:
    """The rules of one process, which signs its cookies with its own key; a restart ends all sessions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._proxies = {address.strip() for address in settings.web_proxies.split(",")}
        self._key = secrets.token_bytes(32)
        roles: list[tuple[str, Role]] = [
            (settings.web_token.get_secret_value(), "reviewer"),
            (settings.web_reader_token.get_secret_value(), "reader"),
        ]
        self._tokens = [(token, role) for token, role in roles if token]
        self.by_token = bool(self._tokens)
        self.by_header = bool(settings.web_user_header)
        self.attempts = Attempts()
        self.is_local = is_loopback(settings.web_host)
        if not (self.is_local or self.by_token or self.by_header):
            raise AccessError(
                f"PV_WEB_HOST is {settings.web_host}: set PV_WEB_TOKEN_FILE, or PV_WEB_USER_HEADER behind a "
                "reverse proxy"
            )

    def user(self, request: web.Request) -> User | None:
        """The user of a request; None without authentication."""
        known = self._from_cookie(request.cookies.get(COOKIE, ""))
        if self.by_header:
            return self._from_proxy(request, known)
        if known is not None or self.by_token:
            return known
        return User(LOCAL, "reviewer", secrets.token_urlsafe(12)) if _names_loopback(request) else None

    def signed_in(self, token: str, name: str) -> User | None:
        """The user of a token; None for a wrong one. The name is what the user says."""
        for known, role in self._tokens:
            if hmac.compare_digest(known.encode(), token.encode()):
                return User(clean_name(name) or role, role, secrets.token_urlsafe(12))
        if not self.by_token and not self.by_header and clean_name(name):
            return User(clean_name(name), "reviewer", secrets.token_urlsafe(12))
        return None

    def sign_in(self, request: web.Request, token: str, name: str) -> User | None:
        """`signed_in` for a request. Raises HTTPTooManyRequests after several wrong tokens from its address:
        then the token is not looked at.
        """
        addresses = addresses_of(request, self._proxies)
        if (wait := self.attempts.wait(addresses)) > 0:
            raise web.HTTPTooManyRequests(
                text="too many wrong tokens; try again later", headers={"Retry-After": str(math.ceil(wait))}
            )
        user = self.signed_in(token, name)
        if user is None and self.by_token:
            self.attempts.failed(addresses)
        return user

    def cookie(self, user: User) -> str:
        until = user.until or int(_now()) + SESSION_SECONDS
        body = f"{user.session}.{user.role}.{user.name.encode().hex()}.{until}"
        return f"{body}.{self._signature('cookie', body)}"

    def csrf(self, user: User) -> str:
        """The CSRF token that every form sends back."""
        return self._signature("form", f"{user.session}.{user.name}")

    def is_csrf(self, user: User, given: str) -> bool:
        return hmac.compare_digest(self.csrf(user).encode(), given.encode())

    def _from_cookie(self, cookie: str) -> User | None:
        body, _, signature = cookie.rpartition(".")
        try:
            if not hmac.compare_digest(self._signature("cookie", body).encode(), signature.encode()):
                return None
        except UnicodeEncodeError:  # bytes that are no text, which aiohttp gives as halves of pairs
            return None
        session, role, name, until = body.split(".")
        left = int(until) - _now()
        if left <= 0:
            return None
        return User(
            bytes.fromhex(name).decode(), "reviewer" if role == "reviewer" else "reader", session,
            int(until) if left > SESSION_SECONDS / 2 else 0,
        )  # fmt: skip

    def _from_proxy(self, request: web.Request, known: User | None) -> User | None:
        name = clean_name(request.headers.get(self._settings.web_user_header, ""))
        if request.remote not in self._proxies or not name:
            return None
        reviewers = {reviewer.strip() for reviewer in self._settings.web_reviewers.split(",")}
        session = known.session if known and known.name == name else secrets.token_urlsafe(12)
        return User(name, "reviewer" if name in reviewers else "reader", session)

    def _signature(self, use: str, body: str) -> str:
        return hmac.new(self._key, f"{use}:{body}".encode(), hashlib.sha256).hexdigest()


USER: web.RequestKey[User | None] = web.RequestKey("user", User)
ACCESS: web.AppKey[Access] = web.AppKey("access", Access)


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Rejects requests without authentication, forms without the CSRF token, and reviews by a reader."""
    access = request.app[ACCESS]
    user = access.user(request)
    is_open = request.path.startswith(OPEN)
    if user is None and not (is_open and access.by_token):
        if access.by_token and request.method == "GET":
            raise web.HTTPSeeOther("/login")
        raise web.HTTPForbidden(text="not signed in")
    request[USER] = user
    if request.method not in {"GET", "HEAD"}:
        await _check_form(request, access, user)
    response = await handler(request)
    # The answer to a sign-in has the cookie of the new user; its form needs that of the present one.
    signs_in = request.path == "/login" and request.method == "POST"
    if user is not None and not signs_in and not response.prepared:
        set_cookie(request, response, user)
    return response


async def _check_form(request: web.Request, access: Access, user: User | None) -> None:
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise web.HTTPForbidden(text="a form of another site")
    if request.path == "/login" and user is None:
        return  # the token is the secret
    form = await form_of(request)
    if user is None or not access.is_csrf(user, str(form.get("csrf", ""))):
        raise web.HTTPForbidden(text="the form is out of date; load the page again")
    if not user.may_review and request.path.startswith("/review"):
        raise web.HTTPForbidden(text="you may read, but not review")


async def form_of(request: web.Request) -> Form:
    """The fields of a form; raises HTTPBadRequest for a body that is none."""
    try:
        form = await request.post()
        for value in form.values():
            str(value).encode()  # some encodings that a form may name give halves of surrogate pairs
    # Bytes or an encoding that are not known, a part without a name, or one that is not what it says.
    except (ValueError, LookupError, RuntimeError):
        raise web.HTTPBadRequest(text="the form cannot be read") from None
    return form


def set_cookie(request: web.Request, response: web.StreamResponse, user: User) -> None:
    """Keeps the session in the browser; no script and no other site gets it."""
    value = request.app[ACCESS].cookie(user)
    if request.cookies.get(COOKIE) != value:
        secure = request.headers.get("X-Forwarded-Proto") == "https" or request.secure
        response.set_cookie(COOKIE, value, httponly=True, samesite="Strict", secure=secure)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """For every answer, errors too."""
    response.headers.update(HEADERS)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names_loopback(request: web.Request) -> bool:
    """Whether the page was asked for under this machine's own name: a name that another site made to point
    here would let its scripts read the page.
    """
    try:
        return is_loopback(urlsplit(f"//{request.host}").hostname or "")
    except ValueError:  # such as [::1 without its end
        return False


def clean_name(name: str) -> str:
    """A name as the page knows people by."""
    return "".join(c for c in name if c.isprintable()).strip()[:NAME_LENGTH]


def user_of(request: web.Request) -> User:
    """The user whom `guard` found."""
    user = request[USER]
    if user is None:
        raise web.HTTPForbidden(text="not signed in")
    return user
