"""Commands about the topics: their state on the broker, and the schema of their records."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streams.cli.arguments import known_topic
from streams.cli.groups import DATA, example
from streams.cli.terminal import broker_settings, out, progress_bar

if TYPE_CHECKING:
    from streams.settings import Settings

app = typer.Typer()


@app.command(rich_help_panel=DATA, epilog=example("topics --create"))
def topics(
    create: Annotated[bool, typer.Option("--create", help="create the missing topics")] = False,
) -> None:
    """Lists the topics with their settings and their state on the broker, and every difference between them.

    The exit code is 1 if the pipeline cannot work with one of the topics.
    """
    from streams.cli.topic_output import run_topics

    works = asyncio.run(run_topics(out, broker_settings(), create=create))
    raise typer.Exit(0 if works else 1)


@app.command(rich_help_panel=DATA, epilog=example("forget post-17 post-18"))
def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(help="ids of reports; - reads them from standard input, one a line")
    ] = None,
    author: Annotated[
        list[str] | None, typer.Option(help="all reports of the author with this hash; repeatable")
    ] = None,
    handles: Annotated[
        Path | None, typer.Option(help="file of handles, one a line: all reports of these authors")
    ] = None,
) -> None:
    """Deletes reports: each stage passes the deletion on, up to the final records.

    --handles needs PV_AUTHOR_KEY. It is a file because other users of the machine can see arguments.
    """
    from streams.intake import forget as forgetting

    settings = broker_settings()
    read = [line for item in ids or () for line in (_standard_input() if item == "-" else [item])]
    chosen, hashes = {id_ for id_ in read if id_.strip()}, _hashes(settings, author, handles)
    if not all(map(_is_text, chosen)):
        raise typer.BadParameter("the ids must be in UTF-8; nothing was deleted", param_hint="IDS")
    if not chosen and not hashes:
        raise typer.BadParameter("needs ids, --author or --handles")
    asyncio.run(forgetting.forget(settings, chosen))
    with progress_bar("searching the authors' reports") as progress:
        reports = len(asyncio.run(forgetting.forget_authors(settings, hashes, progress)))
    out.print(
        f"{len(chosen)} ids and {reports} reports of {len(hashes)} hashes: deletions sent and confirmed"
    )


def _standard_input() -> list[str]:
    """Lines of standard input, without the byte order mark of Windows; raises typer.BadParameter."""
    try:
        return sys.stdin.read().removeprefix("\ufeff").splitlines()
    except UnicodeDecodeError:
        raise typer.BadParameter("the ids must be in UTF-8; nothing was deleted", param_hint="IDS") from None


def _is_text(id_: str) -> bool:
    """Whether an id was in UTF-8: of other bytes the system makes halves of surrogate pairs."""
    return not any("\ud800" <= character <= "\udfff" for character in id_)


def _hashes(settings: Settings, given: list[str] | None, handles: Path | None) -> set[str]:
    """The authors' hashes; raises typer.BadParameter, which quotes neither a hash nor a handle."""
    from streams.intake.authors import HASH, AuthorKeys

    if not all(HASH.fullmatch(hash_) for hash_ in given or ()):
        raise typer.BadParameter(
            "a hash has 64 hexadecimal digits; give handles in a file", param_hint="--author"
        )
    if handles is None:
        return set(given or ())
    keys = AuthorKeys.of(settings)
    if not keys.present and not keys.former:
        raise typer.BadParameter("needs PV_AUTHOR_KEY or PV_AUTHOR_KEY_FILE", param_hint="--handles")
    try:
        names = [line for line in handles.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{handles}: {type(error).__name__}", param_hint="--handles") from None
    return {hash_ for name in names for hash_ in keys.hashes(name)} | set(given or ())


@app.command(rich_help_panel=DATA, epilog=example("schema events"))
def schema(
    topic: Annotated[str | None, typer.Argument(help="one topic; by default all topics")] = None,
) -> None:
    """Prints the JSON Schema of the records of one topic, or of every topic."""
    from streams import codec
    from streams.topics import TOPICS

    chosen = [known_topic(topic)] if topic else [t for t in TOPICS if t.record is not None]
    schemas = {t.name: codec.schema(t.record) for t in chosen if t.record is not None}
    schemas |= {t.name: {"anyOf": [*map(codec.schema, t.kinds)]} for t in chosen if t.others}
    sys.stdout.buffer.write(orjson.dumps(schemas, option=orjson.OPT_INDENT_2) + b"\n")
