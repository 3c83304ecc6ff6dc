"""The judge of the stage `ner`: when there is one, how another takes its place, and what records say."""

from __future__ import annotations

import asyncio
import itertools
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import orjson
import pytest

from models.encoder import mpnet
from models.loading import Loaded
from models.releases.manifest import ReleaseError
from models.types import ADE, DRUG, JUDGE, Case, Mention, Stated
from streams.agents.pipeline import stage_named
from streams.cli.operations.local_checks import check_releases
from streams.codec import encode
from streams.library import Annotator, load
from streams.records import ExpandedReport, Report
from streams.rollout import loaded_judge as judge_module
from streams.rollout.announcing import GateError, _gate, list_releases
from streams.rollout.handle import Handle
from streams.rollout.loaded_judge import NO_JUDGE, judge_at_start
from streams.rollout.loading import open_directory
from streams.rollout.reload import Reloader
from streams.settings import Settings
from streams.stage import run_stage
from tests.fakes import FakePorts, batches_of, inbound, loaded
from tests.streams.rollout.reloading import announcement
from tests.tiny_releases import tiny_release

pytestmark = pytest.mark.usefixtures("tiny_bundled", "empty_gauge")
STAGE = stage_named("ner")


@pytest.fixture(autouse=True)
def auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PV_JUDGE", "auto")


@dataclass(frozen=True, slots=True)
class Judges:
    """A store with two judges that load, and one whose base is gone."""

    root: Path
    sound: tuple[str, str]
    homeless: str

    def settings(self, **options: Any) -> Settings:
        return Settings(store=str(self.root), dtype="float32", **options)

    def folder(self, version: str) -> Path:
        return self.root / JUDGE / version


@pytest.fixture(scope="module")
def judges(tiny_mpnet: str, tmp_path_factory: pytest.TempPathFactory) -> Judges:
    root = tmp_path_factory.mktemp("store")
    one, two = (tiny_release(JUDGE, tiny_mpnet, root, note).version for note in ("one", "two"))
    base = tmp_path_factory.mktemp("gone") / "base"
    shutil.copytree(tiny_mpnet, base)
    homeless = tiny_release(JUDGE, str(base), root, "homeless").version
    shutil.rmtree(base)
    return Judges(root, (one, two), homeless)


class FoundEverywhere:
    """A tagger of the word `rash`."""

    task = "ner"

    def predict(self, batch: Sequence[str], stated: Sequence[Stated] = ()) -> list[list[Mention]]:
        places = [text.find("rash") for text in batch]
        return [[Mention(i, i + 4, "rash", ADE, 0.9, status="own")] if i >= 0 else [] for i in places]


class Denying:
    """A judge that denies everything, and counts what it reads."""

    task = JUDGE

    def __init__(self) -> None:
        self.read: list[Case] = []

    def predict(self, batch: Sequence[Case]) -> list[list[Mention]]:
        self.read += [case for case in batch if case.mentions]
        return [[replace(m, status="negated") for m in case.mentions] for case in batch]


def judging(model: Any, generation: int = 0) -> Loaded:
    return replace(loaded(model, "fedcba987654"), task=JUDGE, generation=generation)


def post(offset: int, text: str, **fields: Any) -> Any:
    return inbound(offset, orjson.dumps({"id": f"r{offset}", "text": text, **fields}))


def test_without_a_release_the_tagger_decides_alone(judges: Judges, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "bundled_version", lambda _: None)
    assert judge_at_start(None, judges.settings(judge="off")) is None
    assert judge_at_start(announcement(judges.sound[0], task=JUDGE), judges.settings(judge="off")) is None
    handle = judge_at_start(None, judges.settings())
    assert handle is not None and handle.current is NO_JUDGE
    with pytest.raises(ReleaseError, match="PV_JUDGE is on, but no release of a judge"):
        judge_at_start(None, judges.settings(judge="on"))


def test_a_judge_is_the_announced_one_or_the_one_that_is_named(judges: Judges) -> None:
    one, two = judges.sound
    handle = judge_at_start(announcement(one, task=JUDGE), judges.settings(), 7)
    assert handle is not None and (handle.current.version, handle.current.generation) == (one, 7)
    named = judge_at_start(None, judges.settings(releases={JUDGE: judges.folder(two)}))
    assert named is not None and (named.current.version, named.pinned) == (two, True)


def test_a_judge_without_its_base_is_refused_and_the_tagger_serves(
    judges: Judges, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        handle = judge_at_start(announcement(judges.homeless, task=JUDGE), judges.settings())
    assert handle is not None and handle.current is NO_JUDGE
    assert handle.refused is not None and handle.refused.version == judges.homeless
    warnings = [r.message for r in caplog.records if "the tagger decides alone" in r.message]
    assert len(warnings) == 1 and "missing" in warnings[0]
    with pytest.raises(ReleaseError, match="missing"):
        judge_at_start(announcement(judges.homeless, task=JUDGE), judges.settings(judge="on"))


def test_another_judge_takes_its_place_between_two_batches(judges: Judges) -> None:
    handle = Handle(loaded(FoundEverywhere()))
    assert handle.snapshot().judge is None
    handle.judge = Handle(NO_JUDGE)
    assert handle.snapshot().judge is None
    before = handle.snapshot()
    handle.judge.swap(judging(Denying(), 3))
    assert before.judge is None
    after = handle.snapshot()
    assert after.judge is not None and after.judge.generation == 3
    assert replace(after, judge=None) == before


async def test_an_announced_judge_becomes_live_and_a_refused_one_changes_nothing(judges: Judges) -> None:
    tagger, handle = Handle(loaded(FoundEverywhere())), Handle(NO_JUDGE)
    tagger.judge = handle
    reloader = Reloader([STAGE], {"ner": tagger, JUDGE: handle}, judges.settings())
    offsets = itertools.count()
    updating = asyncio.create_task(reloader._update_live(JUDGE))

    async def announced(version: str, done: Any) -> None:
        value = encode(announcement(version, task=JUDGE))
        reloader._announcements.apply(SimpleNamespace(key=b"judge", value=value, offset=next(offsets)))
        reloader._changed[JUDGE].set()
        async with asyncio.timeout(60):
            while not done():  # noqa: ASYNC110  a handle sends no event
                await asyncio.sleep(0.02)

    try:
        await announced(judges.sound[0], lambda: handle.current.version == judges.sound[0])
        judge = tagger.snapshot().judge
        assert judge is not None and (judge.version, judge.generation) == (judges.sound[0], 1)
        await announced(judges.homeless, lambda: handle.refused is not None)
        assert handle.current.version == judges.sound[0]
        await announced(judges.sound[1], lambda: handle.current.version == judges.sound[1])
        assert handle.refused is None
    finally:
        updating.cancel()
        await asyncio.gather(updating, return_exceptions=True)
        reloader._pool.shutdown(wait=True)


async def test_records_say_who_judged_them_and_only_texts_with_an_effect_are_read() -> None:
    judge = Denying()
    ports = FakePorts(replace(loaded(FoundEverywhere()), generation=2, judge=judging(judge, 5)))
    texts = [post(0, "no rash today", drug="zoloft"), post(1, "all is fine"), post(2, "a rash")]
    await run_stage(STAGE, batches_of(texts), ports)
    records = [orjson.loads(value or b"") for _, value, _ in ports.to("mentions")]
    assert [r["releases"] for r in records] == [{"ner": "0123456789ab", "judge": "fedcba987654"}] * 3
    assert [r["generations"] for r in records] == [{"ner": 2, "judge": 5}] * 3
    assert records[0]["record_id"].endswith("/ner@0123456789ab+fedcba987654")
    assert [[m["status"] for m in r["mentions"]] for r in records] == [["negated"], [], ["negated"]]
    assert [(case.text, case.stated.drugs) for case in judge.read] == [
        ("no rash today", ("zoloft",)),
        ("a rash", ()),
    ]


async def test_a_judge_reads_no_other_language_and_its_drugs_have_their_names() -> None:
    class Naming(Denying):
        def predict(self, batch: Sequence[Case]) -> list[list[Mention]]:
            super().predict(batch)
            return [[Mention(0, 6, case.text[:6], DRUG, 1.0)] for case in batch]

    judge = Naming()
    french = "Depuis hier, ce médicament me donne des rash terribles partout sur le corps."
    ports = FakePorts(replace(loaded(FoundEverywhere()), judge=judging(judge)))
    texts = [post(0, french, drug="zoloft"), post(1, "zolpft, a rash went away")]
    await run_stage(STAGE, batches_of(texts), ports)
    records = [orjson.loads(value or b"") for _, value, _ in ports.to("mentions")]
    assert (records[0]["read"], records[0]["language"], records[0]["mentions"]) == (False, "fr", [])
    assert [m["generic"] for m in records[1]["mentions"]] == ["sertraline"]
    assert [case.text for case in judge.read] == ["zolpft, a rash went away"]
    assert records[1]["case_fields"] == []  # the judge left no effect that could have an outcome


async def test_without_a_judge_records_are_what_they_were() -> None:
    ports, judged = (
        FakePorts(loaded(FoundEverywhere())),
        FakePorts(replace(loaded(FoundEverywhere()), judge=judging(Denying()))),
    )
    for each in (ports, judged):
        await run_stage(STAGE, batches_of([post(0, "a rash")]), each)
    ((_, value, _),), ((_, other, _),) = ports.to("mentions"), judged.to("mentions")
    assert value is not None and b"judge" not in value and value != other
    assert orjson.loads(value)["releases"] == {"ner": "0123456789ab"}


def test_a_tagger_whose_judge_fails_its_canary_fails_its_own() -> None:
    tagger = loaded(FoundEverywhere())
    broken = replace(judging(Denying()), canary=([Case("a rash", ())], [["something else"]], 0.0))
    sound = replace(broken, canary=(broken.canary[0], [[]], 0.0))
    assert tagger.passes_canary() and replace(tagger, judge=sound).passes_canary()
    assert not replace(tagger, judge=broken).passes_canary()


def test_the_library_uses_a_judge_by_the_same_setting(judges: Judges) -> None:
    text = "Zoloft gave me a rash and no sleep."

    def records(annotator: Annotator) -> list[bytes]:
        return [encode(record) for record in annotator.predict([text])]

    plain = load("posts", settings=judges.settings(judge="off"))
    assert set(plain.releases) == {"ner", "normalization"}
    assert records(plain) == records(load("posts", settings=judges.settings()))
    named = judges.settings(releases={JUDGE: judges.folder(judges.sound[0])})
    for annotator in (
        load("posts", settings=named),
        load("posts", releases={JUDGE: judges.folder(judges.sound[0])}, settings=judges.settings()),
    ):
        (record,) = annotator.predict([text])
        assert record.releases == annotator.releases
        assert record.releases[JUDGE] == judges.sound[0]
        assert list(record.releases) == ["ner", "judge", "normalization"]
    with pytest.raises(ReleaseError, match="missing"):
        load("posts", releases={JUDGE: judges.folder(judges.homeless)}, settings=judges.settings())
    with pytest.raises(KeyError, match="no stage of questions: judge"):
        load("questions", releases={JUDGE: judges.folder(judges.sound[0])}, settings=judges.settings())


def test_releases_of_a_judge_are_listed_and_announced_by_force(judges: Judges) -> None:
    live = {JUDGE: announcement(judges.sound[0], task=JUDGE)}
    listed = [r for r in list_releases(judges.settings(), live) if r.task == JUDGE]
    assert {(r.version, r.where, r.live) for r in listed} == {
        (v, "store", v == judges.sound[0]) for v in (*judges.sound, judges.homeless)
    }
    with (
        open_directory(judges.folder(judges.sound[0]), judges.settings()) as release,
        pytest.raises(GateError, match="use --force"),
    ):
        _gate(release, None, None)


@pytest.mark.parametrize(
    ("option", "named", "expected"),
    [
        ("auto", None, []),
        ("on", None, ["fail"]),
        ("auto", "sound", ["ok"]),
        ("auto", "homeless", ["warn"]),
        ("on", "homeless", ["fail"]),
        ("off", "homeless", []),
    ],
)
async def test_the_check_of_the_operator_names_the_judge(
    judges: Judges, option: str, named: str | None, expected: list[str]
) -> None:
    version = {"sound": judges.sound[0], "homeless": judges.homeless}.get(named or "")
    live = {JUDGE: announcement(version, task=JUDGE)} if version else {}
    found = check_releases(judges.settings(judge=option), live, load=True)
    assert [f.grade async for f in found if f.what == "release judge"] == expected


@pytest.mark.parametrize(("option", "grade"), [("auto", "warn"), ("on", "fail")])
@pytest.mark.usefixtures("shipped_releases")
async def test_who_lacks_the_base_of_the_bundled_judge_is_told(
    option: Literal["auto", "on"],
    grade: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(mpnet, "is_installed", lambda cache=None: False)
    settings = Settings(judge=option)
    found = [f async for f in check_releases(settings, {}, load=False) if f.what == "release judge"]
    assert [(f.grade, f.found, f.fix) for f in found] == [(grade, judge_module.WITHOUT_BASE, "make judge")]
    if option == "auto":
        with caplog.at_level("INFO"):
            handle = judge_at_start(None, settings)
        assert handle is not None and handle.current is NO_JUDGE and handle.refused is None
        assert judge_module.WITHOUT_BASE in caplog.text


def test_what_a_source_states_is_known_to_the_judge() -> None:
    judge = Denying()
    report = Report(id="a", text="a rash", drug=("zoloft", "aspirin"), indication="flu")
    tagged = STAGE.outputs(replace(loaded(FoundEverywhere()), judge=judging(judge)), [report])
    assert judge.read[0].stated == Stated(("zoloft", "aspirin"), "flu")
    assert tagged[0].mentions[0].status == "negated"


def test_of_clinical_sentences_a_judge_reads_those_whose_drug_is_stated() -> None:
    judge, notes = Denying(), {"acronym": "0" * 12}
    reports = [
        ExpandedReport(id="a", text="a rash on Zoloft", releases=notes),
        ExpandedReport(id="b", text="b rash", drug="Zoloft", releases=notes),
        Report(id="c", text="c rash"),
    ]
    tagged = STAGE.outputs(replace(loaded(FoundEverywhere()), judge=judging(judge)), reports)
    assert [case.text for case in judge.read] == ["b rash", "c rash"]
    assert [[m.status for m in t.mentions if m.label == ADE] for t in tagged] == [
        ["own"], ["negated"], ["negated"],
    ]  # fmt: skip
