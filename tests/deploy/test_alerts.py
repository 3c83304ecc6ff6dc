"""Checks with Prometheus' promtool that each alert fires, and does not fire, on given series.

Those about absent workers and sources are in test_alert_shapes.py.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.test_deploy import PROMETHEUS, alerts

promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (of Prometheus) is not on PATH"
)


def run_promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@promtool
@pytest.mark.parametrize("name", ["prometheus.yml", "up.yml"])
def test_promtool_accepts_the_configuration_and_the_rules(name: str) -> None:
    run_promtool("check", "config", PROMETHEUS / name)


BROKER = 'pv_broker_up{stage="ner"}'
REFUSED = 'pv_reload_total{job="pvstream", instance="a", task="ner", outcome="refused"}'
ANNOUNCED = 'pv_announcements_refused_total{job="pvstream", instance="a"}'
DEAD = 'pv_dead_letters_total{job="pvstream", instance="a", stage="ner", reason="poison"}'
LOADED = 'pv_reload_total{job="pvstream", instance="a", task="ner", outcome="loaded"}'
STARTED = 'process_start_time_seconds{job="pvstream", instance="a"}'


WAITING = 'pv_dead_letters_waiting{topic="posts.dead"}'
PSI = 'pv_drift_psi{stage="ner", feature="score"}'
LAG_SECONDS = 'pv_lag_seconds{stage="ner", topic="posts", partition="0"}'


def progress(instance: str) -> str:
    return f'pv_seconds_since_progress{{job="pvstream", stage="ner", instance="{instance}"}}'


def live(instance: str, release: str) -> str:
    return f'pv_model_info{{task="ner", release="{release}", kind="k", instance="{instance}"}}'


def shadow(outcome: str) -> str:
    return f'pv_shadow_records_total{{stage="ner", outcome="{outcome}"}}'


#: The labels of an alert about ner where two pipelines are scraped.
PRODUCTION = {"job": "pvstream", "stage": "ner"}


def nil(job: str, outcome: str) -> str:
    return f'pv_events_total{{job="{job}", outcome="{outcome}"}}'


NER = {"stage": "ner"}


def lag(job: str, values: str) -> dict[str, str]:
    return {f'pv_lag_records{{job="{job}", stage="ner", topic="posts", partition="0"}}': values}


#: Alert, when, its labels, and the series. Where two pipelines are scraped, the other one is well.
FIRING: list[tuple[str, str, dict[str, str], dict[str, str]]] = [
    ("StageNotReady", "5m", NER, {'pv_ready{stage="ner"}': "1 0x20"}),
    ("DeadLetters", "20m", NER | {"reason": "poison"}, {DEAD: "0x13 50x20"}),
    ("DeadLetters", "20m", NER | {"reason": "poison"}, {DEAD: "_x13 50x20", STARTED: "_x13 780x20"}),
    # Inference hangs from minute 5 on; two workers, of which one goes on.
    ("StageStalled", "6m", NER, {progress("a"): "0x5 60 120 180 240", progress("b"): "0x20"}),
    ("RebalanceStorm", "30m", NER, {'pv_rebalances_total{stage="ner"}': "1x5 2+1x60"}),
    ("DeadLetterBacklog", "80m", {"topic": "posts.dead"}, {WAITING: "0x10 101x100"}),
    ("LagSecondsHigh", "15m", NER, {LAG_SECONDS: "0x5 100+60x30"}),
    ("LagGrowing", "35m", PRODUCTION, lag("pvstream", "0+100x60") | lag("staging", "90000-1000x60")),
    ("LatencyHigh", "20m", PRODUCTION, {
        f'pv_latency_seconds_bucket{{job="{job}", stage="ner", le="{le}"}}': f"0+{n}x60"
        for job, counts in (("pvstream", (0, 10, 10)), ("staging", (9000, 9000, 9000)))
        for le, n in zip(("30", "60", "+Inf"), counts, strict=True)
    }),
    ("NilShareHigh", "75m", {"job": "pvstream"}, {
        nil("pvstream", "nil"): "0+70x120", nil("pvstream", "coded"): "0+30x120",
        nil("staging", "nil"): "0+100x120", nil("staging", "coded"): "0+900x120",
    }),
    ("ShadowFailing", "18m", PRODUCTION, {
        'pv_shadow_records_total{job="pvstream", stage="ner", outcome="skipped"}': "0+50x60",
        'pv_shadow_records_total{job="staging", stage="ner", outcome="agreed"}': "0+50x60",
    }),
    ("ShadowFailing", "18m", NER, {shadow("failed"): "0x10 8x30", shadow("agreed"): "0+50x60"}),
    ("BrokerAway", "7m", {}, {BROKER: "1x5 0x20", 'pv_broker_up{stage="relation"}': "1x60"}),
    ("ReleaseRefused", "35m", {"task": "ner"}, {REFUSED: "0x30 1x30", STARTED: "0x60"}),
    # Refused by a worker at its start: a new series, and one that had the same value before the restart.
    ("ReleaseRefused", "35m", {"task": "ner"}, {REFUSED: "_x30 1x30", STARTED: "_x30 1800x30"}),
    ("ReleaseRefused", "35m", {"task": "ner"}, {REFUSED: "1x60", STARTED: "0x29 1800x30"}),
    ("AnnouncementRefused", "35m", {}, {ANNOUNCED: "0x30 1x30"}),
    ("ReleaseFallback", "4m", {"task": "ner"}, {
        f'pv_release_fallback{{task="ner", instance="{i}"}}': v for i, v in (("a", "0x60"), ("b", "1x60"))
    }),
    # One of two workers has loaded the new release, the other has not.
    ("ReleasesDiffer", "20m", {"task": "ner"}, {
        live("a", "old"): "1x60", live("b", "old"): "1x5 stale", live("b", "new"): "_x6 1x60",
    }),
    ("DriftHigh", "70m", NER | {"feature": "score"}, {PSI: "0.1x5 0.3x200"}),
    ("DriftHigh", "70m", NER, {'pv_drift_vector{stage="ner"}': "0.5x200"}),
]  # fmt: skip

#: Alert, when, and the series.
QUIET: list[tuple[str, str, dict[str, str]]] = [
    ("StageNotReady", "2m30s", {'pv_ready{stage="ner"}': "0x3"}),
    ("DeadLetters", "40m", {DEAD: "50x60"}),
    # Prometheus was away for a quarter of an hour; the letters are from before.
    *(("DeadLetters", at, {DEAD: "0x3 50x7 _x15 50x40", STARTED: "0x10 _x15 0x40"})
      for at in ("31m", "33m", "36m", "50m")),
    # Slow batches, and a broker that does not answer.
    ("StageStalled", "20m", {progress("a"): "30x30"}),
    ("StageStalled", "20m", {progress("a"): "0+60x30", 'pv_broker_up{job="pvstream", instance="a"}': "0x30"}),
    # Four workers are replaced one after the other, in four minutes.
    *(("RebalanceStorm", at, {'pv_rebalances_total{stage="ner"}': "1x20 3 5 7 9x40"})
      for at in ("24m", "28m", "32m", "40m")),
    # Somebody sends them back within the hour, or there are few.
    ("DeadLetterBacklog", "80m", {WAITING: "0x10 500x40 0x60"}),
    ("DeadLetterBacklog", "80m", {WAITING: "100x100"}),
    # A backlog that is worked off, and one that hardly grows.
    ("LagSecondsHigh", "7m", {LAG_SECONDS: "3000 600 0x30"}),
    ("LagGrowing", "35m", lag("pvstream", "9000-100x60")),
    ("LagGrowing", "35m", lag("pvstream", "0+10x60")),
    # Of few events, and half of many.
    ("NilShareHigh", "75m", {nil("pvstream", "nil"): "0+1x120", nil("pvstream", "coded"): "0x120"}),
    ("NilShareHigh", "75m", {nil("pvstream", "nil"): "0+50x120", nil("pvstream", "coded"): "0+50x120"}),
    ("BrokerAway", "6m30s", {BROKER: "1x5 0x0 1x20"}),
    ("ReleaseRefused", "12m", {REFUSED: "0x60", LOADED: "0x10 1x60", STARTED: "0x60"}),
    # Long ago, and the worker was not restarted.
    ("ReleaseRefused", "40m", {REFUSED: "0x5 1x60", STARTED: "0x60"}),
    ("AnnouncementRefused", "50m", {ANNOUNCED: "0x30 1x60"}),
    # The store answers again after a minute.
    ("ReleaseFallback", "4m", {'pv_release_fallback{task="ner"}': "1 1 0x60"}),
    # A reload: for a minute the workers have different releases, then both have the new one.
    *(("ReleasesDiffer", at, {
        live("a", "old"): "1x5 stale", live("a", "new"): "_x6 1x60",
        live("b", "old"): "1x6 stale", live("b", "new"): "_x7 1x60",
    }) for at in ("6m", "16m", "30m")),
    # A release is tried on one of two pipelines; different tasks have different releases.
    ("ReleasesDiffer", "30m", {
        'pv_model_info{job="pvstream", task="ner", release="old", kind="k", instance="a"}': "1x60",
        'pv_model_info{job="staging", task="ner", release="new", kind="k", instance="b"}': "1x60",
        'pv_model_info{job="staging", task="relation", release="other", kind="k", instance="b"}': "1x60",
    }),
    # For half an hour only, and a drift that is small.
    ("DriftHigh", "70m", {PSI: "0.1x10 0.3x30 0.1x200"}),
    ("DriftHigh", "150m", {PSI: "0.2x200", 'pv_drift_vector{stage="ner"}': "0.05x200"}),
    # The shadow is slower than the live release and skips some records; or no shadow runs.
    ("ShadowFailing", "30m", {shadow("skipped"): "0+90x60", shadow("agreed"): "0+10x60"}),
    ("ShadowFailing", "30m", {shadow(o): "0x60" for o in ("failed", "skipped", "agreed", "differed")}),
]  # fmt: skip


def check_alert(
    folder: Path, name: str, at: str, series: dict[str, str], labels: dict[str, str] | None
) -> None:
    """Lets promtool evaluate a rule on these series; expects the alert with these labels (None: no alert)."""
    (rule,) = [rule for rule in alerts() if rule["alert"] == name]
    # Without the annotations promtool compares labels only.
    rules = {"groups": [{"name": "tested", "rules": [{k: v for k, v in rule.items() if k != "annotations"}]}]}
    expected = [] if labels is None else [{"exp_labels": labels | rule["labels"]}]
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": expected}],
            }
        ],
    }
    (folder / "rules.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    (folder / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    run_promtool("test", "rules", folder / "tests.yml")


@promtool
@pytest.mark.parametrize(("name", "at", "labels", "series"), FIRING)
def test_an_alert_fires(
    name: str, at: str, labels: dict[str, str], series: dict[str, str], tmp_path: Path
) -> None:
    check_alert(tmp_path, name, at, series, labels)


@promtool
@pytest.mark.parametrize(("name", "at", "series"), QUIET)
def test_an_alert_does_not_fire(name: str, at: str, series: dict[str, str], tmp_path: Path) -> None:
    check_alert(tmp_path, name, at, series, None)
