"""The rules of Grafana's dashboard-linter, as far as they apply to the dashboard.

Not applied: a variable `instance`. Workers come and go, and the variable `stage` takes its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tests.deploy.test_dashboard import dashboard, panels, variables
from tests.deploy.test_deploy import alerts, load, strings

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: Windows other than Grafana's interval, as titles and descriptions say them.
WINDOWS = {"5m": "(5|five) minutes", "30m": "30 min", "1h": "1 h|hour"}
#: Reloads are too few for a rate: the panel shows all of them.
NOT_RATES = {"Reload p95"}
#: Prometheus' own series of alerts, whose labels are those of the rules.
WITHOUT_JOB = {"ALERTS"}


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


def test_variables_are_reloaded_when_the_time_changes() -> None:
    assert [v["name"] for v in variables().values() if v["type"] == "query" and v["refresh"] != 2] == []
    assert all(v["includeAll"] and v["multi"] for v in variables().values() if v["type"] == "query")


def test_the_dashboard_is_changed_in_its_file_only() -> None:
    assert dashboard()["editable"] is False


def test_every_panel_has_a_title_a_description_and_a_query() -> None:
    for panel in panels():
        assert panel["title"]
        assert panel["description"]
        assert panel["targets"], panel["title"]
        assert all(target["expr"].strip() for target in panel["targets"]), panel["title"]


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


def test_a_window_is_grafanas_interval_or_stated_in_the_panel() -> None:
    for panel in panels():
        for target in panel["targets"]:
            for window in set(re.findall(r"\[([^]]+)\]", target["expr"])) - {"$__rate_interval"}:
                stated = f"{panel['title']} {panel['description']}"
                assert re.search(WINDOWS[window], stated), f"{panel['title']}: {window}"


def test_counters_are_shown_as_rates() -> None:
    for title, query in queries():
        bare = re.sub(r"\b(rate|increase)\(\w+(\{[^}]*\})?\[[^]]+\]\)", "", query)
        counters = re.findall(r"\b(pv_\w+_(?:total|count|sum|bucket)|process_cpu_seconds_total)\b", bare)
        assert not counters or title in NOT_RATES, title


def test_every_unit_is_one_of_grafana() -> None:
    used = {panel["fieldConfig"]["defaults"].get("unit", "none") for panel in panels()}
    assert used <= {"s", "recps", "percentunit", "bytes", "short", "eps", "none"}


def test_queries_use_the_metrics_of_the_alerts() -> None:
    shown = "\n".join(strings(dashboard()))
    watched = {name for alert in alerts() for name in re.findall(r"\bpv_[a-z_]+", alert["expr"])}
    assert {name for name in watched if name.removesuffix("_bucket") not in shown} == set()
