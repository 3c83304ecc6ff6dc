"""What `pvstream dead` prints. What a sender wrote (key aside) is printed only when it is asked for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from streams.cli.terminal import Table, print_json, progress_bar, say
from streams.dead_letters.browse import DESCRIBED, Letters, browse, describe, printable, read_letter
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import CONSUMED


async def run_counts(console: Console, settings: Settings, *, json: bool) -> None:
    """Prints for each topic of dead letters how many it holds, by stage and reason."""
    read = []
    for topic in CONSUMED:
        with progress_bar(f"reading {topic.dead_letters.name}") as progress:
            read.append(await browse(settings, topic.dead_letters.name, progress=progress))
    if json:
        print_json([row for letters in read for row in _rows(letters)], console)
    else:
        console.print(_table([row for letters in read for row in _rows(letters)]))


async def run_topic(
    console: Console, settings: Settings, topic: str, *, reason: str | None, limit: int, json: bool
) -> None:
    """Prints the counts of one topic and its newest letters, the newest last."""
    with progress_bar(f"reading {topic}") as progress:
        letters = await browse(settings, topic, reason=reason, limit=limit, progress=progress)
    if json:
        newest = [asdict(letter) for letter in letters.newest]
        print_json({"counts": _rows(letters), "letters": newest}, console)
        return
    console.print(_table(_rows(letters)))
    for letter in letters.newest:
        written = f"{letter.written_at:%Y-%m-%d %H:%M:%S}" if letter.written_at else "?"
        back = f", sent back {letter.attempts} times before" if letter.attempts else ""
        why = f"{letter.stage} {letter.reason}, {letter.source}{back}: {letter.detail}"
        line = f"{letter.partition} {letter.offset}  {written}  {why}"
        say(line, console)


async def run_letter(
    console: Console, settings: Settings, place: tuple[str, int, int], *, text: bool, json: bool
) -> None:
    """Prints one letter: its key and headers, and with `text` also its value and the sender's own headers."""
    letter = await read_letter(settings, *place)
    content = letter_content(letter, text=text)
    if json:
        print_json(content, console)
        return
    for name, value in content.items():
        lines = value.items() if isinstance(value, dict) else [(name, value)]
        for label, line in lines:
            say(f"{printable(label)}: {line}", console)
    if not text:
        console.print(
            "The value and the sender's own headers are printed with --text.", style="dim", highlight=False
        )


def letter_content(letter: Inbound, *, text: bool) -> dict[str, Any]:
    """One letter as it is printed; without `text` there is nothing of the sender's but the key."""
    described = describe(letter)
    sent = [(name, value) for name, value in letter.headers if name not in DESCRIBED]
    content: dict[str, Any] = {
        "place": f"{letter.topic}/{letter.partition}@{letter.offset}",
        "written": described.written_at.isoformat() if described.written_at else None,
        "key": None if letter.key is None else _decoded(letter.key),
        "bytes": described.bytes,
        "headers": {n: _decoded(v) for n, v in letter.headers if n in DESCRIBED and v is not None},
    }
    if text:
        content["own_headers"] = {printable(name): _decoded(value or b"") for name, value in sent}
        content["value"] = None if letter.value is None else _decoded(letter.value)
    return content


def _decoded(value: bytes) -> str:
    return printable(value.decode(errors="backslashreplace"))


def _rows(letters: Letters) -> list[dict[str, Any]]:
    return [
        {
            "topic": letters.topic,
            "stage": kind[0],
            "reason": kind[1],
            "letters": n,
            "waiting": letters.waiting[kind],
        }
        for kind, n in sorted(letters.counts.items())
    ]


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("topic", "stage", "reason", "letters", "not sent back")
    for row in rows:
        table.add_row(*(Text(str(value)) for value in row.values()))
    if not rows:
        table.add_row("no dead letters")
    return table
