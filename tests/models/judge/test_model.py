"""The judge decides what the effects are that a tagger found, and reads no text without one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from models.encoder.model import Encoder
from models.judge.base import CACHE, FILES, NAME, is_installed
from models.judge.base import base_folder as folder_of
from models.judge.features import Features, HowToRead
from models.judge.head import MEANING, Decision, JudgeHead, Rule, decided
from models.judge.model import JudgeModel
from models.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.types import ADE, DRUG, INDICATION, SYMPTOM, WITHDRAWAL, Case, Mention
from tests.tiny_releases import tiny_release
from training.common.marked_reviews import STATUS_OF

RASH = Mention(4, 8, "rash", ADE, 0.9, status="own", status_score=0.8)
DRUG_MENTION = Mention(13, 17, "drug", DRUG, 1.0)
TEXT = "the rash and drug"


@pytest.fixture(scope="module")
def release(tiny_mpnet: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return tiny_release("judge", tiny_mpnet, tmp_path_factory.mktemp("judge"))


def judge(base: str, logits: list[float], classes: tuple[str, ...], **rule: Any) -> JudgeModel:
    """A judge that gives each mention these logits."""
    reading = Features(Encoder.load(base, max_pieces=64), HowToRead())
    head = JudgeHead(reading.size, len(classes))
    torch.nn.init.zeros_(head.output.weight)
    head.output.bias.data = torch.tensor(logits)
    return JudgeModel(reading, head, Rule(classes, **{"threshold": 0.5, **rule}))


@pytest.mark.parametrize(
    ("name", "label", "status"),
    [
        ("event", ADE, "own"),
        ("withdrawal", WITHDRAWAL, "own"),
        ("relieved", INDICATION, "relieved"),
        ("wanted", INDICATION, "relieved"),
        ("indication", INDICATION, "indication"),
        ("symptom", SYMPTOM, None),
        ("denied", ADE, "negated"),
        ("hypothetical", ADE, "hypothetical"),
        ("other", ADE, "other"),
    ],
)
def test_each_class_has_a_label_and_a_status(name: str, label: str, status: str | None) -> None:
    made = decided(RASH, Decision(name, 0.7))
    assert made == replace(RASH, label=label, status=status, status_score=None if status is None else 0.7)


def test_what_is_no_mention_of_health_is_left_out() -> None:
    assert decided(RASH, Decision("none", 0.9)) is None
    assert decided(RASH, Decision("ineffective", 0.9)) is None
    assert len(MEANING) == 11
    assert STATUS_OF.items() <= {name: status for name, (_, status) in MEANING.items()}.items()


def test_events_and_withdrawals_together_reach_the_threshold() -> None:
    rule = Rule(("event", "withdrawal", "relieved"), threshold=0.55)
    logits = torch.tensor([[0.3, 0.29, 0.41]]).log()
    (one,) = rule.decisions(logits, [RASH])
    assert one.name == "event" and one.probability == pytest.approx(0.59)
    (other,) = replace(rule, threshold=0.6).decisions(logits, [RASH])
    assert other.name == "relieved" and other.probability == pytest.approx(0.41)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "event"),
        ({"status": None}, "event"),
        ({"status": "negated"}, "relieved"),
        ({"label": INDICATION, "status": None}, "relieved"),
    ],
)
def test_what_the_tagger_took_for_no_event_needs_more_to_become_one(
    changes: dict[str, Any], name: str
) -> None:
    rule = Rule(("event", "relieved"), threshold=0.1, raised_from=0.7)
    mention = replace(RASH, **changes)
    (found,) = rule.decisions(torch.tensor([[0.6, 0.4]]).log(), [mention])
    (sure,) = rule.decisions(torch.tensor([[0.75, 0.25]]).log(), [mention])
    assert (found.name, sure.name) == (name, "event")


def test_its_decision_replaces_that_of_the_tagger(tiny_mpnet: str) -> None:
    relieving = judge(tiny_mpnet, [0.0, 5.0], ("event", "relieved"))
    (found,) = relieving.predict([Case(TEXT, (RASH, DRUG_MENTION))])
    assert found == [replace(RASH, label=INDICATION, status="relieved", status_score=0.9933), DRUG_MENTION]
    found = judge(tiny_mpnet, [0.0, 5.0], ("event", "none")).predict([Case(TEXT, (RASH, DRUG_MENTION))])[0]
    assert found == [DRUG_MENTION]
    symptom = replace(RASH, label=SYMPTOM, status=None, status_score=None)
    found = judge(tiny_mpnet, [5.0, 0.0], ("event", "none")).predict([Case(TEXT, (symptom,))])[0]
    assert [(m.label, m.status) for m in found] == [(ADE, "own")]


def test_only_texts_with_an_effect_are_read(tiny_mpnet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = judge(tiny_mpnet, [1.0, 0.0], ("event", "none"))
    read: list[int] = []
    real = Encoder.hidden

    def counted(self: Encoder, sequences: list[list[int]]):  # type: ignore[no-untyped-def]
        read.append(len(sequences))
        return real(self, sequences)

    monkeypatch.setattr(Encoder, "hidden", counted)
    cases = [Case(TEXT, (DRUG_MENTION,)), Case(TEXT, ()), Case(TEXT, (RASH, DRUG_MENTION))]
    assert [len(m) for m in model.predict(cases)] == [1, 0, 2]
    assert read == [1]
    assert model.predict(cases[:2]) == [[DRUG_MENTION], []]
    assert read == [1]
    model.features.how = HowToRead(texts="events")
    symptom = replace(RASH, label=SYMPTOM)
    assert model.predict([Case(TEXT, (symptom,))]) == [[symptom]]
    assert read == [1]
    both = replace(symptom, start=0, end=3, text="the"), RASH
    assert [m.label for m in model.predict([Case(TEXT, both)])[0]] == [ADE, ADE]
    assert read == [1, 1]


def test_a_release_is_loaded_and_passes_its_canary(release: Release) -> None:
    loaded = load(release)
    assert (loaded.task, loaded.passes_canary()) == ("judge", True)
    (found,) = loaded.model.predict([Case(TEXT, (RASH,))])
    assert len(found) <= 1


@pytest.mark.parametrize("change", ["tokenizer.json", "model.safetensors", "missing"])
def test_a_release_over_another_base_is_refused(
    tmp_path: Path, tiny_mpnet: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_mpnet, base)
    made = tiny_release("judge", str(base), tmp_path / "root")
    if change == "missing":
        shutil.rmtree(base)
    else:
        (base / change).write_bytes((base / change).read_bytes() + b" ")
    monkeypatch.setattr(Encoder, "load", lambda *_, **__: pytest.fail("read before it was checked"))
    with pytest.raises(ReleaseError, match="missing" if change == "missing" else f"{change} has another"):
        load(open_release(made.path))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": ["event", "withdrawal", "relieved", "odd"]}, "unknown class 'odd'"),
        ({"classes": ["withdrawal", "relieved", "none"]}, "needs the class 'event'"),
        ({"classes": ["event", "none"]}, "not one of 2 classes"),
        ({"threshold": 2}, "threshold from 0 to 1"),
        ({"base_files": {"config.json": "0" * 64}}, "must declare the sha256"),
        ({"read": {"around": "page"}}, "page"),
    ],
)
def test_a_release_that_says_nothing_sensible_is_refused(
    release: Release, changed: dict[str, Any], message: str
) -> None:
    manifest = release.manifest.model_copy(update={"configuration": release.manifest.configuration | changed})
    with pytest.raises(ReleaseError, match=message):
        load(Release(release.path, manifest, release.version))


def test_a_head_may_have_a_hidden_layer(tmp_path: Path) -> None:
    head = JudgeHead(6, 2, hidden=4)
    save_file(head.state_dict(), tmp_path / "head.safetensors")
    again = JudgeHead.stored(head.state_dict(), 6, 2)
    vectors = torch.randn(3, 6)
    assert torch.equal(again(vectors), head(vectors))
    with pytest.raises(ReleaseError, match="2 classes over 7 numbers"):
        JudgeHead.stored(head.state_dict(), 7, 2)


@pytest.mark.slow
def test_the_real_base_tells_one_text_from_another() -> None:
    if not is_installed(NAME, FILES, CACHE):
        pytest.skip(f"the packages of {NAME} are not installed")
    encoder = Encoder.load(str(folder_of(NAME, FILES, CACHE)), max_pieces=128)
    texts = ["It gave me a headache.", "My head hurts because of it.", "Invoices are due in May."]
    near, far = (float(encoder.embed(texts)[0] @ encoder.embed(texts)[i]) for i in (1, 2))
    assert near > 0.5 > far
    rash = Mention(14, 22, "headache", ADE, 0.9)
    (vector,) = Features(encoder, HowToRead()).of([Case(texts[0], (rash,))])[0]
    assert vector is not None and vector.shape == (3 * 768,)
