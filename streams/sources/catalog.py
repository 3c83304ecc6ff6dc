"""Makes the sources that a user names, with their sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from models.drugs import BUNDLED
from streams.agents.pipeline import FINAL_TOPICS
from streams.pipe import standard_input
from streams.settings import Settings
from streams.sources.protocols import bluesky, mastodon, ndjson, rss, x, x_compliance, x_rules
from streams.sources.protocols.feed_reader import FeedReader
from streams.sources.source import Source, SourceFailed
from streams.sources.sweep import HOUR, LEAST, Sweep, kept_on
from streams.topics import Topic, by_name

NAMES = ("bluesky", "x", "mastodon", "rss", "ndjson")
#: X's terms give 24 hours for a deletion, and a job itself may take hours.
SWEEP_HOURS = 18.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may choose for each protocol; empty stands for its default."""

    topic: str = "posts"
    bluesky_servers: Sequence[str] = ()
    mastodon_servers: Sequence[str] = ()
    mastodon_local: bool = False
    x_server: str = x.SERVER
    x_rules: Path | None = None
    """None: the names of the drug lexicon."""
    x_backfill: int = 0
    sweep: float = SWEEP_HOURS * HOUR
    """Seconds between two checks for deleted posts, for sources that do not report deletions themselves."""
    feeds: Sequence[str] = ()
    every: float = 900.0
    """Seconds between two requests for a feed."""
    path: Path | None = None
    """None: standard input."""
    fields: Mapping[str, str] = field(default_factory=dict)
    follow: bool = True


def terms(names: Sequence[str]) -> list[str]:
    """Notes for the user on the terms of use of the sources."""
    return [x.TERMS] if "x" in names else []


def make_sources(names: Sequence[str], options: Options, settings: Settings) -> list[Source]:
    """The sources of that names; raises SourceFailed where something is missing or wrong."""
    made: list[Source] = []
    for name in dict.fromkeys(names):
        match name:
            case "bluesky":
                servers = _addresses("bluesky", options.bluesky_servers, "wss", "ws") or bluesky.SERVERS
                made.append(bluesky.Bluesky(servers=servers))
            case "x":
                made += _x(options, settings)
            case "mastodon":
                made += _mastodon(options, settings)
            case "rss":
                made += _rss(options)
            case "ndjson":
                pipe = standard_input() if options.path is None else None
                made.append(
                    ndjson.Ndjson(path=options.path, pipe=pipe, fields=options.fields, follow=options.follow)
                )
            case _:
                raise SourceFailed(f"{name!r} is none of {', '.join(NAMES)}")
    return made


def _x(options: Options, settings: Settings) -> list[Source]:
    token = settings.x_token.get_secret_value()
    if not token:
        raise SourceFailed("the source x needs a bearer token in PV_X_TOKEN_FILE")
    rules = x_rules.from_file(options.x_rules) if options.x_rules else x_rules.from_lexicon(BUNDLED)
    server = _addresses("x", [options.x_server])[0].rstrip("/")
    sweep = Sweep(
        name="x-deletions",
        key="x/deletions",
        prefix=x.PREFIX,
        kept=kept_on(settings, *_kept(options.topic)),
        check=x_compliance.Compliance(token=token, server=server).check,
        every=options.sweep,
        least=_least(options),
        backoff=x.BACKOFF,
    )
    return [x.X(token=token, rules=rules, server=server, backfill=options.x_backfill), sweep]


def _mastodon(options: Options, settings: Settings) -> list[Source]:
    if not options.mastodon_servers:
        raise SourceFailed("the source mastodon needs a server, such as https://mastodon.social")
    made: list[Source] = []
    for i, server in enumerate(_addresses("mastodon", options.mastodon_servers)):
        stream = mastodon.Mastodon(
            server=server.rstrip("/"),
            token=settings.mastodon_token.get_secret_value(),
            local=options.mastodon_local,
            name=_numbered("mastodon", i),
        )
        sweep = Sweep(
            name=f"{stream.name}-deletions",
            key=f"{stream.key}/deletions",
            prefix=stream.prefix,
            kept=kept_on(settings, *_kept(options.topic)),
            check=stream.check,
            every=options.sweep,
            least=_least(options),
            due=stream.missed,
        )
        made += [stream, sweep]
    return made


def _rss(options: Options) -> list[Source]:
    if not options.feeds:
        raise SourceFailed("the source rss needs at least one feed")
    reader = FeedReader()
    return [
        rss.Rss(url=url, name=_numbered("rss", i), every=options.every, reader=reader)
        for i, url in enumerate(dict.fromkeys(_addresses("rss", options.feeds)))
    ]


def _addresses(source: str, given: Sequence[str], *schemes: str) -> Sequence[str]:
    """The addresses. Raises SourceFailed, which quotes none, where one has no scheme or no host: it can never
    be reached, and the source would try again for ever.
    """
    for address in given:
        try:
            parts = urlsplit(address)
            host = (parts.hostname or "").encode("idna")
            usable = parts.scheme in ("https", "http", *schemes) and host and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise SourceFailed(
                f"an address for the source {source} is none: it begins as https://example.org"
            )
    return given


def _kept(topic: str) -> tuple[Topic[object], ...]:
    """Where reports of the input topic are kept: there and, for longer, as final records."""
    return (*FINAL_TOPICS[topic], by_name(topic))


def _least(options: Options) -> float:
    return min(LEAST, options.sweep / 2)


def _numbered(name: str, i: int) -> str:
    return f"{name}-{i + 1}" if i else name
