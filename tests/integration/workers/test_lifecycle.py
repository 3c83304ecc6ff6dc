"""Models change while records flow, on a real broker: nothing is lost, nothing is mixed, and a person can see
what happened.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.chaos import __main__ as chaos
from models import terminology
from models.normalization import patient_phrases
from models.normalization.patient_phrases import PHRASE_VECTORS, PHRASES, TAUGHT, TAUGHT_VECTORS
from models.releases.manifest import Release
from models.releases.remote import deliver
from models.releases.store import bundled
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site
from tests.variants import noisy_head, rebuilt, spoiled

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

GOLD = processes.ROOT / "tests/data/gold/posts.jsonl"


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
    assert sum(r.kills for r in results) > 0 and sum(r.published for r in results) > 0


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
