"""Both ways to run the stages, and a source, under a real Prometheus with the shipped configuration.

Without a fault no alert fires, and with each fault those that are true.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.deploy.test_deploy import STAGES, alerts
from tests.integration import processes
from tests.integration.hanging import HANG, hang
from tests.integration.long_tests import long_test
from tests.integration.operations.live_stream import LiveStream, live_stream
from tests.integration.operations.prometheus import Prometheus, shipped_prometheus
from tests.integration.site import Site
from tests.integration.workers.test_hostile_records import produce_raw, report

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: A letter more than DeadLetterBacklog allows.
LETTERS = 101
#: Seconds for an alert that fires at once, and for those that the shipped rules hold back.
SHORT, LONG = 60.0, 900.0
QUIET_S = 600.0
#: Those that the shipped rules hold back for longer than a test takes.
HOURS = {"DeadLetterBacklog", "LatencyHigh", "RebalanceStorm", "SourceSilent"}


@dataclass(frozen=True)
class Shape:
    """A configuration of Prometheus, and for each of its targets the command whose metrics it scrapes."""

    configuration: str
    commands: dict[str, tuple[str, ...]]
    first: str
    """The target that runs the stage ner."""
    lost: frozenset[str]
    """The stages that are gone with it."""


SHAPES = {
    "one process": Shape("up.yml", {"127.0.0.1:8000": ("up",)}, "127.0.0.1:8000", STAGES),
    "five workers": Shape(
        "prometheus.yml",
        {f"{stage}:8000": ("worker", "--stage", stage) for stage in sorted(STAGES)},
        "ner:8000",
        frozenset({"ner"}),
    ),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@dataclass
class Run:
    """What a test may break."""

    site: Site
    shape: Shape
    stream: LiveStream
    server: Prometheus
    running: dict[str, processes.Running]
    is_shipped: bool
    seen: set[str] = field(default_factory=set)

    def expect(self, *names: str) -> None:
        """Waits until each of the alerts has fired since the first fault, if only for some seconds."""
        wanted = set(names) - (HOURS if self.is_shipped else set())

        def have_fired() -> bool:
            self.seen |= self.server.firing()
            return wanted <= self.seen

        try:
            processes.wait_until(have_fired, "the alerts fire", LONG if self.is_shipped else SHORT)
        except AssertionError:
            raise AssertionError(f"have not fired: {sorted(wanted - self.seen)}") from None

    def expect_stages(self, alert: str, stages: frozenset[str]) -> None:
        """Waits until the alert fires for these stages and no other; each is scraped at a time of its own."""
        of_alert = partial(self.server.stages, alert)
        processes.wait_until(lambda: of_alert() == stages, f"{alert} of {sorted(stages)}", SHORT)


def shorter() -> list[dict[str, Any]]:
    """The rules as shipped, but that they wait for seconds instead of minutes."""
    rules = []
    for rule in alerts():
        window = "1m" if rule["alert"] == "RebalanceStorm" else "20s"
        expr = re.sub(r"\[\d+m\]", f"[{window}]", re.sub(r"offset \d+m", "offset 20s", rule["expr"]))
        changed = {"expr": expr.replace("> 40", "> 3") if rule["alert"] == "StageStalled" else expr}
        # Prometheus finds its targets five seconds after its first evaluation.
        rules.append(rule | changed | ({"for": "8s"} if "for" in rule else {}))
    return rules


@contextmanager
def running(
    site: Site, shape: Shape, rules: Sequence[dict[str, Any]] | None, *, beforehand: bool = False
) -> Iterator[Run]:
    """All processes of a shape, a source and Prometheus, which starts before them or when they are ready."""
    if shutil.which("prometheus") is None:
        assert os.environ.get("PV_REQUIRE_KAFKA") != "1", "prometheus is missing"
        pytest.skip("prometheus is not on PATH")
    ports = {target: processes.free_port() for target in shape.commands} | {shape.first: site.port}
    at_source = processes.free_port()
    monitoring = shipped_prometheus(site.folder, shape.configuration, ports, at_source, rules)
    with ExitStack() as stack:
        stream = stack.enter_context(live_stream())
        server = stack.enter_context(monitoring) if beforehand else None
        started: dict[str, processes.Running] = {}
        for target, command in shape.commands.items():
            block = (
                site.running_broken(hang, *command)
                if target == shape.first
                else site.running(*command, PV_HTTP_PORT=str(ports[target]))
            )
            started[target] = stack.enter_context(block)
        source = ("source", "bluesky", "--bluesky-server", stream.endpoint)
        started["source"] = stack.enter_context(site.running(*source, PV_HTTP_PORT=str(at_source)))
        for port in (*ports.values(), at_source):
            processes.wait_until(lambda port=port: processes.is_ready(port), "all are ready")  # type: ignore[misc]
        run = Run(
            site, shape, stream, server or stack.enter_context(monitoring), started, is_shipped=rules is None
        )
        try:
            yield run
        finally:
            for process in started.values():  # a stop would wait for the broker
                process.kill()


def watch_quiet(run: Run, seconds: float, evaluations: int) -> None:
    """Records of all inputs flow so long, and the rules are evaluated so many times: no alert may fire.
    At the end no target may be down.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end or run.server.evaluations() < evaluations:
        assert time.monotonic() < end + SHORT, "the rules are not evaluated"
        for topic in ("posts", "sentences", "questions"):
            run.site.produce_samples(topic, 5)
        for _ in range(5):
            assert run.server.firing() == set()
            time.sleep(0.5)
    assert run.server.down() == set()


def come_and_go(site: Site) -> None:
    """A further worker, twice."""
    port = processes.free_port()
    for _ in range(2):
        with site.running("worker", "--stage", "ner", PV_HTTP_PORT=str(port)):
            processes.wait_until(lambda: processes.is_ready(port), "the further worker")


def break_everything(run: Run) -> None:
    """One fault after the other; those whose alerts last for some seconds only come last in their group."""
    bootstrap = run.site.kafka.bootstrap
    an_hour_ago = int(time.time() - 3600) * 1000
    run.stream.talks = False
    produce_raw(bootstrap, [(b"k", b"no report", 0)] * LETTERS)
    come_and_go(run.site)
    run.site.produce("releases", [(b"ner", b"no announcement")])
    # More than one in a hundred of those within the window.
    produce_raw(bootstrap, [(b"%d" % i, report(f"old-{i}"), an_hour_ago) for i in range(50)])
    # Only then the stage hangs.
    tagged = partial(run.site.records, "mentions")
    processes.wait_until(lambda: any(record["id"] == "old-49" for record in tagged()), "they are tagged")
    produce_raw(bootstrap, [(b"k", report("bad", text=HANG), an_hour_ago)])
    run.expect("AnnouncementRefused", "DeadLetterBacklog", "DeadLetters", "LagSecondsHigh", "LatencyHigh")
    run.expect("RebalanceStorm", "SourceSilent", "StageStalled")
    run.site.kafka.kill()
    run.expect("BrokerAway", "StageNotReady")
    run.expect_stages("StageNotReady", STAGES)
    run.running["source"].kill()
    run.running[run.shape.first].kill()
    run.expect("WorkerAbsent", "SourceDown")
    run.expect_stages("WorkerAbsent", run.shape.lost)


@pytest.fixture
def patient_site(tiny_site: Site) -> Site:
    """A worker that hangs does not end itself within the test."""
    tiny_site.env["PV_INFERENCE_DEADLINE"] = "3600"
    return tiny_site


@shapes
def test_only_true_alerts_fire(shape: Shape, patient_site: Site) -> None:
    with running(patient_site, shape, shorter()) as run:
        watch_quiet(run, 0, evaluations=15)
        break_everything(run)


@long_test
@shapes
def test_for_ten_minutes_no_alert_fires_and_then_the_true_ones(shape: Shape, patient_site: Site) -> None:
    with running(patient_site, shape, None, beforehand=True) as run:
        watch_quiet(run, QUIET_S, evaluations=40)
        break_everything(run)
