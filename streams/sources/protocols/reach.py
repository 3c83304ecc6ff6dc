"""Where a source may connect: to the servers that the operator named, wherever they are, and to public
addresses. A server can name others, in a redirect or an answer, and they must not lead into the network of
this machine.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.request import getproxies

from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, DefaultResolver
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from streams.sources.source import Interrupted

TLS_PORT = 443
#: Ends of names that are those of a local network.
_LOCAL = frozenset({"localhost", "local", "internal"})
#: IPv4 addresses behind a gateway of an IPv6 network (RFC 6052).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Reach:
    """The servers of one session. It is a middleware of aiohttp, which is called for each hop."""

    def __init__(self, named: Iterable[str]) -> None:
        self._named = {place for address in named for place in _places(URL(address))}
        self._proxies = {_place(URL(address)) for address in getproxies().values() if "://" in address}

    def has(self, host: str, port: int | None) -> bool:
        """Whether the operator named the server, or the environment does, as a proxy."""
        return (host.lower().rstrip("."), port) in self._named | self._proxies

    async def __call__(self, request: ClientRequest, ask: ClientHandlerType) -> ClientResponse:
        """Raises Interrupted for an address that is not public; `PublicResolver` does for a name. Names that
        a proxy resolves are not known here, so those of a local network are left out by their form.
        """
        host, place = _place(request.url)[0], _place(request.url)
        if place not in self._named and not _may_be_public(host, resolved=request.proxy is None):
            raise _refused()
        return await ask(request)


class PublicResolver(AbstractResolver):
    """Gives the public addresses of a name, and all addresses of a server that the operator named."""

    def __init__(self, reach: Reach, inner: AbstractResolver | None = None) -> None:
        self._reach = reach
        self._inner = inner or DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises OSError, and Interrupted where no address may be used."""
        found = await self._inner.resolve(host, port, family)
        if not self._reach.has(host, port):
            found = [result for result in found if is_public(result["host"])]
        if not found:
            raise _refused()
        return found

    async def close(self) -> None:
        await self._inner.close()


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet; of an IPv6 address that stands for one of IPv4, that."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved)


def _place(url: URL) -> tuple[str, int | None]:
    return (url.raw_host or "").lower().rstrip("."), url.port


def _places(url: URL) -> list[tuple[str, int | None]]:
    """A server, and the same with TLS, to which many send a browser."""
    host, port = _place(url)
    return [(host, port), (host, TLS_PORT)]


def _may_be_public(host: str, *, resolved: bool) -> bool:
    try:
        return is_public(host)
    except ValueError:
        _, dot, last = host.rpartition(".")
        # A number at the end makes an address of what may be written in many ways.
        return resolved or (dot == "." and last not in _LOCAL and not last[:1].isdecimal())


def _refused() -> Interrupted:
    return Interrupted("hostile", "it leads to an address that is not public, which can only be named itself")
