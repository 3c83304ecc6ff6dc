"""A whole run of a judge on a tiny base, and what it learns from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models.encoder.model import Encoder
from models.judge.features import Features, HowToRead
from models.judge.head import JudgeHead
from models.loading import load
from models.types import ADE, DRUG, Case, Mention, Stated
from tests.training.recipes.runs import made, settings_of
from training.common import UserError
from training.common.corpora import PSYTAR_TRAINING
from training.evaluation import judge as evaluation
from training.evaluation.judge import JudgedText
from training.judge import data as judge_data
from training.judge import release as judge_release
from training.judge.data import NO_EVENT, Example, read, vectors_of
from training.judge.release import _sources
from training.judge.task import TASK
from training.judge.train import Row, fit
from training.recipes.recipe import RecipeError

WORDS = {"rash": "event", "zaps": "withdrawal", "relief": "relieved"}


class Tagger:
    """Finds each of some words as an effect, and `drug`."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def predict(self, batch: Sequence[str], stated: Sequence[Stated] = ()) -> list[list[Mention]]:
        places = [[(t.find(w), w) for w in (*self.words, "drug")] for t in batch]
        return [
            [
                Mention(i, i + len(w), w, DRUG if w == "drug" else ADE, 0.9, status=None)
                for i, w in own
                if i >= 0
            ]
            for own in places
        ]


def texts(n: int) -> list[JudgedText]:
    """Texts with one mention each, whose word says its class."""
    found = []
    for number, (word, name) in zip(range(n), itertools.cycle(WORDS.items()), strict=False):
        text = f"the drug {number} {word} ok"
        found.append(
            JudgedText(text, ((text.index(word), text.index(word) + len(word), name),), Stated(("zoloft",)))
        )
    return found


@pytest.fixture
def corpora(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts texts in the place of the corpora, and a tagger in that of the bundled one."""

    def put(own: list[JudgedText]) -> None:
        monkeypatch.setattr(
            judge_data, "READERS", {"written": lambda data: own, "psytar": lambda data: own[:9]}
        )
        for module in (judge_release, evaluation):
            monkeypatch.setattr(module, "bundled_tagger", lambda: Tagger(*WORDS))

    return put


def test_a_run_builds_a_judge_that_has_learned(
    corpora: Callable[..., None], corpus: Path, tiny_mpnet: str, tmp_path: Path
) -> None:
    corpora(texts(240))
    release = made(
        "judge",
        data=corpus,
        output=tmp_path,
        base=tiny_mpnet,
        cache=str(tmp_path / "cache"),
        epochs=40,
        lr=0.01,
    )
    manifest = release.manifest
    assert manifest.configuration["classes"] == ["event", "withdrawal", "relieved"]
    assert 0 < manifest.configuration["threshold"] < 1
    assert manifest.configuration["base_files"].keys() >= {"model.safetensors", "tokenizer.json"}
    assert manifest.training_data[1] == PSYTAR_TRAINING
    assert {s.name for s in manifest.scores} >= {"event_f1", "alarmed"}
    loaded = load(release)
    cases = [
        Case(f"the drug {n} {w} ok", (Mention(len(f"the drug {n} "), len(f"the drug {n} {w}"), w, ADE, 0.9),))
        for n, w in ((901, "rash"), (902, "relief"))
    ]
    assert [[m.status for m in own] for own in loaded.model.predict(cases)] == [["own"], ["relieved"]]


def test_vectors_are_computed_once(tiny_mpnet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = Features(Encoder.load(tiny_mpnet, max_pieces=64), HowToRead())
    mention = Mention(4, 8, "rash", ADE, 0.9)
    lost = Mention(2, 3, "\u200b", ADE, 0.9)
    cases = [Case("the rash", (mention,)), Case("a \u200b b", (lost,)), Case("the rash!", (mention,))]
    first = vectors_of(cases, features, "base", tmp_path)
    assert [[v is None for v in own] for own in first] == [[False], [True], [False]]
    monkeypatch.setattr(Features, "of", lambda *_: pytest.fail("encoded again"))
    again = vectors_of(cases, features, "base", tmp_path)
    assert first[1] == again[1] and torch.equal(first[0][0], again[0][0])  # type: ignore[arg-type]
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 1
    vectors_of(cases, features, "another base", tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_the_tagger_finds_has_the_class_of_the_mark_below_it(corpora: Callable[..., None]) -> None:
    text = "drug: bad rash, zaps"
    corpora([JudgedText(text, ((6, 14, "event"),), Stated(("zoloft",), "flu"))])
    settings = settings_of("judge", corpora="written", stated=1.0, unmatched=False)
    ((one,),) = read(Path(), settings, Tagger("rash", "zaps")).values()
    assert [(m.text, name) for m, name in zip(one.case.mentions, one.classes, strict=True)] == [
        ("bad rash", "event"), ("rash", "event"),
    ]  # fmt: skip
    assert one.case.stated == Stated(("zoloft",), "flu")
    ((more,),) = read(
        Path(), settings_of("judge", corpora="written", stated=0.0, unmatched=True), Tagger("rash", "zaps")
    ).values()
    assert more.classes == ("event", "event", "no event")
    assert more.case.stated == Stated()


def test_the_scale_of_vectors_is_in_the_weights_and_unmarked_mentions_are_any_other_class() -> None:
    torch.manual_seed(0)
    means = {"event": 400, "relieved": 300, "denied": 200, NO_EVENT: 200}
    rows = [Row(torch.randn(6) * 5 + means[name], name) for _ in range(100) for name in means]
    fitted = fit(rows, settings_of("judge", epochs=40, lr=0.05, hidden=4, dropout=0.0))
    assert fitted.rule.classes == ("event", "relieved", "denied")
    assert isinstance(fitted.head, JudgeHead) and fitted.head.hidden is not None
    mentions = [Mention(0, 1, "x", "ADE", 1.0)] * len(rows)
    decisions = fitted.rule.decisions(fitted.head(torch.stack([r.vector for r in rows])), mentions)
    expected = ["denied" if row.name == NO_EVENT else row.name for row in rows]
    assert sum(d.name == name for d, name in zip(decisions, expected, strict=True)) > 0.95 * len(rows)


def test_a_run_without_an_event_or_a_base_is_refused(
    corpora: Callable[..., None], corpus: Path, tiny_mpnet: str, tmp_path: Path
) -> None:
    corpora([t for t in texts(60) if t.mentions[0][2] == "relieved"])
    with pytest.raises(UserError, match="no event to learn from"):
        made("judge", data=corpus, output=tmp_path, base=tiny_mpnet, cache=str(tmp_path))
    with pytest.raises(typer.BadParameter, match="is not installed"):
        TASK.check(settings_of("judge", base=str(tmp_path / "none")))
    with pytest.raises(RecipeError, match="corpora"):
        settings_of("judge", base=tiny_mpnet, corpora="written+druglib")


def test_classes_of_the_teaching_corpus_are_those_of_its_flags() -> None:
    found: dict[str, Any] = {}
    for text in evaluation.written(Path(), "held_out"):
        for start, end, name in text.mentions:
            found.setdefault(name, text.text[start:end])
    assert set(found) == {
        "event", "withdrawal", "relieved", "indication", "denied", "hypothetical", "other", "none",
    }  # fmt: skip


def test_events_are_counted_beside_those_of_the_tagger(corpora: Callable[..., None]) -> None:
    corpora([])

    class Dropping:
        """Leaves out every mention of `rash`."""

        def predict(self, batch: Sequence[Case]) -> list[list[Mention]]:
            return [[m for m in case.mentions if m.text != "rash"] for case in batch]

    records = [
        JudgedText("drug zaps", ((5, 9, "withdrawal"),)),
        JudgedText("drug rash", ((5, 9, "relieved"),)),
        JudgedText("fine", ()),
    ]
    result = evaluation.measure(Dropping(), evaluation.Corpus("three texts", records))
    ours = {m.name: m.of(result.counts) for m in result.measures}
    theirs = {m.name: m.of(result.baseline) for m in result.measures}
    expected = {"event_f1": 1.0, "event_precision": 1.0, "event_recall": 1.0, "hit": 1.0, "alarmed": 0.0}
    assert ours == pytest.approx(expected)
    assert theirs == pytest.approx(expected | {"event_f1": 2 / 3, "event_precision": 0.5, "alarmed": 0.5})
    assert Example(Case("a", ()), ()).classes == ()


def test_a_run_learns_from_decided_texts_too(corpora: Callable[..., None], tmp_path: Path) -> None:
    corpora(texts(3))
    marks = [
        {"start": 3, "end": 7, "label": "ADE", "flag": None, "term": None, "numbers": []},
        {"start": 12, "end": 17, "label": "NONE", "flag": None, "term": None, "numbers": []},
    ]
    file = tmp_path / "reviews.jsonl"
    file.write_text(json.dumps({"id": "7", "text": "my rash and drive", "marks": marks}) + "\n")
    found = read(tmp_path, settings_of("judge", corpora="written"), Tagger(*WORDS), file)
    assert found.keys() == {"written", "decided"}
    (example,) = found["decided"]
    assert [m.text for m in example.case.mentions] == ["rash", "drive"]
    assert example.classes == ("event", "none")
    assert _sources(found)[1].name == "reports decided by reviewers, 1 texts"
