"""Refuses environment variables that begin with PV_ and are not settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import typer

#: Variables of the test suite, which may be set in the shell that runs a command.
OF_TESTS = frozenset({"PV_TEST_DATA", "PV_TEST_DEVICE", "PV_REQUIRE_KAFKA", "PV_CHAOS_SEED", "PV_LONG_TESTS"})
PREFIX, SERVICE_HOST = "PV_", "_SERVICE_HOST"


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises typer.BadParameter with every variable that begins with PV_ and is not a setting."""
    from streams.settings import Settings

    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    names = {name for name in environment if name.upper().startswith(PREFIX)}
    unknown = sorted(n for n in names - OF_TESTS - _service_links(names) if n.upper() not in known)
    if unknown:
        raise typer.BadParameter("; ".join(_complaint(name, known) for name in unknown))


def _complaint(name: str, known: Iterable[str]) -> str:
    # Without what all have in common, which would make any two of them similar.
    settings = [setting.removeprefix(PREFIX) for setting in known]
    nearest = get_close_matches(name.upper().removeprefix(PREFIX), settings, n=1)
    hint = f"; did you mean {PREFIX}{nearest[0]}?" if nearest else ""
    return f"{name} is not a setting{hint}"


def _service_links(names: Iterable[str]) -> set[str]:
    """The variables that Kubernetes sets for a Service `pv-...`, such as PV_WORKER_SERVICE_HOST."""
    services = [name.removesuffix(SERVICE_HOST) for name in names if name.endswith(SERVICE_HOST)]
    starts = tuple(start for service in services for start in (f"{service}_SERVICE_", f"{service}_PORT"))
    return {name for name in names if name.startswith(starts)} if starts else set()
