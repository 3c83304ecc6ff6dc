"""Checks that the manifests of deploy/k8s are valid and agree with the code and the other files of deploy."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from streams.settings import Settings
from tests.deploy.manifests import K8S, Object, by_name, is_of_kubernetes, objects, validate
from tests.deploy.test_deploy import STAGES, alerts, exported, load

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
OVERLAYS = ("small", "cluster")
overlays = pytest.mark.parametrize("overlay", OVERLAYS)
CLUSTER_PORTS = {"small": 9092, "cluster": 9093}


def settings_of(overlay: str) -> dict[str, str]:
    (found,) = by_name(overlay, "ConfigMap").values()
    variables: dict[str, str] = found["data"]
    return variables


def pod_of(item: Object) -> Object:
    pod: Object = item["spec"]["template"]["spec"]
    return pod


def containers(overlay: str) -> list[tuple[Object, Object]]:
    """The pod and the container of each Deployment and Job."""
    found = []
    for item in objects(overlay, "Deployment") + objects(overlay, "Job"):
        (container,) = pod_of(item)["containers"]
        found.append((pod_of(item), container))
    return found


def workers(overlay: str) -> list[Object]:
    """The Deployments that run a stage."""
    return [
        d
        for d in objects(overlay, "Deployment")
        if d["spec"]["template"]["metadata"]["labels"].get("pvstream/role") == "worker"
    ]


def stage_of(deployment: Object) -> str:
    stage: str = deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
    return stage


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


@overlays
def test_every_object_is_one_that_kubernetes_accepts(overlay: str) -> None:
    known = [item for item in objects(overlay) if is_of_kubernetes(item)]
    assert {"Deployment", "Job", "PodDisruptionBudget", "NetworkPolicy", "Service"} <= {
        item["kind"] for item in known
    }
    for item in known:
        validate(item)


@pytest.mark.parametrize(
    "change", [{"livenessProb": {}}, {"ports": [{"containerPort": "8000"}]}, {"name": None}]
)
def test_a_mistake_in_an_object_is_found(change: dict[str, Any]) -> None:
    deployment = workers("small")[0]
    pod_of(deployment)["containers"][0] |= change
    with pytest.raises(ValidationError):
        validate(deployment)


@overlays
def test_there_is_a_deployment_for_each_stage_that_runs_this_stage(overlay: str) -> None:
    deployments = {d["metadata"]["name"]: d for d in workers(overlay)}
    assert deployments.keys() == {f"pvstream-{stage}" for stage in STAGES}
    for name, deployment in deployments.items():
        (container,) = pod_of(deployment)["containers"]
        assert container["args"] == ["worker", "--stage", "$(STAGE)"]
        (variable,) = [v for v in container["env"] if v["name"] == "STAGE"]
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == (
            "metadata.labels['app.kubernetes.io/component']"
        )
        assert name == f"pvstream-{stage_of(deployment)}"


@overlays
def test_deployments_and_budgets_select_the_pods_of_their_stage_only(overlay: str) -> None:
    deployments = objects(overlay, "Deployment")
    for kind in ("Deployment", "PodDisruptionBudget"):
        for item in objects(overlay, kind):
            selector = item["spec"]["selector"]["matchLabels"]
            chosen = [
                d for d in deployments if selects(selector, d["spec"]["template"]["metadata"]["labels"])
            ]
            assert [d["metadata"]["name"] for d in chosen] == [item["metadata"]["name"]]
    for deployment in workers(overlay):
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for constraint in pod_of(deployment)["topologySpreadConstraints"]:
            assert constraint["labelSelector"]["matchLabels"] == labels


@overlays
def test_settings_exist_and_are_valid(overlay: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    variables = settings_of(overlay)
    pairs = [(v["name"], v.get("value")) for _, c in containers(overlay) for v in c.get("env", ())]
    names = {name for name, _ in pairs} - {"STAGE"}
    known = {f"PV_{name.upper()}" for name in Settings.model_fields}
    assert {*variables, *names} <= known
    for name, value in [*variables.items(), *((n, v) for n, v in pairs if n != "STAGE" and v is not None)]:
        monkeypatch.setenv(name, value)
        if value.startswith("/etc/pvstream/secrets/"):
            path = tmp_path / Path(value).name
            path.write_text("sixteen letters at least\n")
            monkeypatch.setenv(name, str(path))
    ports = {int(address.rpartition(":")[2]) for address in Settings().bootstrap}
    assert ports == {CLUSTER_PORTS[overlay]}


def test_the_cluster_gets_its_secrets_from_files_and_a_pod_without_them_does_not_start() -> None:
    for pod, container in containers("cluster"):
        (mount,) = [m for m in container["volumeMounts"] if m["name"] == "secrets"]
        (volume,) = [v["secret"] for v in pod["volumes"] if v["name"] == "secrets"]
        assert volume["secretName"] == "pvstream"
        assert volume["optional"] is False
        assert volume["defaultMode"] == 0o440
        assert mount["mountPath"] == "/etc/pvstream/secrets"
        assert mount["readOnly"]
    own = {v.get("value", "") for _, c in containers("cluster") for v in c.get("env", ())}
    files = {value for value in own | set(settings_of("cluster").values()) if value.startswith("/etc/")}
    # The comment that says how to make the secret names each of them.
    text = (K8S / "cluster/kustomization.yaml").read_text(encoding="utf-8")
    assert {f"--from-file={Path(file).name}" for file in files} == set(re.findall(r"--from-file=\S+", text))
    secrets = {f"PV_{name}" for name in ("DATABASE_PASSWORD", "WEB_TOKEN", "SASL_PASSWORD",
                                         "SSL_KEY_PASSWORD", "OAUTH_CLIENT_SECRET")}  # fmt: skip
    assert all(not secrets & settings_of(overlay).keys() for overlay in OVERLAYS)


@overlays
def test_every_pod_keeps_the_restricted_standard_and_writes_to_volumes_only(overlay: str) -> None:
    (namespace,) = objects(overlay, "Namespace")
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    for pod, container in containers(overlay):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == image_user()
        assert pod["securityContext"]["fsGroup"] == image_user()
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"].keys() == {"requests", "limits"}


def image_user() -> int:
    dockerfile = (K8S.parent / "Dockerfile").read_text(encoding="utf-8")
    return int(re.findall(r"^USER (\d+)$", dockerfile, re.MULTILINE)[-1])


@overlays
def test_store_and_state_are_claims_and_only_the_state_is_written(overlay: str) -> None:
    variables, claims = settings_of(overlay), by_name(overlay, "PersistentVolumeClaim")
    claims.pop("pvstream-results", None)
    modes = {"small": ["ReadWriteOnce"], "cluster": ["ReadWriteMany"]}
    assert {tuple(claim["spec"]["accessModes"]) for claim in claims.values()} == {tuple(modes[overlay])}
    for deployment in workers(overlay):
        pod = pod_of(deployment)
        used = {
            v["name"]: v["persistentVolumeClaim"]["claimName"]
            for v in pod["volumes"]
            if "persistentVolumeClaim" in v
        }
        assert set(used.values()) == claims.keys()
        mounts = {
            m["mountPath"]: m.get("readOnly", False)
            for m in pod["containers"][0]["volumeMounts"]
            if m["name"] in used
        }
        assert mounts == {variables["PV_STORE"]: True, variables["PV_STATE"]: False}


@overlays
def test_probes_ask_the_worker_and_leave_it_time_to_end_itself_and_to_drain(overlay: str) -> None:
    variables = settings_of(overlay)
    for deployment in workers(overlay):
        pod = pod_of(deployment)
        (worker,) = pod["containers"]
        (port,) = worker["ports"]
        assert port == {"name": "http", "containerPort": int(variables["PV_HTTP_PORT"])}
        probes = {name: worker[name]["httpGet"] for name in worker if name.endswith("Probe")}
        assert probes == {
            "startupProbe": {"path": "/health/live", "port": "http"},
            "livenessProbe": {"path": "/health/live", "port": "http"},
            "readinessProbe": {"path": "/health/ready", "port": "http"},
        }
        live = worker["livenessProbe"]
        assert live["periodSeconds"] * live["failureThreshold"] > Settings().inference_deadline + 60
        assert pod["terminationGracePeriodSeconds"] > float(variables["PV_GRACE"]) + 15


@overlays
def test_the_topics_job_creates_the_topics_with_the_settings_of_the_workers(overlay: str) -> None:
    (job,) = objects(overlay, "Job")
    (container,) = pod_of(job)["containers"]
    assert container["args"] == ["topics", "--create"]
    maps = {c["envFrom"][0]["configMapRef"]["name"] for _, c in containers(overlay)}
    assert maps == by_name(overlay, "ConfigMap").keys()


@overlays
def test_prometheus_may_scrape_all_workers_and_nobody_else_connects(overlay: str) -> None:
    spec = by_name(overlay, "NetworkPolicy")["pvstream"]["spec"]
    assert set(spec["policyTypes"]) == {"Ingress", "Egress"}
    for item in objects(overlay, "Deployment") + objects(overlay, "Job"):
        assert selects(spec["podSelector"]["matchLabels"], item["spec"]["template"]["metadata"]["labels"])
    (ingress,) = spec["ingress"]
    assert ingress["ports"] == [{"protocol": "TCP", "port": "http"}]
    assert ingress["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    egress = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
    assert egress == {53, CLUSTER_PORTS[overlay]}


@overlays
def test_the_monitor_scrapes_the_workers_under_the_labels_that_the_alerts_expect(overlay: str) -> None:
    service, (monitor,) = by_name(overlay, "Service")["pvstream"], objects(overlay, "ServiceMonitor")
    assert selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "pvstream"
    assert service["spec"]["publishNotReadyAddresses"]
    for deployment in workers(overlay):
        assert selects(service["spec"]["selector"], deployment["spec"]["template"]["metadata"]["labels"])
    (job,) = objects(overlay, "Job")
    assert not selects(service["spec"]["selector"], job["spec"]["template"]["metadata"]["labels"])
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["path"] == "/metrics"
    assert endpoint["honorLabels"]
    assert endpoint["relabelings"] == [
        {"sourceLabels": ["__meta_kubernetes_pod_label_app_kubernetes_io_component"], "targetLabel": "stage"}
    ]


@overlays
def test_the_alerts_are_those_of_prometheus(overlay: str) -> None:
    (rules,) = objects(overlay, "PrometheusRule")
    assert rules["spec"] == load("deploy/prometheus/alerts.yml")
    assert len(rules["spec"]["groups"][0]["rules"]) == len(alerts())


def test_each_stage_scales_on_its_own_lag_slowly_and_not_above_its_partitions() -> None:
    scaled = by_name("cluster", "ScaledObject")
    assert scaled.keys() == {d["metadata"]["name"] for d in workers("cluster")}
    partitions = int(settings_of("cluster")["PV_PARTITIONS"])
    for name, item in scaled.items():
        spec, stage = item["spec"], name.removeprefix("pvstream-")
        assert spec["scaleTargetRef"] == {"name": name}
        assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, partitions)
        (trigger,) = spec["triggers"]
        assert trigger["type"] == "prometheus"
        chosen = f'job="pvstream", namespace="{item["metadata"]["namespace"]}", stage="{stage}"'
        assert trigger["metadata"]["query"] == f"max(pv_lag_seconds{{{chosen}}})"
        down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
        assert down["stabilizationWindowSeconds"] >= 600
        assert down["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 600}]
    assert all("replicas" not in d["spec"] for d in workers("cluster"))
    assert "pv_lag_seconds" in exported()


@overlays
def test_all_objects_are_in_the_namespace_and_of_the_image_of_the_overlay(overlay: str) -> None:
    assert {i["metadata"].get("namespace") for i in objects(overlay) if i["kind"] != "Namespace"} == {
        "pvstream"
    }
    (image,) = {container["image"] for _, container in containers(overlay)}
    (named,) = yaml.safe_load((K8S / overlay / "kustomization.yaml").read_text(encoding="utf-8"))["images"]
    assert image == f"{named['newName']}:{named['newTag']}"
