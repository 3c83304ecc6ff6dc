"""The topic of signals, over the embedded broker."""

from __future__ import annotations

from datetime import timedelta

from streams import topics
from streams.broker.embedded import EmbeddedBroker
from streams.settings import Settings
from streams.signals.population import Population
from streams.signals.publishing import publish, published_keys
from streams.signals.surveillance import Options, Surveillance
from streams.store.database import Database
from tests.streams.signals.conftest import Fill
from tests.streams.store.messages import NOON, event, report


async def test_the_signals_of_one_level_do_not_withdraw_those_of_the_other(
    stored: Database, fill: Fill
) -> None:
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
