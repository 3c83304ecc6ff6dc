"""Checks with Prometheus' promtool that each alert fires, and does not fire, on given series, and that
exactly the true alerts fire on both ways to run the stages: one process with all, and a worker for each.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_deploy import PROMETHEUS, STAGES, alerts

promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (of Prometheus) is not on PATH"
)
#: Values of series by their selector, one a minute.
Series = dict[str, str]
#: An alert with its labels, without the severity.
Alert = tuple[str, dict[str, str]]
#: Its name, a time, the series, and exactly the alerts that fire at that time.
Case = tuple[str, str, Series, list[Alert]]


def run_promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@promtool
@pytest.mark.parametrize("name", ["prometheus.yml", "up.yml"])
def test_promtool_accepts_the_configuration_and_the_rules(name: str) -> None:
    run_promtool("check", "config", PROMETHEUS / name)


BROKER = 'pv_broker_up{stage="ner"}'
REFUSED = 'pv_reload_total{job="pvstream", instance="a", task="ner", outcome="refused"}'
ANNOUNCED = 'pv_announcements_refused_total{job="pvstream", instance="a"}'
DEAD = 'pv_dead_letters_total{job="pvstream", instance="a", stage="ner", reason="poison"}'
STARTED = 'process_start_time_seconds{job="pvstream", instance="a"}'
WAITING = 'pv_dead_letters_waiting{topic="posts.dead"}'
PSI = 'pv_drift_psi{stage="ner", feature="score"}'
LAG_SECONDS = 'pv_lag_seconds{stage="ner", topic="posts", partition="0"}'
NER = {"stage": "ner"}
#: The labels of an alert about ner where two pipelines are scraped.
PRODUCTION = {"job": "pvstream", "stage": "ner"}


def progress(instance: str) -> str:
    return f'pv_seconds_since_progress{{job="pvstream", stage="ner", instance="{instance}"}}'


def live(instance: str, release: str) -> str:
    return f'pv_model_info{{task="ner", release="{release}", kind="k", instance="{instance}"}}'


def nil(job: str, outcome: str) -> str:
    return f'pv_events_total{{job="{job}", outcome="{outcome}"}}'


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
    ("ReleaseRefused", "12m",
     {REFUSED: "0x60", REFUSED.replace("refused", "loaded"): "0x10 1x60", STARTED: "0x60"}),
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
]  # fmt: skip


def labels(**pairs: str) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in pairs.items()) + "}"


def constant(values: str, number: int) -> str:
    """The same times with one number: "_ 0 1x9 stale" becomes "_ 5 5x9 stale"."""
    return re.sub(r"(?<![\w])\d+", str(number), values)


def exported(stage: str, ready: str, **target: str) -> Series:
    """What a process exports for a stage."""
    of_stage = labels(**target, stage=stage)
    return {
        f"pv_ready{of_stage}": ready,
        f"pv_seconds_since_progress{of_stage}": constant(ready, 0),
        f"pv_rebalances_total{of_stage}": constant(ready, 1),
    }


def of_process(ready: str = "1x200", end: str = "", **target: str) -> Series:
    """What a process exports for itself."""
    return {f"pv_broker_up{labels(**target)}": constant(ready, 1), f"up{labels(**target)}": end or "1x200"}


def one_process(ready: str = "1x200", end: str = "", job: str = "pvstream", **more: str) -> Series:
    """One target with all stages, as `pvstream up` is scraped; `end`: values of `up`."""
    target = {"job": job, "instance": f"{job}:8000", **more}
    series = of_process(ready, end, **target)
    for stage in sorted(STAGES):
        series |= exported(stage, ready, **target)
    return series


def workers(job: str = "pvstream", **more: str) -> Series:
    """A target for each stage, with the label that the configuration gives it."""
    found = [worker(stage, job=job, **more) for stage in sorted(STAGES)]
    return {selector: values for one in found for selector, values in one.items()}


def worker(stage: str, ready: str = "1x200", end: str = "", **more: str) -> Series:
    target = {"job": "pvstream", "instance": f"{stage}:8000", **more}
    series = exported(stage, ready, **target)
    series |= of_process(ready, "", **target)
    del series[f"up{labels(**target)}"]
    return series | {f"up{labels(**target, stage=stage)}": end or "1x200"}


def discovered(series: Series) -> Series:
    """The same without `up`: a discovered target that has ended is gone."""
    return {selector: values for selector, values in series.items() if not selector.startswith("up{")}


def absent(*stages: str, **more: str) -> list[Alert]:
    return [("WorkerAbsent", {"job": "pvstream", **more, "stage": stage}) for stage in stages or STAGES]


def source(up: str, items: str, name: str = "bluesky", **more: str) -> Series:
    of_source = {"job": "pvstream-sources", "instance": "source:8000", "source": name, **more}
    return {
        f"pv_source_up{labels(**of_source)}": up,
        f"pv_source_items_total{labels(**of_source, outcome='filtered')}": items,
    }


SHAPES: dict[str, Series] = {
    "one process": one_process(),
    "five workers": workers(),
    "discovered workers": discovered(workers(namespace="production")),
}
ENDS = "1x10 stale"
GONE = ("1x10 0x100", ENDS)
OTHER = one_process(job="staging")
SOURCE = {"job": "pvstream-sources", "source": "bluesky"}

CASES: dict[str, tuple[str, Series, list[Alert]]] = {
    **{f"{name} is well": ("60m", shape, []) for name, shape in SHAPES.items()},
    "two pipelines of either kind are well": ("60m", workers() | OTHER, []),
    "a process that starts": ("4m", one_process("_ _ _ 0 0 0 1x100"), []),
    "a start that takes long": ("9m", one_process("_ _ _ 0x100"), [
        ("StageNotReady", {"job": "pvstream", "stage": stage}) for stage in STAGES
    ]),
    "the process has ended": ("13m", one_process(ENDS, GONE[0]), absent()),
    "the process has ended and another pipeline runs": (
        "13m", one_process(ENDS, GONE[0]) | OTHER, absent(),
    ),
    "a process is restarted": ("13m", one_process("1x10 _ 0 1x100"), []),
    "one of five workers has ended": ("13m", workers() | worker("ner", ENDS, GONE[0]), absent("ner")),
    "one of five workers has ended and another pipeline runs": (
        "13m", workers() | worker("ner", ENDS, GONE[0]) | OTHER, absent("ner"),
    ),
    "a discovered worker has ended": (
        "13m", discovered(workers(namespace="a") | worker("ner", ENDS, namespace="a")) | OTHER,
        absent("ner", namespace="a"),
    ),
    "all discovered workers have ended": (
        "13m", {k: f"{v[0]}x10 stale" for k, v in discovered(workers(namespace="a")).items()} | OTHER,
        absent(namespace="a"),
    ),
    "no worker was ever up": (
        "13m", {f"up{labels(job='pvstream', stage=stage)}": "0x100" for stage in STAGES}, absent(),
    ),
    "nothing is scraped": ("13m", {}, [("WorkerAbsent", {})]),
    "one of two workers of a stage has ended": (
        "13m", workers() | worker("ner", ENDS, GONE[0], instance="ner-2:8000"), [],
    ),
    "a stage of the process is not ready": (
        "14m",
        one_process()
        | {f"pv_ready{labels(job='pvstream', instance='pvstream:8000', stage='ner')}": "1x5 0x100"},
        [("StageNotReady", {"job": "pvstream", "stage": "ner"})],
    ),
    "a source is well": ("90m", one_process() | source("1x200", "0+600x200"), []),
    "a feed without news": ("90m", one_process() | source("1x200", "5x200", "rss"), []),
    "a source that reconnects": ("90m", one_process() | source("1x60 0x5 1x100", "0+600x200"), []),
    "a source that does not connect": (
        "45m", one_process() | source("1x30 0x100", "0+600x30 18000x100"), [("SourceDown", SOURCE)],
    ),
    "the process of a source has ended": (
        "45m", one_process() | source("1x30 stale", "0+600x30 stale"), [("SourceDown", SOURCE)],
    ),
    "a source that was taken away half a day ago": (
        "12h", one_process("1x800") | source("1x30 stale", "0+600x30 stale"), [],
    ),
    "a connected source without posts": (
        "75m", one_process() | source("1x200", "0+600x30 18000x100"), [("SourceSilent", SOURCE)],
    ),
    "a source that has just started": ("20m", one_process() | source("1x200", "0x200"), []),
    "a source that delivers nothing from its start": (
        "40m", one_process() | source("1x200", "0x200"), [("SourceSilent", SOURCE)],
    ),
}  # fmt: skip


def check(folder: Path, cases: Iterable[Case], only: str | None = None) -> None:
    """Lets promtool evaluate the rules, all or those of one alert, on the series of each case."""
    rules: list[dict[str, Any]] = [
        {k: v for k, v in rule.items() if k != "annotations"}
        for rule in alerts()
        if only in (None, rule["alert"])
    ]
    tests = [
        {
            "name": case,
            "interval": "1m",
            "input_series": [{"series": s, "values": v} for s, v in series.items()],
            "alert_rule_test": [
                {
                    "eval_time": at,
                    "alertname": rule["alert"],
                    "exp_alerts": [
                        {"exp_labels": x | rule["labels"]} for n, x in expected if n == rule["alert"]
                    ],
                }
                for rule in rules
            ],
        }
        for case, at, series, expected in cases
    ]
    # All rules, over half a day, take seconds of a processor where they are evaluated every 15 s.
    every = "15s" if only else "1m"
    document = {"rule_files": ["rules.yml"], "evaluation_interval": every, "tests": tests}
    group = {"groups": [{"name": "tested", "rules": rules}]}
    (folder / "rules.yml").write_text(yaml.safe_dump(group), encoding="utf-8")
    (folder / "tests.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    run_promtool("test", "rules", folder / "tests.yml")


@promtool
@pytest.mark.parametrize("name", sorted({name for name, *_ in FIRING}))
def test_an_alert_fires_and_does_not_fire(name: str, tmp_path: Path) -> None:
    expected: list[Case]
    expected = [(f"fires {at}", at, x, [(name, own)]) for n, at, own, x in FIRING if n == name]
    expected += [(f"is quiet {at}", at, series, []) for n, at, series in QUIET if n == name]
    check(tmp_path, expected, only=name)


@promtool
def test_exactly_the_true_alerts_fire(tmp_path: Path) -> None:
    check(tmp_path, [(name, *case) for name, case in CASES.items()])


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    fired = {name for _, _, expected in CASES.values() for name, _ in expected}
    assert fired | {name for name, *_ in FIRING} == {alert["alert"] for alert in alerts()}
