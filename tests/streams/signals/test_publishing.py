"""The topic of signals, over the embedded broker."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from streams import topics
from streams.broker.embedded import EmbeddedBroker
from streams.broker.ranges import read_chunks
from streams.cli.store.signals import _Outputs, _Run
from streams.codec import decode, encode
from streams.records import CodedReport, Inbound, Signal, SignalDecision
from streams.settings import Settings
from streams.signals.population import Population
from streams.signals.publishing import publish, published_keys
from streams.signals.surveillance import Options, Surveillance
from streams.store.database import Database
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.topics import SIGNALS
from tests.streams.signals.conftest import Fill
from tests.streams.store.messages import NOON, deletion, event, report
from tests.streams.store.test_signal_decisions import on_signal


async def test_signals_of_one_level_do_not_withdraw_those_of_another(stored: Database, fill: Fill) -> None:
    fill([report(f"r{i}", i, event(), created_at=NOON - timedelta(days=1)) for i in range(3)])
    by_pt = Surveillance(stored, Options(Population("pt"))).compute(NOON).signals
    by_soc = Surveillance(stored, Options(Population("soc"))).compute(NOON).signals
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        await topics.create(settings)
        await publish(settings, [*by_pt, *by_soc], set())
        assert await published_keys(settings, "pt") == {"sertraline|Nausea"}
        assert await published_keys(settings, "soc") == {"sertraline|Gastrointestinal disorders"}
        await publish(settings, [], {"sertraline|Nausea"})
        assert await published_keys(settings, "pt") == set()


async def test_pairs_whose_names_hold_bars_have_keys_of_their_own(stored: Database, fill: Fill) -> None:
    pairs = [("a|b", "c"), ("a", "b|c"), ("a\\|b", "c"), ("a\\", "b|c")]
    fill([report(f"r{i}", i, event(*pairs[i % 4]), created_at=NOON - timedelta(days=1)) for i in range(12)])
    signals = Surveillance(stored, Options()).compute(NOON).signals
    assert {(s.drug, s.term) for s in signals} == set(pairs)
    assert len({s.key for s in signals}) == len(pairs)


def test_a_database_or_a_broker_that_is_away_is_waited_for_and_no_change_is_lost(
    stored: Database, fill: Fill, database_path: str, tmp_path: Path
) -> None:
    def days_before(*drugs: str) -> list[CodedReport]:
        made = [(f"{drug}{i}", event(drug)) for drug in drugs for i in range(3)]
        return [report(id_, 0, one, created_at=NOON - timedelta(days=1)) for id_, one in made]

    path, outputs = Path(database_path), _Outputs(0, None, None, publish=True)
    fill(days_before("sertraline"))
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", database=database_path)
        asyncio.run(topics.create(settings))
        run = _Run(settings, Options(), NOON)
        run.once(outputs)
        fill(days_before("sertraline", "paroxetine"))
        path.rename(tmp_path / "away")
        assert not run.again(outputs)
        (tmp_path / "away").rename(path)
        assert run.again(outputs)
        published = asyncio.run(published_keys(settings, "pt"))
        assert published == {"sertraline|Nausea", "paroxetine|Nausea"}
        fill(days_before("sertraline", "paroxetine", "duloxetine"))
    assert not run.again(outputs), "the broker has ended"
    with EmbeddedBroker() as broker:
        run.settings = Settings(broker=f"kafka://{broker.bootstrap}", database=database_path)
        asyncio.run(topics.create(run.settings))
        assert run.again(outputs)
        assert "duloxetine|Nausea" in asyncio.run(published_keys(run.settings, "pt"))


def test_a_decision_on_a_signal_is_published_and_a_tombstone_stays_one(
    stored: Database, fill: Fill, database_path: str
) -> None:
    def reported(*drugs: str, count: int = 3) -> list[CodedReport]:
        times = {"created_at": NOON - timedelta(days=1)}
        return [report(f"{d}{i}", 0, event(d), **times) for d in drugs for i in range(count)]

    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", database=database_path)
        asyncio.run(topics.create(settings))
        run, outputs = _Run(settings, Options(), NOON), _Outputs(0, None, None, publish=True)
        fill(reported("sertraline", "paroxetine", "lithium"))
        run.once(outputs)
        decide(settings, on_signal(0, "closed", reports=3, ic025=-1.0, eb05=0.5))
        decide(settings, on_signal(1, "monitored", drug="lithium"))
        run.once(outputs)
        apply(settings, *(deletion(i, f"lithium{i}", 1) for i in range(3)))
        run.once(outputs)
        states = asyncio.run(published(settings))
        assert states == {"sertraline|Nausea": "closed", "paroxetine|Nausea": None}
        fill([report(f"more{i}", 0, event(), created_at=NOON - timedelta(hours=1)) for i in range(3)])
        run.once(outputs)
        states = asyncio.run(published(settings))
        assert states == {"sertraline|Nausea": "new", "paroxetine|Nausea": None}
        decide(settings, on_signal(2, "refuted", reports=6, ic025=-1.0, eb05=0.5))
        run.once(outputs)
        assert asyncio.run(published(settings))["sertraline|Nausea"] == "refuted"
        assert "lithium|Nausea" not in asyncio.run(published_keys(settings, "pt"))


def decide(settings: Settings, made: SignalDecision) -> None:
    apply(settings, Inbound("reviews", 0, made.sequence, b"k", encode(made), 0.0))


def apply(settings: Settings, *messages: Inbound) -> None:
    """What `pvstream store` does with messages."""
    database = open_database(settings, write=True)
    Follower(settings, database).apply(messages)
    database.close()


async def published(settings: Settings) -> dict[str, str | None]:
    """The states of the signals that the topic has, by key."""
    states: dict[str, str | None] = {}
    async for chunk in read_chunks(settings, SIGNALS, "beginning", "end", lambda done, total: None):
        for message in chunk:
            key = (message.key or b"").decode()
            states.pop(key, None)
            if message.value is not None:
                states[key] = decode(Signal, message.value).state
    return states
