"""Checks that the Grafana dashboard agrees with the metrics, the alerts and its provisioning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

from streams import metrics
from streams.dead_letters.headers import Reason
from tests.deploy.test_deploy import DASHBOARD, alerts, compose, load, strings

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
