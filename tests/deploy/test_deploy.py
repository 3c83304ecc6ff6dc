"""Checks that the deployment files agree with the code and with each other."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from streams import metrics
from streams.agents import pipeline
from streams.monitoring import http
from streams.settings import Settings
from streams.sources.catalog import NAMES
from streams.worker import EXIT_SECONDS

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/dashboards/pvstream.json"
STAGES = frozenset(stage.name for stage in pipeline.STAGES)
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def load(path: str) -> Any:
    return yaml.load((ROOT / path).read_text(encoding="utf-8"), yaml.CSafeLoader)


def compose() -> dict[str, Any]:
    services: dict[str, Any] = load("docker-compose.yml")["services"]
    return services


def workers() -> dict[str, Any]:
    """The services that run a stage, by stage."""
    services = {}
    for name, service in compose().items():
        match service.get("command"):
            case ["worker", "--stage", stage]:
                assert name == stage
                services[stage] = service
    return services


def seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))


def alerts() -> list[dict[str, Any]]:
    return [rule for group in load("deploy/prometheus/alerts.yml")["groups"] for rule in group["rules"]]


def exported() -> set[str]:
    """Every series name that the code can produce; derived, because unused labels have no samples yet."""
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


def test_the_workers_read_the_store_and_only_the_service_topics_writes_it() -> None:
    services = compose()
    assert workers().keys() == STAGES
    store = services["topics"]["environment"]["PV_STORE"]
    assert {"releases", "state"} <= load("docker-compose.yml")["volumes"].keys()
    assert services["topics"]["volumes"] == [f"releases:{store}"]
    for stage, worker in workers().items():
        assert worker["environment"]["PV_STORE"] == store, stage
        state = worker["environment"]["PV_STATE"]
        assert worker["volumes"] == [f"releases:{store}:ro", f"state:{state}"], stage


def final_stage() -> str:
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    return re.sub(r" \\\n +(?=/|PV_D)", " ", text.split("\nFROM ")[-1])


def test_the_image_creates_its_volumes_for_its_own_user_so_that_new_ones_are_writable() -> None:
    environment = compose()["topics"]["environment"]
    store, state = environment["PV_STORE"], environment["PV_STATE"]
    final = final_stage()
    created = re.search(r"install --directory --owner=(\w+) --group=\w+ (.*)$", final, re.MULTILINE)
    user = re.search(r"useradd --uid (\d+) .* (\w+) ", final)
    assert created is not None
    assert user is not None
    assert created[1] == user[2]
    database = environment["PV_DATABASE"]
    assert {store, state, str(Path(database).parent)} <= set(created[2].split())
    assert f"PV_STORE={store} PV_STATE={state} PV_DATABASE={database}\n" in final
    assert int(user[1]) != 0 and f"\nUSER {user[1]}\n" in final
    assert '\nENTRYPOINT ["pvstream"]' in final
    assert final.index(created[0]) < final.index("\nUSER ")


def test_an_image_with_the_base_of_the_judge_has_it_where_workers_look_for_it() -> None:
    """Put together while it is built, since no worker may write to the image."""
    built = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    folder = re.search(r" PV_CACHE=(\S+) ", final_stage())
    assert folder is not None
    assert f"RUN mkdir {folder[1]} " in built
    assert (
        f'PV_CACHE={folder[1]} python -c "from models.encoder.mpnet import mpnet_folder; mpnet_folder()"'
        in built
    )
    assert f"COPY --from=build {folder[1]} {folder[1]}\n" in final_stage()
    assert "JUDGE" in compose()["topics"]["build"]["args"]
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    assert sent.index("!deploy/judge-base.txt") > sent.index("deploy/*")


def test_prometheus_scrapes_each_stage_under_its_name_and_finds_every_target() -> None:
    settings = next(iter(workers().values()))["environment"]
    (job,) = [
        j for j in load("deploy/prometheus/prometheus.yml")["scrape_configs"] if j["job_name"] == "pvstream"
    ]
    targets = {target: c["labels"]["stage"] for c in job["static_configs"] for target in c["targets"]}
    assert targets == {f"{stage}:{settings['PV_HTTP_PORT']}": stage for stage in STAGES}
    assert job["honor_labels"], "otherwise the label of the target displaces the one of the metric"
    services, found = compose(), set()
    for own in load("deploy/prometheus/prometheus.yml")["scrape_configs"]:
        static = [t for config in own.get("static_configs", ()) for t in config["targets"]]
        assert [t for t in static if "profiles" in services.get(t.split(":")[0], {})] == []
        for config in own.get("dns_sd_configs", ()):
            found |= set(config["names"])
            assert config["type"] == "A"
            for name in config["names"]:
                assert services[name]["environment"]["PV_HTTP_PORT"] == str(config["port"])
    assert found == {"source"}
    (own,) = load("deploy/prometheus/up.yml")["scrape_configs"]
    assert own["job_name"] == "pvstream"
    assert own["static_configs"] == [{"targets": [f"{Settings().http_host}:{Settings().http_port}"]}]


@pytest.mark.parametrize("service", ["topics", "source", "store", "page", "signals", *sorted(STAGES)])
def test_the_settings_of_a_service_exist_and_are_valid(
    service: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = compose()[service]["environment"]
    assert {name.removeprefix("PV_").lower() for name in environment} <= Settings.model_fields.keys()
    token = tmp_path / "token"
    token.write_text("sixteen letters at least")
    for name, text in environment.items():
        value = str(token) if text.startswith("/run/secrets/") else re.sub(r"\$\{\w+:-(.*)\}", r"\1", text)
        monkeypatch.setenv(name, value)
    assert Settings().bootstrap == ["kafka:9092"]


def test_the_live_sources_start_with_their_profile_only_and_can_confirm_what_they_read() -> None:
    service = compose()["source"]
    assert service["profiles"] == ["sources"]
    words = re.sub(r"\$\{\w+:-(.*)\}", r"\1", service["command"]).split()
    assert words[0] == "source"
    assert set(words[1:]) <= set(NAMES)
    assert seconds(service["stop_grace_period"]) > float(service["environment"]["PV_GRACE"])


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_worker_can_finish_its_drain_before_it_is_killed(stage: str) -> None:
    worker = workers()[stage]
    assert seconds(worker["stop_grace_period"]) > float(worker["environment"]["PV_GRACE"]) + EXIT_SECONDS


def test_workers_start_once_the_topics_exist_and_the_topics_once_the_broker_is_healthy() -> None:
    services = compose()
    assert services["topics"]["depends_on"]["kafka"]["condition"] == "service_healthy"
    assert "healthcheck" in services["kafka"]
    assert services["topics"]["restart"] == "no"
    for worker in workers().values():
        assert worker["depends_on"]["topics"]["condition"] == "service_completed_successfully"


def test_images_are_built_once_or_pinned_to_the_version_that_the_tests_run() -> None:
    services = compose()
    assert [name for name, service in services.items() if "build" in service] == ["topics"]
    assert {w["image"] for w in workers().values()} == {services["topics"]["image"]} == {"pvstream:local"}
    others = {s["image"] for s in services.values()} - {"pvstream:local"}
    assert [image for image in others if not re.search(r":v?\d+\.\d+\.\d+$", image)] == []
    pom = ElementTree.parse(ROOT / "tests/integration/kafka-pom.xml")
    version = pom.findtext(".//{*}properties/{*}kafka.version")
    assert services["kafka"]["image"] == f"apache/kafka:{version}"
    assert services["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_compose_has_loopback_ports_mounts_that_exist_and_no_password() -> None:
    password = compose()["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert password.startswith("${GRAFANA_PASSWORD:?")
    mounts = [v.split(":")[0] for s in compose().values() for v in s.get("volumes", []) if v.startswith(".")]
    assert mounts
    assert [mount for mount in mounts if not any((ROOT / mount).iterdir())] == []
    ports = [port for service in compose().values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []
    assert not any(service.get("network_mode") == "host" for service in compose().values())


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("dashboard", "\n".join(strings(json.loads(DASHBOARD.read_text(encoding="utf-8"))))),
        ("alerts", "\n".join(strings(alerts()))),
        ("k8s", "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("deploy/k8s/**/*.yaml"))),
    ],
)
def test_every_metric_in_use_is_defined_in_the_code(source: str, text: str) -> None:
    used = set(re.findall(r"\bpv_\w+", text))
    assert used, source
    assert used <= exported(), used - exported()


def test_every_alert_has_a_severity_a_summary_and_a_description() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"warning", "critical"}
        assert alert["annotations"].keys() == {"summary", "description"}


async def test_the_healthcheck_asks_a_worker_whether_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    check = re.search(r"^HEALTHCHECK .* CMD (\[.*?\])$", final_stage().replace("\\\n", ""), re.MULTILINE)
    assert check is not None
    program, *arguments = json.loads(check[1])
    assert program == "python"
    assert not any("healthcheck" in worker for worker in workers().values())
    stalled: list[str] = []
    runner, port = await http.start("127.0.0.1", 0, dict, dict, lambda: stalled)
    monkeypatch.setenv("PV_HTTP_PORT", str(port))
    try:
        for stages, code in (([], 0), (["ner"], 1)):
            stalled[:] = stages
            process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=DEVNULL)
            assert await asyncio.wait_for(process.wait(), 120) == code
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"EXTRA": "cpu"}, 1),
        ({"EXTRA": "cpu", "PIP_EXTRA_INDEX_URL": "https://wheels.example/cpu"}, 0),
        ({"EXTRA": "gpu"}, 0),
    ],
)
def test_an_image_for_processors_needs_wheels_for_them(variables: dict[str, str], code: int) -> None:
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    check = re.search(r"^RUN (if .*? fi)$", text, re.MULTILINE)
    assert check is not None
    done = subprocess.run(["sh", "-c", check[1]], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert ("PIP_EXTRA_INDEX_URL" in done.stderr) == (code != 0)
