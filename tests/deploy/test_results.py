"""Checks the store, the page, the signals and the sources in Compose and Kubernetes."""

from __future__ import annotations

import ipaddress
import shutil
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
import typer

from streams.__main__ import app
from tests.deploy import manifests
from tests.deploy.manifests import K8S, Object, by_name, is_of_kubernetes, objects, validate
from tests.deploy.test_deploy import compose, load, seconds
from tests.deploy.test_kubernetes import containers, overlays, pod_of, selects, settings_of

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
COMMANDS = {"store": ["store"], "page": ["web"], "signals": ["signals", "--publish", "--every", "3600"]}


def parse(arguments: list[str]) -> None:
    """Raises click's UsageError where pvstream has no such command or option, or wants more."""
    main: Any = typer.main.get_command(app)
    context = main.context_class(main)
    name, command, rest = main.resolve_command(context, list(arguments))
    command.make_context(name, rest, parent=context)


def compose_command(name: str) -> list[str]:
    command = compose()[name]["command"]
    if isinstance(command, str):
        command = command.replace("${SOURCES:-bluesky}", "bluesky").split()
    assert isinstance(command, list)
    return command


def test_every_command_of_compose_is_one_of_pvstream() -> None:
    own = [name for name, service in compose().items() if service["image"] == "pvstream:local"]
    assert {"topics", "source", *COMMANDS} < set(own)
    for name in own:
        parse(compose_command(name))
    for name, arguments in COMMANDS.items():
        assert compose_command(name) == arguments


def test_in_compose_one_service_writes_the_database_and_all_three_have_its_volume() -> None:
    services = compose()
    database = Path(services["store"]["environment"]["PV_DATABASE"])
    assert "results" in load("docker-compose.yml")["volumes"]
    assert [name for name in services if services[name].get("command") == ["store"]] == ["store"]
    for name in COMMANDS:
        service = services[name]
        assert service["environment"]["PV_DATABASE"] == str(database)
        assert f"results:{database.parent}" in service["volumes"]
        assert service["depends_on"]["topics"]["condition"] == "service_completed_successfully"
        assert (service["cap_drop"], service["restart"]) == (["ALL"], "unless-stopped")
        # The health check of the image asks a worker's address.
        assert service["healthcheck"] == {"disable": True} or name == "page"
    assert seconds(services["store"]["stop_grace_period"]) >= 30


def test_in_compose_the_token_of_the_page_is_a_file_that_no_other_service_has() -> None:
    services = compose()
    assert load("docker-compose.yml")["secrets"] == {"web-token": {"environment": "WEB_TOKEN"}}
    assert [name for name, service in services.items() if "secrets" in service] == ["page"]
    environment = services["page"]["environment"]
    assert environment["PV_WEB_TOKEN_FILE"] == f"/run/secrets/{services['page']['secrets'][0]}"
    port = environment["PV_WEB_PORT"]
    assert services["page"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"http://127.0.0.1:{port}/login" in services["page"]["healthcheck"]["test"][-1]
    state = environment["PV_STATE"]
    assert f"state:{state}" in services["page"]["volumes"]


def named(overlay: str, name: str) -> Object:
    return by_name(overlay, "Deployment")[f"pvstream-{name}"]


def selected(overlay: str, selector: Object) -> list[str]:
    """The components of the Deployments whose pods a selector chooses."""
    labels = [d["spec"]["template"]["metadata"]["labels"] for d in objects(overlay, "Deployment")]
    return [one["app.kubernetes.io/component"] for one in labels if selects(selector["matchLabels"], one)]


@needs_kubectl
@overlays
@pytest.mark.parametrize("name", COMMANDS)
def test_kubernetes_runs_each_with_the_command_of_compose_once(overlay: str, name: str) -> None:
    item = named(overlay, name)
    (container,) = pod_of(item)["containers"]
    assert container["args"] == COMMANDS[name]
    parse(container["args"])
    assert (item["spec"]["replicas"], item["spec"]["strategy"]) == (1, {"type": "Recreate"})
    labels = item["spec"]["template"]["metadata"]["labels"]
    assert selected(overlay, item["spec"]["selector"]) == [name]
    # Prometheus has nothing to scrape there, so there would be a red target.
    assert not selects(by_name(overlay, "Service")["pvstream"]["spec"]["selector"], labels)


@needs_kubectl
@overlays
def test_the_database_is_a_claim_of_the_three_or_a_server(overlay: str) -> None:
    database = settings_of(overlay)["PV_DATABASE"]
    has_file = overlay == "small"
    assert database.startswith("postgresql://") != has_file
    assert ("pvstream-results" in by_name(overlay, "PersistentVolumeClaim")) == has_file
    for name in COMMANDS:
        pod = pod_of(named(overlay, name))
        claims = [
            v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v
        ]
        mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
        assert mounts.keys() == {v["name"] for v in pod["volumes"]}
        assert ("pvstream-results" in claims) == has_file
        assert not has_file or mounts["results"] == str(Path(database).parent)


@needs_kubectl
@overlays
def test_only_the_ingress_controller_may_connect_to_the_page(overlay: str) -> None:
    pod = pod_of(named(overlay, "page"))
    (container,) = pod["containers"]
    variables = {v["name"]: v["value"] for v in container["env"]}
    assert container["ports"] == [{"name": "page", "containerPort": int(variables["PV_WEB_PORT"])}]
    assert variables["PV_WEB_TOKEN_FILE"] == "/etc/pvstream/secrets/web-token"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/login", "port": "page"}
    service = by_name(overlay, "Service")["pvstream-page"]["spec"]
    labels = named(overlay, "page")["spec"]["template"]["metadata"]["labels"]
    assert selects(service["selector"], labels)
    assert [p["targetPort"] for p in service["ports"]] == ["page"]
    # The ports that policies open for others have another name.
    for name, policy in by_name(overlay, "NetworkPolicy").items():
        for rule in policy["spec"].get("ingress", ()):
            opened = {port["port"] for port in rule["ports"]}
            assert opened == ({"page"} if name == "pvstream-page" else {"http"})
    (rule,) = by_name(overlay, "NetworkPolicy")["pvstream-page"]["spec"]["ingress"]
    (place,) = rule["from"]
    assert place == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}


@needs_kubectl
def test_the_three_may_connect_to_the_server_of_the_database_and_nobody_else() -> None:
    spec = by_name("cluster", "NetworkPolicy")["pvstream-database"]["spec"]
    assert spec["egress"] == [{"ports": [{"protocol": "TCP", "port": 5432}]}]
    assert set(selected("cluster", spec["podSelector"])) == COMMANDS.keys()
    assert "pvstream-database" not in by_name("small", "NetworkPolicy")


@pytest.fixture(params=["small", "cluster"])
def with_source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """An overlay in which the comment signs of the component are removed."""
    copied = tmp_path / "k8s"
    shutil.copytree(K8S, copied)
    path = copied / request.param / "kustomization.yaml"
    text = path.read_text(encoding="utf-8")
    comment = "# Live posts: components: [../source]\n"
    assert text.count(comment) == 1
    path.write_text(text.replace(comment, "components: [../source]\n"), encoding="utf-8")
    monkeypatch.setattr(manifests, "K8S", copied)
    manifests.build.cache_clear()
    yield str(request.param)
    manifests.build.cache_clear()


@needs_kubectl
def test_a_source_is_deployed_where_an_overlay_asks_for_it(with_source: str) -> None:
    item = named(with_source, "source")
    (container,) = pod_of(item)["containers"]
    parse(container["args"])
    for one in objects(with_source):
        if is_of_kubernetes(one):
            validate(one)
    assert container["livenessProbe"]["httpGet"] == {"path": "/health/live", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/health/ready", "port": "http"}
    assert pod_of(item)["terminationGracePeriodSeconds"] > float(settings_of(with_source)["PV_GRACE"])
    for pod, one in containers(with_source):
        assert pod["securityContext"]["runAsNonRoot"]
        assert one["securityContext"]["readOnlyRootFilesystem"]
        assert [v["secret"]["optional"] for v in pod["volumes"] if "secret" in v] == [with_source == "small"]
    labels = item["spec"]["template"]["metadata"]["labels"]
    service = by_name(with_source, "Service")["pvstream-source"]
    monitor = by_name(with_source, "ServiceMonitor")["pvstream-source"]["spec"]
    assert selects(service["spec"]["selector"], labels)
    assert selects(monitor["selector"]["matchLabels"], service["metadata"]["labels"])
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "pvstream-sources"
    assert {i["metadata"].get("namespace") for i in objects(with_source) if i["kind"] != "Namespace"} == {
        "pvstream"
    }


def blocks(spec: Object) -> list[dict[str, Any]]:
    (rule,) = spec["egress"]
    assert {port["port"] for port in rule["ports"]} == {80, 443}
    return [place["ipBlock"] for place in rule["to"]]


@needs_kubectl
def test_a_source_connects_to_the_web_and_to_nothing_private(with_source: str) -> None:
    spec = by_name(with_source, "NetworkPolicy")["pvstream-source"]["spec"]
    assert selected(with_source, spec["podSelector"]) == ["source"]

    def is_in(ip: IPv4Address | IPv6Address, networks: Iterable[str]) -> bool:
        return any(ip in ipaddress.ip_network(network) for network in networks)

    def reaches(address: str) -> bool:
        ip = ipaddress.ip_address(address)
        return any(is_in(ip, [b["cidr"]]) and not is_in(ip, b["except"]) for b in blocks(spec))

    assert all(map(reaches, ("8.8.8.8", "172.15.0.1", "192.167.1.1", "2606:4700::1111")))
    private = (
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fc00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"),
        "2002:a00:1::",
    )
    assert not any(map(reaches, private))
