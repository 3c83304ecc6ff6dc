"""Releases announced by the commands, with a broker and without one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from models.releases import store as releases_store
from models.releases.manifest import Release
from models.releases.store import bundled
from streams.broker.consumer import running_client
from streams.broker.embedded import EmbeddedBroker
from streams.records import Announcement
from streams.rollout import announcements
from streams.rollout.reload import load_at_start
from streams.settings import Settings
from streams.topics import RELEASES
from tests.streams.cli.command_line import NOWHERE, Answer, CommandLine, closed_port
from tests.streams.conftest import Keys
from tests.streams.rollout.reloading import WHEN, announcement
from tests.variants import variant

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with EmbeddedBroker() as embedded:
        yield f"kafka://{embedded.bootstrap}"


def listed(pvstream: CommandLine, task: str) -> dict[str, bool]:
    """Version to whether it is live."""
    rows = orjson.loads(pvstream("releases", "--json").out)
    return {row["version"]: row["live"] for row in rows if row["task"] == task}


def test_a_release_that_cannot_be_announced_gives_a_one_line_error(
    broker: str, release: Release, own: Path, tmp_path: Path, pvstream: CommandLine
) -> None:
    pvstream.set("PV_BROKER", broker)
    live = bundled("summarization").name
    (own / "extra.tsv").write_bytes(b"")
    store = tmp_path / "store"
    for arguments, message in [
        (["rollback", "summarization", live], f"summarization {live} is live already"),
        (["rollback", "summarization", NOWHERE], f"summarization {NOWHERE} is not in the store {store}"),
        (["announce", str(own)], f"{own.name}: extra.tsv is not declared in the manifest"),
        (["announce", str(bundled("summarization"))], f"summarization {live} is live already"),
        (
            ["announce", str(release.path)],
            f"summarization {release.version} was not compared with {live}: use --data or --force",
        ),
    ]:
        answer = pvstream(*arguments)
        assert answer.code == 1, arguments
        assert answer.error_line.startswith(f"error: {message}"), arguments
    assert not store.exists()
    assert listed(pvstream, "summarization") == {live: True}


def test_a_release_is_announced_and_rolled_back(
    broker: str, release: Release, tmp_path: Path, pvstream: CommandLine
) -> None:
    pvstream.set("PV_BROKER", broker)
    before = bundled("summarization").name
    answer = pvstream("announce", release.path, "--force")
    assert answer.out == f"summarization {release.version} is announced in place of {before}, forced\n"
    assert answer.code == 0
    assert (tmp_path / "store/summarization" / release.version).is_dir()
    assert listed(pvstream, "summarization") == {before: False, release.version: True}
    answer = pvstream("rollback", "summarization", before)
    assert answer.out == f"summarization {before} is announced in place of {release.version}\n"
    assert answer.code == 0
    assert listed(pvstream, "summarization") == {before: True, release.version: False}


@pytest.mark.parametrize("signed", [False, True])
def test_the_bundled_release_is_found_after_an_upgrade_to_another_one(
    signed: bool, own: Path, keys: Keys, pvstream: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers would run the release instead from which an operator went back."""
    settings = Settings(store=str(own.parent / "store"), state=own.parent / "of workers")
    private: list[str | Path] = []
    if signed:
        private = ["--key", keys.private]
        assert pvstream("sign", own, *private).code == 0
        pvstream.set("PV_RELEASE_KEY", str(keys.public))
        settings = settings.model_copy(update={"release_key": keys.public})
    version = bundled("summarization").name
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        assert pvstream("announce", own, "--force", *private).code == 0
        assert pvstream("rollback", "summarization", version, *private).code == 0
    later = variant("summarization", own.parent / "later", "of the next version")
    monkeypatch.setattr(releases_store, "BUNDLED", own.parent / "later")
    assert bundled("summarization").name == later.version
    handle = load_at_start("summarization", announcement(version, own.name), settings)
    assert (handle.current.version, handle.refused) == (version, None)


@pytest.mark.usefixtures("few_posts")
def test_a_tagger_passes_the_gate_without_data_by_its_events_in_the_held_out_posts(
    broker: str, tmp_path: Path, pvstream: CommandLine
) -> None:
    pvstream.set("PV_BROKER", broker)
    before = bundled("ner").name
    equal = variant("ner", tmp_path, "another")
    answer = pvstream("announce", equal.path)
    assert answer.code == 0, answer.err
    assert "coded_f1 on teaching corpus, held-out posts, synthetic, " in answer.out
    assert "difference +0.0000 (95 % +0.0000 to +0.0000)" in answer.out
    assert answer.out.endswith(f"ner {equal.version} is announced in place of {before}\n")
    # Without --data a forced one is not compared at all.
    answer = pvstream("announce", variant("ner", tmp_path, "a third").path, "--force")
    assert (answer.code, "coded_f1" in answer.out) == (0, False)


def send_again(broker: str, position: int) -> None:
    """Writes a message of the topic once more, as whoever may write to the topic can."""

    async def copy() -> None:
        settings = Settings(broker=broker)
        async with announcements.reader(settings) as consumer:
            async with asyncio.timeout(120):
                messages = [await anext(consumer) for _ in range(position + 1)]
        async with running_client(AIOKafkaProducer(**settings.client())) as producer:
            old = messages[position]
            await producer.send_and_wait(
                RELEASES.name, key=old.key, value=old.value, headers=list(old.headers)
            )

    asyncio.run(copy())


def expect_refusals_without_the_key(pvstream: CommandLine, own: Path, stranger: Path) -> None:
    """Of each command that announces, without a key and with the private key of a stranger."""
    stranger.write_bytes(
        Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    for arguments in (
        ["announce", own, "--force"],
        ["rollback", "summarization", bundled("summarization").name],
    ):
        assert "must be signed: use --key" in pvstream(*arguments).error_line
        assert "is not the private key of" in pvstream(*arguments, "--key", stranger).error_line


def announce_unsigned(broker: str, version: str) -> None:
    """Writes an announcement of a release for summarization with a high number, and without a signature."""
    forged = Announcement(
        task="summarization", version=version, reason="publish", announced_at=WHEN, sequence=9
    )
    asyncio.run(announcements.send(Settings(broker=broker), forged.key, forged))


def test_where_signatures_are_required_only_signed_announcements_in_their_order_are_followed(
    own: Path, keys: Keys, tmp_path: Path, pvstream: CommandLine, state: Path
) -> None:
    before = bundled("summarization").name
    with EmbeddedBroker() as embedded:
        broker = f"kafka://{embedded.bootstrap}"
        pvstream.set("PV_BROKER", broker)
        pvstream.set("PV_RELEASE_KEY", str(keys.public))
        pvstream("sign", own, "--key", keys.private)
        expect_refusals_without_the_key(pvstream, own, tmp_path / "stranger.pem")

        assert pvstream("announce", own, "--force", "--key", keys.private).code == 0
        assert listed(pvstream, "summarization") == {before: False, own.name: True}
        assert pvstream("rollback", "summarization", before, "--key", keys.private).code == 0
        send_again(broker, 0)
        assert listed(pvstream, "summarization")[before], "the first one is sent again"
        announce_unsigned(broker, own.name)
        assert listed(pvstream, "summarization")[before]
        assert pvstream("rollback", "summarization", own.name, "--key", keys.private).code == 0
        assert listed(pvstream, "summarization")[own.name]
    numbers = {path.stem: orjson.loads(orjson.loads(path.read_bytes())["value"])["sequence"]
               for path in state.rglob("*.json") if path.parent.parent.name == "announcements"}  # fmt: skip
    assert numbers == {"summarization": 3}


# Without a broker; in a separate process, so that all of its output can be checked.


def run_without_broker(*arguments: object) -> Answer:
    environment = {**os.environ, "PV_BROKER": f"kafka://127.0.0.1:{closed_port()}", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "streams", *map(str, arguments)],
        capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["rollback", "summarization", NOWHERE], id="rollback"),
        pytest.param(["releases"], id="releases"),
    ],
)
def test_an_absent_broker_gives_one_line_error(arguments: list[str], environment: pytest.MonkeyPatch) -> None:
    answer = run_without_broker(*arguments)
    assert answer.code == 1
    assert "KafkaConnectionError" in answer.error_line
    assert "Unclosed" not in answer.err
