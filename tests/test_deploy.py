"""Checks that the deployment files agree with the code and with each other."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from streams import agents, metrics
from streams.settings import Settings

ROOT = Path(__file__).parents[1]
PROMETHEUS = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/dashboards/pvstream.json"
STAGES = frozenset(module.name for module in pkgutil.iter_modules(agents.__path__))
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
GRID_WIDTH = 24


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def compose() -> dict[str, Any]:
    services: dict[str, Any] = load("docker-compose.yml")["services"]
    return services


def workers() -> dict[str, Any]:
    """The services that run a stage, by the stage."""
    found = {}
    for name, service in compose().items():
        match service.get("command"):
            case ["worker", "--stage", stage]:
                assert name == stage
                found[stage] = service
    return found


def seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))


def alerts() -> list[dict[str, Any]]:
    return [rule for group in load("deploy/prometheus/alerts.yml")["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def exported() -> set[str]:
    """Every series name the code can produce; a family whose labels are unused has no samples to tell it."""
    families = [f for f in metrics.REGISTRY.collect() if f.name.startswith("pv_")]
    return {family.name + suffix for family in families for suffix in SUFFIXES[family.type]}


def strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value)


def test_every_stage_has_a_worker_service() -> None:
    assert workers().keys() == STAGES


def test_the_workers_read_the_store_of_releases_and_only_topics_writes_it() -> None:
    services = compose()
    store = services["topics"]["environment"]["PV_STORE"]
    assert "releases" in load("docker-compose.yml")["volumes"]
    assert services["topics"]["volumes"] == [f"releases:{store}"]
    for stage, worker in workers().items():
        assert worker["environment"]["PV_STORE"] == store, stage
        assert worker["volumes"] == [f"releases:{store}:ro"], stage


def test_the_image_makes_the_store_for_its_own_user_so_that_a_new_volume_is_writable() -> None:
    store = compose()["topics"]["environment"]["PV_STORE"]
    final = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").split("\nFROM ")[-1]
    made = re.search(r"install --directory --owner=(\w+) --group=\w+ (.*)$", final, re.MULTILINE)
    user = re.search(r"useradd --uid (\d+) .* (\w+) ", final)
    assert made is not None
    assert user is not None
    assert made[1] == user[2]
    assert store in made[2].split()
    assert f"PV_STORE={store}\n" in final
    assert f"\nUSER {user[1]}\n" in final
    assert final.index(made[0]) < final.index("\nUSER ")


def test_every_stage_is_scraped_under_its_own_name() -> None:
    settings = next(iter(workers().values()))["environment"]
    (job,) = [
        j for j in load("deploy/prometheus/prometheus.yml")["scrape_configs"] if j["job_name"] == "pvstream"
    ]
    targets = {target: c["labels"]["stage"] for c in job["static_configs"] for target in c["targets"]}
    assert targets == {f"{stage}:{settings['PV_HTTP_PORT']}": stage for stage in STAGES}
    assert job["honor_labels"], "otherwise the label of the target displaces the one of the metric"


def test_the_absence_of_every_stage_is_an_alert() -> None:
    (alert,) = [a for a in alerts() if a["alert"] == "WorkerAbsent"]
    assert set(re.findall(r'stage="(\w+)"', alert["expr"])) == STAGES


@pytest.mark.parametrize("service", ["topics", *sorted(STAGES)])
def test_the_settings_of_a_service_exist_and_are_valid(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = compose()[service]["environment"]
    assert {name.removeprefix("PV_").lower() for name in environment} <= Settings.model_fields.keys()
    for name, value in environment.items():
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:-(.*)\}", r"\1", value))
    assert Settings().bootstrap == ["kafka:9092"]


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_worker_may_finish_its_drain_before_it_is_killed(stage: str) -> None:
    worker = workers()[stage]
    assert seconds(worker["stop_grace_period"]) > float(worker["environment"]["PV_GRACE"])


def test_workers_start_once_the_topics_exist_and_the_topics_once_the_broker_is_healthy() -> None:
    services = compose()
    assert services["topics"]["depends_on"]["kafka"]["condition"] == "service_healthy"
    assert "healthcheck" in services["kafka"]
    assert services["topics"]["restart"] == "no"
    for worker in workers().values():
        assert worker["depends_on"]["topics"]["condition"] == "service_completed_successfully"


def test_the_shared_image_is_built_by_one_service_only() -> None:
    assert [name for name, service in compose().items() if "build" in service] == ["topics"]
    assert {w["image"] for w in workers().values()} == {compose()["topics"]["image"]}


def test_all_published_ports_are_on_the_loopback_interface() -> None:
    ports = [port for service in compose().values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []
    assert not any(service.get("network_mode") == "host" for service in compose().values())


def test_the_broker_does_not_create_topics_by_itself() -> None:
    assert compose()["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_the_broker_has_the_version_that_the_integration_tests_run() -> None:
    pom = ElementTree.parse(ROOT / "tests/integration/kafka-pom.xml")
    version = pom.findtext(".//{*}properties/{*}kafka.version")
    assert compose()["kafka"]["image"] == f"apache/kafka:{version}"


def test_images_of_others_are_pinned_to_a_full_version() -> None:
    images = [s["image"] for s in compose().values() if s["image"] != "pvstream:local"]
    assert [image for image in images if not re.search(r":v?\d+\.\d+\.\d+$", image)] == []


def test_no_password_is_in_the_compose_file() -> None:
    password = compose()["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert password.startswith("${GRAFANA_PASSWORD:?")


def test_every_mounted_file_exists() -> None:
    mounts = [v.split(":")[0] for s in compose().values() for v in s.get("volumes", []) if v.startswith(".")]
    assert mounts
    assert [mount for mount in mounts if not any((ROOT / mount).iterdir())] == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("dashboard", "\n".join(strings(dashboard()))),
        ("alerts", "\n".join(strings(alerts()))),
        ("k8s", (ROOT / "deploy/k8s/worker.yaml").read_text(encoding="utf-8")),
    ],
)
def test_every_metric_that_is_asked_for_is_one_the_code_defines(source: str, text: str) -> None:
    used = set(re.findall(r"\bpv_\w+", text))
    assert used, source
    assert used <= exported(), used - exported()


def test_every_metric_of_the_code_is_on_the_dashboard() -> None:
    text = "\n".join(strings(dashboard()))
    families = {family.name for family in metrics.REGISTRY.collect() if family.name.startswith("pv_")}
    assert {name for name in families if name not in text} == set()


def test_every_panel_says_what_it_shows_and_in_which_unit() -> None:
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        if panel["type"] == "timeseries":
            assert panel["fieldConfig"]["defaults"].get("unit"), panel["title"]


def test_no_two_panels_overlap_and_none_leaves_the_grid() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= GRID_WIDTH, panel["title"]
        for cell in (
            (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
        ):
            assert cell not in taken, f"{panel['title']} lies on {taken[cell]}"
            taken[cell] = panel["title"]
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(ids) == len(set(ids))


def test_the_dashboard_uses_the_provisioned_datasource_and_is_where_grafana_looks() -> None:
    (source,) = load("deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"]
    used = {json.dumps(panel["datasource"]) for panel in panels()}
    assert used == {json.dumps({"type": source["type"], "uid": source["uid"]})}
    (provider,) = load("deploy/grafana/provisioning/dashboards/pvstream.yml")["providers"]
    path = provider["options"]["path"]
    grafana = compose()["grafana"]
    assert f"./deploy/grafana/dashboards:{path}:ro" in grafana["volumes"]
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{path}/{DASHBOARD.name}"


def test_the_stage_variable_filters_every_panel_that_has_stages_or_tasks() -> None:
    assert [v["name"] for v in dashboard()["templating"]["list"]] == ["stage"]
    for panel in panels():
        for target in panel["targets"]:
            if re.search(r"by \(.*\b(stage|task)\b", target["expr"]):
                assert "$stage" in target["expr"], panel["title"]


def test_the_table_of_alerts_shows_the_labels_that_tell_one_from_another() -> None:
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


def test_every_alert_has_a_severity_and_says_what_to_do() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"warning", "critical"}
        assert alert["annotations"].keys() == {"summary", "description"}


def test_the_image_runs_pvstream_and_not_as_root() -> None:
    final = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").split("\nFROM ")[-1]
    user = re.search(r"^USER (\d+)$", final, re.MULTILINE)
    assert user is not None
    assert int(user[1]) != 0
    assert re.search(r'^ENTRYPOINT \["pvstream"\]$', final, re.MULTILINE)


def kubernetes() -> dict[str, Any]:
    """The objects of the file by their kind."""
    text = (ROOT / "deploy/k8s/worker.yaml").read_text(encoding="utf-8")
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


def test_the_kubernetes_worker_reads_the_store_from_a_claim_that_all_nodes_share() -> None:
    claim = kubernetes()["PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    pod = kubernetes()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = [v["name"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
    (mount,) = [m for m in container["volumeMounts"] if m["name"] == volume]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert mount == {"name": volume, "mountPath": environment["PV_STORE"], "readOnly": True}
    (source,) = [v["persistentVolumeClaim"] for v in pod["volumes"] if v["name"] == volume]
    assert source["claimName"] == claim["metadata"]["name"]


def test_the_kubernetes_worker_is_probed_drained_and_not_root() -> None:
    pod = kubernetes()["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert {name.removeprefix("PV_").lower() for name in environment} <= Settings.model_fields.keys()
    assert pod["spec"]["terminationGracePeriodSeconds"] > float(environment["PV_GRACE"])
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == environment["PV_HTTP_PORT"]
    assert container["args"][:2] == ["worker", "--stage"]
    assert container["args"][2] in STAGES
