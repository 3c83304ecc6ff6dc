"""Wrong tokens: who has sent several must wait before the next, longer each time. What is kept is bounded."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection

from aiohttp import web

log = logging.getLogger(__name__)
#: Wrong tokens from one address without a wait, and from all that one proxy names: it may name any.
FREE, FREE_OF_PROXY = 5, 100
#: The longest wait, and after how long without another wrong token an address is forgotten; seconds.
LONGEST, FORGET = 300.0, 3600.0
#: Addresses that are remembered.
MAX_ADDRESSES = 10_000
#: Bits of an IPv6 address that one customer has to himself.
IPV6_NETWORK = 64


class Attempts:
    """The wrong tokens of each address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """Address to its wrong tokens beyond those that are free and the time of the last one, the latest
        last.
        """

    def wait(self, addresses: Collection[str]) -> float:
        """Seconds until a token may come from these addresses, the client's and its proxy's."""
        now = self._clock()
        return max((self._until(address) - now for address in addresses), default=0.0)

    def failed(self, addresses: Collection[str]) -> None:
        """Notes a wrong token."""
        now = self._clock()
        for i, address in enumerate(addresses):
            first = -(FREE_OF_PROXY if i else FREE)
            count, last = self._failed.pop(address, (first, now))
            count = (count if now - last < FORGET else first) + 1
            self._failed[address] = count, now
            if count == 0:
                log.warning("sign-in: so many wrong tokens from one address that it must wait")
        while len(self._failed) > MAX_ADDRESSES:
            self._failed.popitem(last=False)

    def _until(self, address: str) -> float:
        count, last = self._failed.get(address, (-1, 0.0))
        return last + min(LONGEST, 2.0 ** min(count, 30)) if count >= 0 else 0.0


def addresses_of(request: web.Request, proxies: Collection[str]) -> list[str]:
    """The address of a client and, behind a trusted proxy, which names it, that of the proxy."""
    remote = request.remote or ""
    if remote in proxies:
        named = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        try:
            return [_network(named), f"proxy {remote}"]
        except ValueError:
            return [remote]
    try:
        return [_network(remote)]
    except ValueError:
        return [remote]


def _network(address: str) -> str:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((ip, IPV6_NETWORK), strict=False))
    return str(ip)
