"""Decisions of reviewers that decide nearly the same pairs: made, announced, refused, taken back."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from safetensors.torch import load_file, save_file

import streams
from models import supplement as files
from models.loading import EXTENDS
from models.releases.manifest import Manifest, ReleaseError
from models.releases.store import build, bundled, describe, open_release
from models.types import Query
from streams.agents.pipeline import stage_named
from streams.broker.embedded import EmbeddedBroker
from streams.library import Annotator
from streams.rollout import announcements
from streams.rollout.loading import load_opened, load_release, open_directory
from streams.rollout.reload import load_at_start
from streams.rollout.supplement import CODES, Supplements
from streams.settings import Settings
from tests.streams.cli.command_line import CommandLine
from tests.streams.conftest import Keys
from tests.streams.reviews.test_foreign_records import FOREIGN, send
from tests.streams.rollout.reloading import announcement
from tests.streams.rollout.reviewing import MISSED, SHORT, TEXTS, WARFARIN, Desk
from tests.variants import variant

#: Nearly the same, of another patient.
COPY = WARFARIN.replace("phenytoin.", "phenytoin in May.")
PHENYTOIN = {"drugs": ("phenytoin",)}


@pytest.fixture
def desk(pvstream: CommandLine, state: Path, tmp_path: Path) -> Iterator[Desk]:
    """With an embedded broker; its settings are those of the commands."""
    with EmbeddedBroker() as embedded:
        broker, database = f"kafka://{embedded.bootstrap}", str(tmp_path / "events.duckdb")
        pvstream.set("PV_BROKER", broker)
        pvstream.set("PV_DATABASE", database)
        store = str(tmp_path / "store")
        made = Desk(Settings(broker=broker, database=database, store=store, state=state, dtype="float32"))
        made.fill()
        yield made


def live(desk: Desk) -> tuple[str, str, int]:
    """Version, reason and sequence of the valid announcement."""
    valid = asyncio.run(announcements.read_announcements(desk.settings))["relation"]
    return valid.version, valid.reason, valid.sequence


@cache
def before_relation() -> list[tuple[Any, Any]]:
    """The stages before it with their models."""
    return [(stage_named(name), load_release(name, None, Settings())) for name in ("acronym", "ner")]


def records(loaded: Any, *texts: str) -> list[Any]:
    """What the stages make of sentences up to this release of relation."""
    return Annotator("sentences", (*before_relation(), (stage_named("relation"), loaded))).predict(texts)


def related(loaded: Any, text: str) -> set[tuple[str, str]]:
    """The drugs and effects that are related, as written."""
    (found,) = records(loaded, text)
    return {(found.mentions[r.head].text, found.mentions[r.tail].text) for r in found.relations}


def announced(pvstream: CommandLine, *options: object) -> str:
    """The version that the command announces."""
    answer = pvstream("supplement", "--announce", *options)
    assert answer.code == 0, answer.err
    assert "is announced in place of" in answer.out
    return answer.out.split("relation ")[1].split()[0]


@pytest.mark.slow
@pytest.mark.usefixtures("shipped_releases")
def test_a_decision_decides_what_is_nearly_the_same_and_nothing_else(
    desk: Desk, pvstream: CommandLine
) -> None:
    before = load_release("relation", None, desk.settings)
    wrong, right = ("warfarin", "rash"), ("phenytoin", "rash")
    assert related(before, WARFARIN) == related(before, COPY) == {wrong, right}
    assert related(before, MISSED) == set()
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    desk.decide("r-missed", "correct", drugs=("cisplatin",))
    inh, rifampicin = ((drug, "Hepatotoxicity") for drug in ("INH", "rifampicin"))
    assert related(before, SHORT) == {inh, rifampicin}
    desk.decide("r-short", "correct", drugs=("rifampicin",))
    version = announced(pvstream)
    loaded = load_release("relation", version, desk.settings)
    assert loaded.version == version == live(desk)[0] != before.version
    assert related(loaded, WARFARIN) == related(loaded, COPY) == {right}
    assert related(loaded, MISSED) == {("cisplatin", "UTI")}
    assert related(loaded, SHORT) == {rifampicin}
    ((decision, *training),) = [r.neighbours for r in records(loaded, MISSED)[0].relations]
    assert (decision.id, decision.source, decision.drug) == ("r-missed", "review 1", "cisplatin")
    assert (decision.related, decision.distance, len(training)) == (True, 0.0, 9)
    lines = (Path(streams.__file__).parent / "samples/sentences.jsonl").read_bytes().splitlines()
    others = [text for text in (orjson.loads(line)["text"] for line in lines) if text not in TEXTS.values()]
    assert len(others) > 70
    found = [[r.relations for r in records(one, *others)] for one in (loaded, before)]
    assert found[0] == found[1]
    # A canary of the base decides whether a decision may be followed.
    desk.decide("r-canary", "reject")
    answer = pvstream("supplement", "--announce")
    assert (answer.code, "a decision changes a canary answer" in answer.error_line) == (1, True)
    assert live(desk)[0] == version


def test_the_files_of_a_supplement_have_no_words_of_a_report(desk: Desk, pvstream: CommandLine) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    version = announced(pvstream)
    folder = Path(desk.settings.store) / "relation" / version
    assert {path.name for path in folder.iterdir()} == {files.VECTORS, files.DECISIONS, "manifest.json"}
    stated = sorted(orjson.loads((folder / files.DECISIONS).read_bytes()), key=lambda d: str(d["drug"]))
    common = {"report": "r-warfarin", "sequence": 0, "reviewer": "ann", "effect": "Nausea"}
    assert stated == [
        common | {"drug": "phenytoin", "related": True},
        common | {"drug": "warfarin", "related": False},
    ]


def test_the_same_decisions_are_announced_once_and_a_rollback_holds_until_the_next_one(
    desk: Desk, pvstream: CommandLine
) -> None:
    supplements = Supplements(desk.settings)
    assert pvstream("supplement", "--announce").out.endswith("nothing to announce\n")
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    version, base = announced(pvstream), bundled("relation").name
    assert live(desk) == (version, "publish", 1)
    assert pvstream("supplement", "--announce").out.endswith("nothing to announce\n")
    assert live(desk) == (version, "publish", 1)
    assert pvstream("rollback", "relation", base).code == 0
    assert live(desk) == (base, "rollback", 2)
    assert asyncio.run(supplements.plan()).taken_back
    desk.decide("r-missed", "correct", drugs=("cisplatin",))
    plan = asyncio.run(supplements.plan())
    assert (plan.base, plan.taken_back, len(plan.decided)) == (base, False, 3)
    later = announced(pvstream)
    assert later not in (base, version)
    # Without any decision left the base is announced.
    desk.decide("r-missed", "undo")
    assert announced(pvstream) == version
    desk.decide("r-warfarin", "undo")
    assert announced(pvstream) == base


def test_a_deleted_report_takes_its_pairs_along(desk: Desk, pvstream: CommandLine) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    announced(pvstream)
    desk.delete("r-warfarin")
    assert announced(pvstream) == bundled("relation").name


def test_a_power_cut_before_the_announcement_leaves_nothing_to_repair(
    desk: Desk, pvstream: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(*_: Any) -> None:
        raise OSError("cut")

    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    with monkeypatch.context() as patch:
        patch.setattr(announcements, "send", cut)
        assert pvstream("supplement", "--announce").error_line == "error: cut"
    (stored,) = (Path(desk.settings.store) / "relation").iterdir()
    assert announced(pvstream) == stored.name == live(desk)[0]


def test_without_announcing_a_replay_can_have_it(desk: Desk, pvstream: CommandLine) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    version = pvstream("supplement").out.split("relation ")[1].split()[0]
    assert asyncio.run(announcements.read_announcements(desk.settings)) == {}
    rows = {row["version"]: row for row in orjson.loads(pvstream("releases", "--json").out)}
    assert (rows[version]["where"], rows[version]["live"]) == ("store", False)
    assert "reviewers decided" in rows[version]["kind"]
    assert load_release("relation", version, desk.settings).version == version


def test_foreign_records_are_passed_and_a_broken_chain_announces_nothing(
    desk: Desk, pvstream: CommandLine
) -> None:
    asyncio.run(send(desk.settings, *FOREIGN))
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    version = announced(pvstream)
    place = {"sequence": 1, "previous": desk.chain()[-1].hash}
    asyncio.run(send(desk.settings, orjson.dumps(place | {"action": "accept"})))
    answer = pvstream("supplement", "--announce")
    assert (answer.code, "cannot be read" in answer.error_line) == (1, True)
    assert live(desk)[0] == version


def test_where_signatures_are_required_release_and_announcement_have_one(
    desk: Desk, pvstream: CommandLine, keys: Keys
) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    pvstream.set("PV_RELEASE_KEY", str(keys.public))
    assert "must be signed" in pvstream("supplement", "--announce").error_line
    version = announced(pvstream, "--key", keys.private)
    required = desk.settings.model_copy(update={"release_key": keys.public})
    valid = asyncio.run(announcements.read_announcements(required))
    assert valid["relation"].version == version
    assert load_release("relation", version, required).version == version
    (Path(desk.settings.store) / "relation" / version / "manifest.sig").unlink()
    with pytest.raises(ReleaseError, match="sign"):
        load_release("relation", version, required)


def test_a_worker_starts_with_it_also_where_the_store_of_its_base_is_away(
    desk: Desk, pvstream: CommandLine
) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    base = variant("relation", Path(desk.settings.store), "not bundled")
    assert pvstream("announce", base.path, "--force").code == 0
    first = load_release("relation", announced(pvstream), desk.settings, keep=True)
    desk.decide("r-missed", "correct", drugs=("cisplatin",))
    version = announced(pvstream)
    assert load_release("relation", version, desk.settings, keep=True).version != first.version
    shutil.rmtree(desk.settings.store)
    handle = load_at_start("relation", announcement(version, task="relation"), desk.settings)
    assert (handle.current.version, handle.refused) == (version, None)


@pytest.mark.slow
@pytest.mark.usefixtures("shipped_releases")
def test_a_decision_on_a_code_decides_nearly_the_same_words_and_nothing_else(
    desk: Desk, pvstream: CommandLine
) -> None:
    before = load_release("normalization", None, desk.settings)
    words = ("rash", "Rash", "UTI", "urinary tract infection", "itchy rash", "nausea", "hair loss")
    batch = [Query(text, 0, len(text), text) for text in words]
    plain = before.model.predict(batch)
    desk.decide("r-warfarin", "correct", llt="Drug eruption", pt="Drug eruption")
    # The long form is what the words are read as.
    desk.decide("r-missed", "correct", llt=None, pt=None, soc=None)
    out = pvstream("supplement", "--announce").out
    version = out.split("decided codes")[1].split("normalization ")[1].split()[0]
    loaded = load_release("normalization", version, desk.settings)
    assert loaded.version == version != before.version
    found = loaded.model.predict(batch)
    assert [c.candidates[0].pt for c in found[:2]] == ["Drug eruption"] * 2
    assert [c.candidates[0].phrase for c in found[:2]] == ["review 0"] * 2
    assert (found[3].nil, plain[3].nil) == (True, False)
    assert found[4:] == plain[4:]
    assert {p.name for p in (Path(desk.settings.store) / "normalization" / version).iterdir()} == {
        files.VECTORS, files.DECISIONS, "manifest.json",
    }  # fmt: skip


def test_words_that_were_given_several_codes_decide_nothing(desk: Desk, pvstream: CommandLine) -> None:
    supplements = Supplements(desk.settings, kind=CODES)
    desk.decide("r-warfarin", "correct", llt="Rash", pt="Rash")
    assert supplements.store(asyncio.run(supplements.plan())) is not None
    desk.decide("r-itch", "correct", llt="Pruritus", pt="Pruritus")
    plan = asyncio.run(supplements.plan())
    assert (len(plan.decided), supplements.store(plan)) == (2, None)


def _of_itself(manifest: Manifest, folder: Path) -> dict[str, Any]:
    return {EXTENDS: folder.name}


def _short(manifest: Manifest, folder: Path) -> dict[str, Any]:
    tensors = load_file(folder / files.VECTORS)
    save_file({"pairs": tensors["pairs"][:, 1:].contiguous()}, folder / files.VECTORS)
    return {}


def _fewer(manifest: Manifest, folder: Path) -> dict[str, Any]:
    (folder / files.DECISIONS).write_bytes(b"[]")
    return {}


def _no_decisions(manifest: Manifest, folder: Path) -> dict[str, Any]:
    (folder / files.DECISIONS).write_bytes(b'[{"report": 1}]')
    return {}


def _infinite(manifest: Manifest, folder: Path) -> dict[str, Any]:
    tensors = load_file(folder / files.VECTORS)
    save_file({"pairs": torch.full_like(tensors["pairs"], torch.inf)}, folder / files.VECTORS)
    return {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda *_: {EXTENDS: "f" * 12}, "is not in the store"),
        (lambda *_: {EXTENDS: "../../etc"}, "is not a task and version"),
        (lambda *_: {EXTENDS: 7}, "is not a task and version"),
        (_of_itself, "is a supplement"),
        (lambda *_: {files.LEAST_COSINE: 0.0}, "do not fit"),
        (lambda *_: {files.LEAST_COSINE: "1"}, "TypeError"),
        (_short, "do not fit"),
        (_fewer, "do not fit"),
        (_no_decisions, files.DECISIONS),
        (_infinite, "not finite"),
    ],
)
def test_a_supplement_that_does_not_fit_is_refused(
    desk: Desk, pvstream: CommandLine, tmp_path: Path, change: Callable[..., dict[str, Any]], message: str
) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    version = pvstream("supplement").out.split("relation ")[1].split()[0]
    sound = open_release(Path(desk.settings.store) / "relation" / version)
    folder = tmp_path / version
    shutil.copytree(sound.path, folder)
    changed = change(sound.manifest, folder)
    (folder / "manifest.json").unlink()
    update = {"configuration": sound.manifest.configuration | changed, "files": describe(folder)}
    other = build(folder, sound.manifest.model_copy(update=update), tmp_path / "other")
    with pytest.raises(ReleaseError, match=message), open_directory(other.path, desk.settings) as opened:
        load_opened(opened, desk.settings)


def test_a_changed_byte_is_found(desk: Desk, pvstream: CommandLine) -> None:
    desk.decide("r-warfarin", "correct", **PHENYTOIN)
    version = announced(pvstream)
    place = Path(desk.settings.store) / "relation" / version / files.DECISIONS
    place.write_bytes(place.read_bytes().replace(b"false", b"true "))
    with pytest.raises(ReleaseError, match="sha256"):
        load_release("relation", version, desk.settings)
