"""Whether a consumer still belongs to its group, and may therefore send what it made of its partitions.

A process that was suspended, or whose requests did not get through, does not know by itself that its session
has ended and that its partitions belong to another worker.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

#: A clock that goes on while the process is stopped and, on Linux, while the machine is suspended.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
#: Requests whose success proves that the broker counted the sender as a member of its current generation. A
#: heartbeat during a rebalance does not: the broker may meanwhile go on without this member.
_PROOFS = ("HeartbeatRequest", "SyncGroupRequest")
#: Seconds between two looks at a membership that is in doubt.
POLL_SECONDS = 0.05


def now() -> float:
    """Seconds of the clock that sessions are measured with."""
    return time.clock_gettime(_CLOCK)


class Membership:
    """The membership of an aiokafka coordinator, whose requests it observes.

    A proof counts from the moment its request was sent: the broker cannot end the session earlier than one
    session timeout after that, however late its answer is read.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._session_timeout = coordinator._session_timeout_ms / 1000
        self._proven_at = -math.inf
        self._send = coordinator._send_req
        coordinator._send_req = self._observe

    async def holds(self, generation: int) -> bool:
        """Whether this consumer is a member of that generation of its group. While that is in doubt, as after
        a pause or without a broker, this waits for the next heartbeat to decide it.
        """
        while self._coordinator.generation == generation:
            if now() - self._proven_at < self._session_timeout:
                return True
            if self._coordinator._rejoin_needed_fut.done():
                # The group is rebalanced and waits for this consumer, so no heartbeat will decide it.
                return False
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _observe(self, request: Any) -> Any:
        sent = now()
        response = await self._send(request)
        if type(request).__name__.startswith(_PROOFS) and response.error_code == 0:
            self._proven_at = sent
        return response
