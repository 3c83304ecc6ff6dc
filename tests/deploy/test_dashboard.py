"""Checks that the Grafana dashboard agrees with the metrics, the alerts and its provisioning, and keeps the
rules of Grafana's dashboard-linter, as far as they apply.

Not applied: a variable `instance`. Workers come and go, and the variable `stage` takes its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

from streams import metrics
from streams.dead_letters.headers import Reason
from tests.deploy.test_deploy import DASHBOARD, alerts, compose, load, strings

GRID_WIDTH = 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: Windows other than Grafana's interval, as titles and descriptions say them.
WINDOWS = {"5m": "(5|five) minutes", "30m": "30 min", "1h": "1 h|hour"}
#: Reloads are too few for a rate: the panel shows all of them.
NOT_RATES = {"Reload p95"}
#: Prometheus' own series of alerts, whose labels are those of the rules.
WITHOUT_JOB = {"ALERTS"}


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def test_every_metric_is_on_the_dashboard_and_every_reason_explained() -> None:
    text = "\n".join(strings(dashboard()))
    families = {family.name for family in metrics.REGISTRY.collect() if family.name.startswith("pv_")}
    assert {name for name in families if name not in text} == set()
    (panel,) = [panel for panel in panels() if panel["title"] == "Dead letters, by reason"]
    (alert,) = [alert for alert in alerts() if alert["alert"] == "DeadLetters"]
    # An operator gives the last one, and no stage counts it.
    for reason in set(get_args(Reason)) - {"skipped"}:
        for said in (panel["description"], alert["annotations"]["description"]):
            assert f"{reason}:" in said, reason


def test_panels_do_not_overlap_and_stay_within_the_grid() -> None:
    occupied: dict[tuple[int, int], str] = {}
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= GRID_WIDTH, panel["title"]
        for cell in (
            (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
        ):
            assert cell not in occupied, f"{panel['title']} overlaps {occupied[cell]}"
            occupied[cell] = panel["title"]
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(ids) == len(set(ids))


def variables() -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in dashboard()["templating"]["list"]}


def test_the_dashboard_begins_with_the_provisioned_datasource_and_lies_in_the_provisioned_folder() -> None:
    (source,) = load("deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"]
    chosen = variables()["datasource"]
    assert (chosen["type"], chosen["query"]) == ("datasource", source["type"])
    assert chosen["current"]["value"] == source["uid"]
    (provider,) = load("deploy/grafana/provisioning/dashboards/pvstream.yml")["providers"]
    path = provider["options"]["path"]
    grafana = compose()["grafana"]
    assert f"./deploy/grafana/dashboards:{path}:ro" in grafana["volumes"]
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{path}/{DASHBOARD.name}"


def test_the_table_of_alerts_shows_the_labels_that_distinguish_them() -> None:
    (table,) = [panel for panel in panels() if panel["title"] == "Alerts"]
    by = re.search(r"by \(([^)]*)\)", table["targets"][0]["expr"])
    assert by is not None
    used = {
        label
        for alert in alerts()
        for labels in re.findall(r"by \(([^)]*)\)", alert["expr"])
        for label in labels.split(", ")
    }
    assert used - {"le", "release"} <= set(by[1].split(", "))


def queries() -> Iterator[tuple[str, str]]:
    """The title and the query of each target."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def selectors(query: str) -> Iterator[tuple[str, str]]:
    """The metrics of a query, each with its selector."""
    without_strings = re.sub(r'"[^"]*"', '""', query)
    assert without_strings.count("{") == without_strings.count("}")
    yield from re.findall(r"\b([a-zA-Z_]\w*)\{([^}]*)\}", query)


def test_every_panel_and_annotation_asks_the_datasource_that_the_variable_names() -> None:
    found = [
        place["datasource"]
        for panel in panels()
        for place in (panel, *panel["targets"])
        if "datasource" in place
    ]
    found += [annotation["datasource"] for annotation in dashboard()["annotations"]["list"]]
    found += [v["datasource"] for v in variables().values() if v["type"] == "query"]
    assert len(found) > len(panels())
    assert {json.dumps(source) for source in found} == {json.dumps(SOURCE)}


def test_every_panel_has_a_title_a_description_a_query_and_a_unit_of_grafana() -> None:
    for panel in panels():
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["targets"] and all(t["expr"].strip() for t in panel["targets"]), panel["title"]
        unit = panel["fieldConfig"]["defaults"].get("unit")
        assert unit in {"s", "recps", "percentunit", "bytes", "short", "eps", "none", None}, panel["title"]
        assert unit or panel["type"] != "timeseries", panel["title"]


def test_variables_are_reloaded_and_the_stage_filters_every_panel_that_has_stages() -> None:
    asked = [v for v in variables().values() if v["type"] == "query"]
    assert [v["name"] for v in asked if v["refresh"] != 2 or not (v["includeAll"] and v["multi"])] == []
    assert dashboard()["editable"] is False
    assert list(variables()) == ["datasource", "job", "stage"]
    for panel in panels():
        for target in panel["targets"]:
            if re.search(r"by \(.*\b(stage|task)\b", target["expr"]):
                assert "$stage" in target["expr"], panel["title"]


def job_filter(name: str) -> str:
    """How a metric is filtered: sources are scraped under a job of their own."""
    is_of_sources = name.startswith(("pv_source_", "pv_intake_"))
    return 'job=~"($job)(-sources)?"' if is_of_sources else 'job=~"$job"'


def test_a_chosen_job_shows_its_sources_too() -> None:
    jobs = [job["job_name"] for job in load("deploy/prometheus/prometheus.yml")["scrape_configs"]]
    assert {"pvstream", "pvstream-sources"} < set(jobs)
    found = [pair for _, query in queries() for pair in selectors(query)]
    filters = {labels for name, labels in found if name.startswith(("pv_source_", "pv_intake_"))}
    assert filters
    for labels in filters:
        (pattern,) = re.findall(r'job=~"([^"]*)"', labels)
        assert re.fullmatch(pattern.replace("$job", "pvstream"), "pvstream-sources"), labels


def test_every_selector_of_a_query_filters_by_the_job() -> None:
    expressions = [query for _, query in queries()]
    expressions += [annotation["expr"] for annotation in dashboard()["annotations"]["list"]]
    found = [pair for query in expressions for pair in selectors(query)]
    assert len(found) > len(panels())
    assert [
        name for name, labels in found if job_filter(name) not in labels and name not in WITHOUT_JOB
    ] == []
    # No metric is without a selector.
    for query in expressions:
        assert set(re.findall(r"\bpv_\w+", query)) <= {name for name, _ in selectors(query)}, query


def test_windows_are_grafanas_or_stated_and_counters_are_shown_as_rates() -> None:
    for panel in panels():
        for target in panel["targets"]:
            for window in set(re.findall(r"\[([^]]+)\]", target["expr"])) - {"$__rate_interval"}:
                stated = f"{panel['title']} {panel['description']}"
                assert re.search(WINDOWS[window], stated), f"{panel['title']}: {window}"
    for title, query in queries():
        bare = re.sub(r"\b(rate|increase)\(\w+(\{[^}]*\})?\[[^]]+\]\)", "", query)
        counters = re.findall(r"\b(pv_\w+_(?:total|count|sum|bucket)|process_cpu_seconds_total)\b", bare)
        assert not counters or title in NOT_RATES, title
