"""Models change while records flow, on a real broker: nothing is lost, nothing is mixed, and a person can see
what happened.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.chaos import __main__ as chaos
from models import terminology
from models.normalization import patient_phrases
from models.normalization.model import PHRASE_VECTORS, PHRASES, TAUGHT, TAUGHT_VECTORS
from models.releases.manifest import Release
from models.releases.remote import deliver
from models.releases.store import bundled
from streams.records import Announcement
from streams.rollout import announcements
from streams.rollout.announcing import announce
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site, stop
from tests.tiny_releases import tiny_release
from tests.variants import MARKER, marked, noisy_head, rebuilt, spoiled

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: A version that no store has.
MISSING = "0123456789ab"
GOLD = processes.ROOT / "tests/data/gold/posts.jsonl"


@pytest.fixture(scope="module")
def other(tiny_bert: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A tiny tagger under another version than that of `tiny`."""
    return tiny_release("ner", tiny_bert, tmp_path_factory.mktemp("other"), kind="another")


def test_kills_stops_and_publications_lose_nothing_and_mix_nothing(
    kafka: LocalKafka, tmp_path: Path, tiny: dict[str, Release]
) -> None:
    seed = int(os.environ.get("PV_CHAOS_SEED", "3"))
    print(f"seed {seed}; a longer run: python -m benchmarks.chaos --rounds 20 --seed {seed}")
    # test_stale_outputs.py suspends workers.
    actions = [action for action in chaos.ACTIONS if action != chaos.SUSPEND]
    plan = chaos.Plan(
        seed=seed, records=1200, actions=4, chosen_from=actions, batch=4, original=tiny["ner"], forked=True
    )
    results = chaos.run(kafka, range(2), plan, tmp_path, tmp_path)
    assert len(results) == 2
    for result in results:
        assert result.sound, asdict(result)
    assert sum(r.kills for r in results) > 0


def test_records_flow_while_models_are_swapped(site: Site) -> None:
    releases = [marked(site.folder / "made", f"mark-{name}") for name in "ab"]
    marks = {r.version: f"mark-{name}" for r, name in zip(releases, "ab", strict=True)}
    memory: list[float] = []
    text = f"zoloft made me dizzy\n\n{MARKER}"
    records = [(f"r{i}".encode(), orjson.dumps({"id": f"r{i}", "text": text})) for i in range(300)]
    with site.running("worker", "--stage", "ner"):
        site.wait_ready()
        for i in range(11):
            # The records of the swap before are in work meanwhile; none comes before the first one.
            asyncio.run(announce(releases[i % 2].path, site.settings, None, force=True))
            site.wait_live("ner", releases[i % 2].version)
            memory.append(site.metric("process_resident_memory_bytes"))
            site.produce("posts", records[30 * i : 30 * i + 30])
        site.wait_count(len(records), "mentions")
    found = site.records("mentions")
    assert sorted(r["id"] for r in found) == sorted(f"r{i}" for i in range(300)), "lost or repeated"
    for record in found:
        names = {m["generic"] for m in record["mentions"] if m["text"].lower() == MARKER}
        assert names == {marks[record["releases"]["ner"]]}
    # A model that stays in memory would be 90 MB a swap.
    assert statistics.linear_regression(range(6), memory[5:]).slope < 20e6, memory


def test_releases_are_announced_and_rolled_back(site: Site, other: Release) -> None:
    first = bundled("ner").name
    with site.running("worker", "--stage", "ner") as worker:
        site.wait_ready()
        assert site.live("ner")["version"] == first
        announce_with_force(site, other, first)
        announce_what_is_missing(site, other)
        process_the_posts(site, other)
        stop(worker)

    # What was announced last cannot be loaded: a worker that starts now loads what was live before it.
    with site.running("worker", "--stage", "ner"):
        site.wait_ready()
        assert site.live("ner")["version"] == other.version
        assert site.live("ner")["refused"]["version"] == MISSING
        roll_back(site, first)


def announce_with_force(site: Site, release: Release, live: str) -> None:
    """A release that is worse than the live version goes live only with --force."""
    refused = processes.forked_command("announce", str(release.path), env=site.env)
    assert refused.returncode == 1
    assert f"ner {release.version} is worse than {live}: coded_f1" in refused.stderr
    site.must("announce", str(release.path), "--force")
    site.wait_live("ner", release.version)


def announce_what_is_missing(site: Site, live: Release) -> None:
    """An announcement of a version that no store has is refused, and the live release stays."""
    announcement = Announcement(
        task="ner",
        version=MISSING,
        reason="publish",
        announced_at=datetime.now(UTC),
        previous=live.version,
    )
    asyncio.run(announcements.send(site.settings, "ner", announcement))
    processes.wait_until(lambda: site.live("ner")["refused"] is not None, "a refusal")
    assert site.live("ner")["version"] == live.version, "the live model stays"


def process_the_posts(site: Site, live: Release) -> None:
    """All records name the live release."""
    n = site.produce_samples("posts")
    site.wait_count(n, "mentions")
    assert {r["releases"]["ner"] for r in site.records("mentions")} == {live.version}


def roll_back(site: Site, version: str) -> None:
    """The version is live after it, and cannot be rolled back to once more."""
    site.must("rollback", "ner", version)
    site.wait_live("ner", version)
    listed = json.loads(site.must("releases", "--json", "--worker", f"127.0.0.1:{site.port}"))
    live = [r for r in listed if r["task"] == "ner" and r["live"]]
    assert [(r["version"], r["where"], len(r["workers"])) for r in live] == [(version, "bundled", 1)]
    again = processes.forked_command("rollback", "ner", version, env=site.env)
    assert (again.returncode, "live already" in again.stderr) == (1, True)


def test_a_replay_shows_a_worse_release(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    worse = spoiled("ner", tmp_path_factory.mktemp("worse"), "head.safetensors", noisy_head)
    site.produce_samples("posts")
    written = [site.folder / f"{name}.jsonl" for name in ("first", "second")]
    for path, run in zip(written, (processes.command, processes.forked_command), strict=True):
        answer = run("replay", "posts", "--to", "8", "--output", str(path), env=site.env)
        assert answer.returncode == 0, answer.stderr
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
    assert micro["difference"]["high"] < 0, "the interval of the difference does not hold 0"
    assert 0 < found["changed"] <= found["compared"]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_changed_terminology_is_compared_by_the_codes_it_changes(site: Site) -> None:
    changed = _smaller_terminology(site.folder / "made")
    deliver(changed, site.settings.store)
    with site.running("worker", "--stage", "ner"):
        site.wait_count(site.produce_samples("posts"), "mentions")
    target = site.folder / "changes.json"
    old = bundled("normalization").name
    printed = site.must("terminology", "diff", old, changed.version, "--json", str(target))
    changes = json.loads(target.read_bytes())
    assert "are coded differently" in printed
    assert changes
    assert all((c["old_pt"], c["old_llt"]) != (c["new_pt"], c["new_llt"]) for c in changes)
    assert not any(c["new_pt"] == "Insomnia" for c in changes)
    assert any(c["old_pt"] == "Insomnia" for c in changes)


def _smaller_terminology(root: Path) -> Release:
    """The bundled terminology without the preferred term Insomnia and its phrases."""
    table = terminology.load(bundled("normalization") / "terminology.tsv")
    kept = [i for i, term in enumerate(table) if term.pt != "Insomnia"]

    def change(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
        rows = "".join(f"{table[i].llt}\t{table[i].pt}\t{table[i].soc or '-'}\n" for i in kept)
        (folder / "terminology.tsv").write_text("llt\tpt\tsoc\n" + rows, encoding="utf-8")
        tensors.update({name: t[kept].contiguous() for name, t in tensors.items()})
        for phrases, vectors in ((PHRASES, PHRASE_VECTORS), (TAUGHT, TAUGHT_VECTORS)):
            texts, pts = patient_phrases.read(folder / phrases)
            left = [i for i, pt in enumerate(pts) if pt != "Insomnia"]
            patient_phrases.write(folder / phrases, [texts[i] for i in left], [pts[i] for i in left])
            stored = load_file(folder / vectors)
            save_file({name: t[left].contiguous() for name, t in stored.items()}, folder / vectors)

    return rebuilt("normalization", root, "vectors.safetensors", change)
