"""A whole run of a judge on a tiny base, and what it is counted by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import typer
from safetensors.torch import load_file

from models import drugs
from models.encoder import mpnet
from models.encoder.weights import ADAPTER
from models.loading import load
from models.ner.model import NerModel
from models.releases.manifest import ReleaseError
from models.types import ADE, Case, Mention, Stated
from tests.training.recipes.runs import made, settings_of
from training.common.corpora import PSYTAR_TRAINING
from training.evaluation import judged_events as evaluation
from training.evaluation.judged_events import JudgedText
from training.ner import data as ner_data
from training.ner.judge import TASK
from training.recipes.stages import Place
from training.teaching.batches import ID
from training.teaching.markup import parse

LINES = ["a [ADE rash] from [DRUG#1 zoloft]", "the [IND?relieved rash] is gone", "no [ADE?negated nausea]"]


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three written texts, one of which is stated; the tagger finds the word `rash`."""
    texts = [(f"{ID}posts_1-{n}", parse(line)) for n, line in enumerate(LINES, 1)]
    monkeypatch.setattr(ner_data, "marked_texts", lambda kind, part: texts if kind == "posts" else [])
    monkeypatch.setattr(ner_data, "stated_texts", lambda: {texts[1][0]: Stated(("zoloft",), "low mood")})
    monkeypatch.setattr(evaluation, "bundled_tagger", RashTagger)


class RashTagger:
    """Finds the word `rash` as an event."""

    def predict(self, batch: Sequence[str], stated: Sequence[Stated] = ()) -> list[list[Mention]]:
        places = [text.find("rash") for text in batch]
        return [[Mention(i, i + 4, "rash", ADE, 0.9)] if i >= 0 else [] for i in places]


@pytest.mark.usefixtures("few_texts")
def test_a_run_builds_a_judge_of_low_rank_that_is_made_again_with_todays_drugs(
    corpus: Path, tiny_mpnet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = made(
        "judge",
        data=corpus,
        output=tmp_path,
        base=tiny_mpnet,
        epochs=1,
        rank=2,
        stated=1.0,
        teaching=1.0,
        reports=0,
    )
    manifest = release.manifest
    assert (manifest.task, manifest.base) == ("judge", tiny_mpnet)
    assert manifest.configuration["stated_read"] is True
    assert manifest.training_data[0] == PSYTAR_TRAINING
    assert manifest.training_data[1].name == "teaching corpus of pvstream, 3 synthetic texts"
    assert {s.name for s in manifest.scores} >= {"event_f1", "alarmed"}
    adapter = load_file(release.file(ADAPTER))
    assert {min(t.shape) for t in adapter.values()} == {2}
    assert {t.dtype for t in adapter.values()} == {torch.float16}
    loaded = load(release, dtype="float32")
    assert isinstance(loaded.model.tagger, NerModel)  # type: ignore[attr-defined]
    text = "a rash"
    (found,) = loaded.model.predict([Case(text, (Mention(2, 6, "rash", ADE, 0.9),), Stated(("zoloft",)))])
    assert all(text[m.start : m.end] == m.text for m in found)
    monkeypatch.setattr(drugs, "BUNDLED", tmp_path / "drugs.tsv")
    drugs.BUNDLED.write_text("name\tgeneric\nzoloft\tsertraline\n", encoding="utf-8")
    assert TASK.refresh is not None
    again = TASK.refresh(release, Place(corpus, tmp_path / "again", torch.device("cpu")))
    files = again.manifest.files
    assert {name for name, file in files.items() if manifest.files[name] != file} == {drugs.RELEASE_FILE}
    assert (again.task, again.manifest.canary.inputs) == ("judge", manifest.canary.inputs)
    assert again.manifest.configuration == manifest.configuration | {"like": release.version}
    assert [(s.name, s.data) for s in again.manifest.scores] == [(s.name, s.data) for s in manifest.scores]


@pytest.mark.usefixtures("few_texts")
@pytest.mark.parametrize(("share", "begin"), [(1.0, 1), (0.0, 0)])
def test_a_share_of_the_texts_begins_with_what_is_stated(corpus: Path, share: float, begin: int) -> None:
    read = ner_data.read(corpus, settings_of("judge", stated=share, teaching=1.0, reports=0))
    texts = [text.text for text in read[ner_data.TEACHING].train]
    assert len(texts) == len(LINES)
    assert sum(text.startswith("Took zoloft for low mood. ") for text in texts) == begin


def test_a_run_without_its_base_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(typer.BadParameter, match="is no folder"):
        TASK.check(settings_of("judge", base=str(tmp_path / "none")))
    monkeypatch.setattr(mpnet, "is_installed", lambda: False)
    with pytest.raises(typer.BadParameter, match="is not installed"):
        TASK.check(settings_of("judge"))


@pytest.mark.usefixtures("few_texts")
def test_a_run_of_low_rank_begins_with_its_base(corpus: Path, tiny_mpnet: str, tmp_path: Path) -> None:
    options = {"data": corpus, "base": tiny_mpnet, "epochs": 1, "limit": 2, "reports": 0}
    first = made("judge", output=tmp_path / "one", rank=0, **options)  # type: ignore[arg-type]
    with pytest.raises(ReleaseError, match="begins with its base"):
        made("judge", output=tmp_path / "two", rank=2, start=first, **options)  # type: ignore[arg-type]


def test_events_are_counted_beside_those_of_the_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dropping:
        """Leaves out every mention of the text with `relief`."""

        def predict(self, batch: Sequence[Case]) -> list[list[Mention]]:
            return [[] if "relief" in case.text else list(case.mentions) for case in batch]

    monkeypatch.setattr(evaluation, "bundled_tagger", RashTagger)
    records = [
        JudgedText("drug rash", ((5, 9),)),
        JudgedText("rash relief", ()),
        JudgedText("fine", ()),
    ]
    result = evaluation.measure(Dropping(), evaluation.Corpus("three texts", records))
    ours = {m.name: m.of(result.counts) for m in result.measures}
    theirs = {m.name: m.of(result.baseline) for m in result.measures}
    expected = {"event_f1": 1.0, "event_precision": 1.0, "event_recall": 1.0, "hit": 1.0, "alarmed": 0.0}
    assert ours == pytest.approx(expected)
    assert theirs == pytest.approx(expected | {"event_f1": 2 / 3, "event_precision": 0.5, "alarmed": 0.5})
