"""The checks of `pvstream check`, their order, and the table that it prints."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict

import typer
from aiokafka.errors import KafkaError
from rich.console import Console
from rich.text import Text

from models.releases.manifest import ReleaseError
from streams.cli.operations import local_checks as local
from streams.cli.operations.broker_checks import check_brokers
from streams.cli.operations.local_checks import Finding, Grade
from streams.cli.terminal import Table, err, print_json, read_settings
from streams.records import Announcement
from streams.rollout.announcements import read_announcements
from streams.settings import Settings

_STYLES: dict[Grade, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


async def findings(*, load: bool) -> AsyncIterator[Finding]:
    """All findings; what depends on something that failed is left out."""
    try:
        settings = read_settings()
    except typer.BadParameter as error:
        yield Finding("settings", "fail", str(error), "see the table of settings in docs/operate.md")
        return
    all_ok = True
    for finding in local.check_settings(settings):
        all_ok = all_ok and finding.grade != "fail"
        yield finding
    if all_ok:
        async for finding in check_brokers(settings):
            all_ok = all_ok and finding.grade != "fail"
            yield finding
    for check in (local.check_store(settings), local.check_state(settings)):
        for finding in check:
            yield finding
    announced = await _announced(settings) if all_ok else {}
    if isinstance(announced, Finding):
        yield announced
        announced = {}
    async for finding in local.check_releases(settings, announced, load=load):
        yield finding
    for check in (local.check_device(settings), local.check_memory()):
        for finding in check:
            yield finding


async def _announced(settings: Settings) -> dict[str, Announcement] | Finding:
    try:
        return await read_announcements(settings)
    except (KafkaError, ReleaseError) as error:
        return Finding("announcements", "fail", str(error), "grant Read on the topic `releases`")


async def run_check(console: Console, *, load: bool, json: bool) -> bool:
    """Prints all findings; returns whether none of them is a failure."""
    with err.status("checking"):
        listed = [finding async for finding in findings(load=load)]
    if json:
        rows = [asdict(finding) for finding in listed]
        print_json(rows, console)
    else:
        table = Table("", "what", "found", "what to do")
        for finding in listed:
            table.add_row(
                Text(finding.grade, _STYLES[finding.grade]),
                *map(Text, (finding.what, finding.found, finding.fix)),
            )
        console.print(table)
    return all(finding.grade != "fail" for finding in listed)
