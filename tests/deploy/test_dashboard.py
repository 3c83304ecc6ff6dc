"""Checks that the Grafana dashboard agrees with the metrics, the alerts and its provisioning."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

from streams import metrics
from streams.dead_letters.headers import Reason
from tests.deploy.test_deploy import DASHBOARD, alerts, compose, load, strings

GRID_WIDTH = 24


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def test_every_metric_of_the_code_is_on_the_dashboard() -> None:
    text = "\n".join(strings(dashboard()))
    families = {family.name for family in metrics.REGISTRY.collect() if family.name.startswith("pv_")}
    assert {name for name in families if name not in text} == set()


def test_every_panel_has_a_description_and_a_unit() -> None:
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        if panel["type"] == "timeseries":
            assert panel["fieldConfig"]["defaults"].get("unit"), panel["title"]


def test_every_reason_of_a_stage_is_explained_by_the_panel_and_the_alert() -> None:
    (panel,) = [panel for panel in panels() if panel["title"] == "Dead letters, by reason"]
    (alert,) = [alert for alert in alerts() if alert["alert"] == "DeadLetters"]
    # An operator gives the last one, and no stage counts it.
    for reason in set(get_args(Reason)) - {"skipped"}:
        for text in (panel["description"], alert["annotations"]["description"]):
            assert f"{reason}:" in text, reason


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


def test_the_stage_variable_filters_every_panel_that_has_stages_or_tasks() -> None:
    assert list(variables()) == ["datasource", "job", "stage"]
    for panel in panels():
        for target in panel["targets"]:
            if re.search(r"by \(.*\b(stage|task)\b", target["expr"]):
                assert "$stage" in target["expr"], panel["title"]


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
