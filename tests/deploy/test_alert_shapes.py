"""The alerts on both ways to run the stages: one process with all of them, and a worker for each.

In each case all rules are evaluated, and exactly the expected alerts fire.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_alerts import FIRING, promtool, run_promtool
from tests.deploy.test_deploy import STAGES, alerts

#: Values of series by their selector, one a minute.
Series = dict[str, str]
#: An alert with its labels, without the severity.
Alert = tuple[str, dict[str, str]]


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
    series: Series = {}
    for stage in sorted(STAGES):
        series |= worker(stage, job=job, **more)
    return series


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
        "13m",
        discovered(workers(namespace="a") | worker("ner", ENDS, namespace="a")) | OTHER,
        absent("ner", namespace="a"),
    ),
    "all discovered workers have ended": (
        "13m",
        {k: f"{v[0]}x10 stale" for k, v in discovered(workers(namespace="a")).items()}
        | OTHER,
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


def check(folder: Path, at: str, series: Series, expected: list[Alert]) -> None:
    """Lets promtool evaluate all rules on these series; exactly the expected alerts fire at that time."""
    rules: list[dict[str, Any]] = [{k: v for k, v in r.items() if k != "annotations"} for r in alerts()]
    tests = [
        {
            "eval_time": at,
            "alertname": rule["alert"],
            "exp_alerts": [
                {"exp_labels": own | rule["labels"]} for name, own in expected if name == rule["alert"]
            ],
        }
        for rule in rules
    ]
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "alert_rule_test": tests,
            }
        ],
    }
    group = {"groups": [{"name": "tested", "rules": rules}]}
    (folder / "rules.yml").write_text(yaml.safe_dump(group), encoding="utf-8")
    (folder / "tests.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    run_promtool("test", "rules", folder / "tests.yml")


@promtool
@pytest.mark.parametrize("case", CASES)
def test_exactly_the_true_alerts_fire(case: str, tmp_path: Path) -> None:
    check(tmp_path, *CASES[case])


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    fired = {name for _, _, expected in CASES.values() for name, _ in expected}
    assert fired | {name for name, *_ in FIRING} == {alert["alert"] for alert in alerts()}
