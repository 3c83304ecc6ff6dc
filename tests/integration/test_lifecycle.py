"""Models change while records flow, on a real broker: nothing is lost, nothing is mixed, and a person can see
what happened.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks import chaos, reload
from models.releases.manifest import Release
from models.releases.remote import deliver
from models.releases.store import bundled
from streams.records import Announcement
from streams.releases import announcements
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.variants import noisy_head, spoiled, variant

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SAMPLES = processes.ROOT / "streams/samples"
GOLD = processes.ROOT / "tests/data/gold/posts.jsonl"


class Site:
    """A broker with topics, a store, and commands that know both."""

    def __init__(self, kafka: LocalKafka, folder: Path) -> None:
        self.kafka = kafka
        self.folder = folder
        self.port = processes.free_port()
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}", store=str(folder / "store"))
        self.env = processes.environment(kafka.bootstrap, self.port, PV_STORE=self.settings.store)
        self.must("topics", "--create")

    def must(self, *arguments: str) -> str:
        done = processes.command(*arguments, env=self.env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def live(self, task: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/releases", timeout=10) as answer:
            return dict(json.loads(answer.read())[task])

    def wait_live(self, task: str, version: str) -> None:
        processes.wait_until(lambda: self.live(task)["version"] == version, f"{version} is live")

    def count(self, *topics: str) -> int:
        return processes.count(self.kafka.bootstrap, *topics)

    def posts(self) -> int:
        lines = (SAMPLES / "posts.jsonl").read_bytes().splitlines()
        records = [(orjson.loads(line)["id"].encode(), line) for line in lines]
        processes.produce(self.kafka.bootstrap, "posts", records)
        return len(records)


@pytest.fixture
def site(own_kafka: LocalKafka, tmp_path: Path) -> Iterator[Site]:
    yield Site(own_kafka, tmp_path)


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return spoiled("ner", tmp_path_factory.mktemp("worse"), "head.safetensors", noisy_head)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return variant("ner", tmp_path_factory.mktemp("other"), "the same model")


def test_kills_stops_and_publications_lose_nothing_and_mix_nothing(
    own_kafka: LocalKafka, tmp_path: Path
) -> None:
    seed = int(os.environ.get("PV_CHAOS_SEED", "3"))
    print(f"seed {seed}; a longer run: python -m benchmarks.chaos --rounds 20 --seed {seed}")
    plan = chaos.Plan(seed=seed, records=300, actions=4)
    results = chaos.run(own_kafka, range(2), plan, tmp_path, tmp_path)
    assert len(results) == 2
    for result in results:
        assert result.sound, asdict(result)
    assert sum(r.kills for r in results) > 0


def test_records_flow_on_while_models_are_swapped(own_kafka: LocalKafka, tmp_path: Path) -> None:
    plan = reload.Plan(swaps=10, pause=0.5, share=0.6, quiet=5)
    figures = reload.run(own_kafka, plan, tmp_path)
    print(asdict(figures))
    assert (figures.lost, figures.mixed, figures.repeated) == (0, 0, 0)
    assert figures.swaps == 10
    # A model that stayed would be 90 MB a swap; the exact figure is the benchmark's.
    assert figures.memory_bytes_per_swap < 20e6


def test_a_release_is_published_taken_shadowed_and_rolled_back(
    site: Site, other: Release, worse: Release
) -> None:
    first = bundled("ner").name
    with processes.running("worker", "--stage", "ner", env=site.env, log=site.folder / "1.log") as worker:
        processes.wait_until(lambda: processes.is_ready(site.port), "ready")
        assert site.live("ner")["version"] == first
        refused = processes.command("publish", str(other.path), env=site.env)
        assert refused.returncode == 1
        assert "was not compared" in refused.stderr
        site.must("publish", str(other.path), "--force")
        site.wait_live("ner", other.version)

        missing = "0123456789ab"
        announcement = Announcement(
            task="ner",
            version=missing,
            reason="publish",
            announced_at=datetime.now(UTC),
            previous=other.version,
        )
        asyncio.run(announcements.announce(site.settings, "ner", announcement))
        processes.wait_until(lambda: site.live("ner")["refused"] is not None, "a refusal")
        assert site.live("ner")["version"] == other.version, "the live model stays"

        site.must("shadow", "ner", str(worse.path), "--share", "0.5")
        processes.wait_until(lambda: (site.live("ner")["shadow"] or {}).get("loaded", False), "a shadow")
        n = site.posts()
        processes.wait_until(lambda: site.count("mentions") == n, "all outputs")
        chosen = [r for r in _records(site, "mentions") if chosen_for_half(r["id"])]
        processes.wait_until(lambda: site.count("mentions.shadow") == len(chosen), "the shadow's outputs")
        shadow = site.live("ner")["shadow"]
        assert shadow["agreed"] + shadow["differed"] == len(chosen)
        assert 0 < shadow["agreement"] < 1
        assert {r["releases"]["ner"] for r in _records(site, "mentions.shadow")} == {worse.version}
        assert {r["releases"]["ner"] for r in _records(site, "mentions")} == {other.version}
        site.must("shadow", "ner", "--stop")
        processes.wait_until(lambda: site.live("ner")["shadow"] is None, "no shadow any more")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0

    # What is announced cannot be had: a worker that starts now takes what was live before it.
    with processes.running("worker", "--stage", "ner", env=site.env, log=site.folder / "2.log"):
        processes.wait_until(lambda: processes.is_ready(site.port), "ready again")
        assert site.live("ner")["version"] == other.version
        assert site.live("ner")["refused"]["version"] == missing
        site.must("rollback", "ner", first)
        site.wait_live("ner", first)
        listed = json.loads(site.must("releases", "--json", "--worker", f"127.0.0.1:{site.port}"))
        live = [r for r in listed if r["task"] == "ner" and r["live"]]
        assert [(r["version"], r["where"], len(r["workers"])) for r in live] == [(first, "bundled", 1)]
        again = processes.command("rollback", "ner", first, env=site.env)
        assert (again.returncode, "live already" in again.stderr) == (1, True)


def test_a_broker_that_is_away_is_waited_for(site: Site) -> None:
    log = site.folder / "worker.log"
    with processes.running("worker", "--stage", "ner", env=site.env, log=log) as worker:
        processes.wait_until(lambda: processes.is_ready(site.port), "ready")
        site.posts()
        processes.wait_until(lambda: site.count("mentions") > 0, "a first output")
        site.kafka.kill()
        processes.wait_until(lambda: not processes.is_ready(site.port), "not ready any more", 15)
        assert "does not answer" in log.read_text()
        with pytest.raises(AssertionError):
            processes.wait_until(
                lambda: worker.poll() is not None or processes.is_ready(site.port), "never", 30
            )
        site.kafka.restart()
        processes.wait_until(lambda: processes.is_ready(site.port), "ready again", 60)
        ids = [f"more-{i}" for i in range(20)]
        more = [(id_.encode(), orjson.dumps({"id": id_, "text": "zoloft"})) for id_ in ids]
        processes.produce(site.kafka.bootstrap, "posts", more)
        wanted = {orjson.loads(line)["id"] for line in (SAMPLES / "posts.jsonl").read_bytes().splitlines()}
        wanted |= set(ids)
        processes.wait_until(lambda: {r["id"] for r in _records(site, "mentions")} == wanted, "every record")
        text = log.read_text()
        assert "answers again" in text
        assert len(text.splitlines()) < 80, "the clients' complaints do not drown it"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0


def test_a_replay_tells_a_worse_release_from_a_better_one(site: Site, worse: Release) -> None:
    site.posts()
    written = [site.folder / f"{name}.jsonl" for name in ("first", "second")]
    for path in written:
        site.must("replay", "posts", "--output", str(path))
    assert written[0].read_bytes() == written[1].read_bytes() != b""
    figures, page = site.folder / "replay.json", site.folder / "replay.html"
    site.must(
        "replay", "posts", "--compare", f"ner={worse.path}", "--against", str(GOLD), "--json", str(figures),
        "--html", str(page),
    )  # fmt: skip
    found = json.loads(figures.read_bytes())
    (micro,) = [s for s in found["scores"] if s["name"] == "mentions"]
    better, poorer = (v["value"] for v in micro["values"])
    assert better > poorer
    assert micro["difference"]["high"] < 0, "the interval of the difference excludes none"
    assert 0 < found["changed"] <= found["compared"]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_another_terminology_is_compared_by_what_it_codes_otherwise(site: Site) -> None:
    deliver_to = site.settings.store
    changed = _smaller_terminology(site.folder / "made")
    deliver(changed, deliver_to)
    with processes.running("up", env=site.env, log=site.folder / "up.log"):
        n = site.posts()
        processes.wait_until(lambda: site.count("events") == n, "all events")
    target = site.folder / "changes.json"
    old = bundled("normalization").name
    said = site.must("terminology", "diff", old, changed.version, "--json", str(target))
    changes = json.loads(target.read_bytes())
    assert "are coded differently" in said
    assert changes
    assert all((c["old_pt"], c["old_llt"]) != (c["new_pt"], c["new_llt"]) for c in changes)
    assert not any(c["new_pt"] == "Insomnia" for c in changes)
    assert any(c["old_pt"] == "Insomnia" for c in changes)


def _smaller_terminology(root: Path) -> Release:
    """The bundled terminology without the preferred term Insomnia and its phrases."""
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file, save_file  # noqa: PLC0415

    from models import terminology  # noqa: PLC0415
    from models.normalization import patient_phrases  # noqa: PLC0415
    from models.normalization.model import PHRASE_VECTORS, PHRASES  # noqa: PLC0415
    from tests.variants import rebuilt  # noqa: PLC0415

    table = terminology.load(bundled("normalization") / "terminology.tsv")
    kept = [i for i, term in enumerate(table) if term.pt != "Insomnia"]

    def change(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
        rows = "".join(f"{table[i].llt}\t{table[i].pt}\t{table[i].soc or '-'}\n" for i in kept)
        (folder / "terminology.tsv").write_text("llt\tpt\tsoc\n" + rows, encoding="utf-8")
        tensors.update({name: t[kept].contiguous() for name, t in tensors.items()})
        texts, pts = patient_phrases.read(folder / PHRASES)
        left = [i for i, pt in enumerate(pts) if pt != "Insomnia"]
        patient_phrases.write(folder / PHRASES, [texts[i] for i in left], [pts[i] for i in left])
        vectors = load_file(folder / PHRASE_VECTORS)
        save_file({name: t[left].contiguous() for name, t in vectors.items()}, folder / PHRASE_VECTORS)

    return rebuilt("normalization", root, "vectors.safetensors", change)


def chosen_for_half(id_: str) -> bool:
    from streams.releases.shadow import is_chosen  # noqa: PLC0415

    return is_chosen(id_, 0.5)


def _records(site: Site, topic: str) -> list[dict[str, Any]]:
    return [orjson.loads(m.value) for m in processes.read_all(site.kafka.bootstrap, topic)]
