"""What the commands share: the two consoles, and the settings with their mistakes told in one line."""

from __future__ import annotations

from typing import Any

import typer
from pydantic import ValidationError
from rich.console import Console

out = Console()
err = Console(stderr=True)


def settings() -> Any:
    """The settings from the environment; a mistake there ends in one line."""
    from streams.settings import Settings  # noqa: PLC0415

    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "PV_" + "_".join(str(part) for part in first["loc"]).upper()
        raise typer.BadParameter(f"{name}: {first['msg']}") from None


def real_broker() -> Any:
    """The settings, with a broker that other processes can reach."""
    chosen = settings()
    if chosen.broker == "embedded":
        raise typer.BadParameter(
            "set PV_BROKER=kafka://host:port; `pvstream up` prints the address of its embedded broker"
        )
    return chosen
