"""The membership in a consumer group: what proves it, what ends it, and what decides a doubt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from streams.broker import membership
from streams.broker.membership import Membership
from tests.fakes import Clock


@dataclass
class Response:
    error_code: int = 0


class HeartbeatRequest:
    pass


class SyncGroupRequest:
    pass


class OffsetCommitRequest:
    pass


REBALANCE_IN_PROGRESS = 27


class Coordinator:
    """A coordinator in generation 5 with a session of 6 seconds; the answer to a request takes `seconds`."""

    def __init__(self, clock: Clock) -> None:
        self.generation = 5
        self._session_timeout_ms = 6000
        self._rejoin_needed_fut: asyncio.Future[None] = asyncio.Future()
        self.clock = clock
        self.answer = Response()
        self.seconds = 0.0

    async def _send_req(self, request: Any) -> Response:
        self.clock.now += self.seconds
        return self.answer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(membership, "now", clock)
    monkeypatch.setattr(membership, "POLL_SECONDS", 0.001)
    return clock


async def is_in_doubt(member: Membership, generation: int = 5) -> bool:
    try:
        await asyncio.wait_for(member.holds(generation), 0.05)
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize("request_", [HeartbeatRequest(), SyncGroupRequest()])
async def test_a_proof_holds_for_one_session_from_its_sending(clock: Clock, request_: object) -> None:
    coordinator = Coordinator(clock)
    member = Membership(coordinator)
    assert await is_in_doubt(member), "nothing has proved it yet"
    coordinator.seconds = 2.0
    await coordinator._send_req(request_)
    clock.now += 3.9
    assert await member.holds(5)
    clock.now += 0.2
    assert await is_in_doubt(member), "6.1 s after the request was sent"


@pytest.mark.parametrize(
    ("request_", "answer", "seconds"),
    [
        (HeartbeatRequest(), 25, 0.0),
        (HeartbeatRequest(), REBALANCE_IN_PROGRESS, 0.0),
        (OffsetCommitRequest(), 0, 0.0),
        (HeartbeatRequest(), 0, 35.0),  # read after a suspension
    ],
)
async def test_no_other_answer_proves_it(clock: Clock, request_: object, answer: int, seconds: float) -> None:
    coordinator = Coordinator(clock)
    member = Membership(coordinator)
    coordinator.answer, coordinator.seconds = Response(answer), seconds
    assert (await coordinator._send_req(request_)).error_code == answer
    assert await is_in_doubt(member)


async def test_another_generation_is_lost_at_once_however_fresh_the_proof_is(clock: Clock) -> None:
    coordinator = Coordinator(clock)
    member = Membership(coordinator)
    await coordinator._send_req(HeartbeatRequest())
    assert await member.holds(5)
    assert not await member.holds(4)
    coordinator.generation = -1
    assert not await member.holds(5)


async def test_a_doubt_is_decided_by_the_next_heartbeat(clock: Clock) -> None:
    for outcome in (True, False):
        coordinator = Coordinator(clock)
        waiting = asyncio.create_task(Membership(coordinator).holds(5))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        if outcome:
            await coordinator._send_req(HeartbeatRequest())
        else:
            coordinator.generation = -1
        assert await asyncio.wait_for(waiting, 120) is outcome


async def test_in_a_rebalance_a_doubt_is_a_loss_for_the_group_waits_for_this_member(clock: Clock) -> None:
    coordinator = Coordinator(clock)
    member = Membership(coordinator)
    await coordinator._send_req(HeartbeatRequest())
    coordinator._rejoin_needed_fut.set_result(None)
    assert await member.holds(5), "it is a member until the rebalance is complete"
    clock.now += 6.1
    assert not await asyncio.wait_for(member.holds(5), 120)


def test_the_clock_goes_on_while_the_machine_is_suspended() -> None:
    before = membership.now()
    assert 0 < before <= membership.now() < before + 60
