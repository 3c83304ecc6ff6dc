"""The manifests of deploy/k8s as `kubectl kustomize` builds them, and their check by Kubernetes' models."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from typing import Any

import yaml

from tests.deploy.test_deploy import ROOT

K8S = ROOT / "deploy/k8s"
#: An object of Kubernetes, as YAML gives it.
Object = dict[str, Any]


@cache
def build(overlay: str) -> str:
    """What `kubectl kustomize` makes of an overlay; fails the test where it refuses."""
    command = ["kubectl", "kustomize", str(K8S / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(overlay: str, kind: str | None = None) -> list[Object]:
    """The objects of an overlay, all or those of a kind."""
    found: list[Object] = list(yaml.load_all(build(overlay), yaml.CSafeLoader))
    return [item for item in found if kind in (None, item["kind"])]


def by_name(overlay: str, kind: str) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in objects(overlay, kind)}


def is_of_kubernetes(item: Object) -> bool:
    """Whether Kubernetes itself defines the kind, and not an operator."""
    return re.fullmatch(r"v1|(apps|batch|policy|networking\.k8s\.io)/v1", item["apiVersion"]) is not None


def validate(item: Object) -> None:
    """Raises pydantic's ValidationError for a wrong type, a missing field and a name that is unknown."""
    from kubernetes.client import models  # noqa: PLC0415  half a second to import

    getattr(models, f"V1{item['kind']}").model_validate(item)
