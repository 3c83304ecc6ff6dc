"""The judge reads again the texts with an effect, or with a stated medicine, and no other."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from models.encoder import mpnet
from models.encoder.base_files import MINI, resolve_base
from models.encoder.model import Encoder
from models.loading import load
from models.ner.decoding import Decoding
from models.ner.heads import Head
from models.ner.judge import LONGEST, OWN_UNSTATED_FROM, JudgeModel, is_read
from models.ner.model import NerModel
from models.ner.sentences import behind, stated_before
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.types import ADE, DRUG, INDICATION, LABELS, SYMPTOM, WITHDRAWAL, Case, Mention, Stated
from tests.tiny_releases import tiny_release

RASH = Mention(4, 8, "rash", ADE, 0.9, status="own", status_score=0.8)
NAME = Mention(13, 17, "drug", DRUG, 1.0)
TEXT = "the rash and drug"
STATED = Stated(("zoloft",), "low mood")


class Reader:
    """In the place of the larger tagger: says that every text is about relief, and notes what it reads."""

    def __init__(self) -> None:
        self.read: list[tuple[str, Stated]] = []
        self.decoding = Decoding()

    def predict(self, batch: Sequence[str], stated: Sequence[Stated] = ()) -> list[list[Mention]]:
        self.read += zip(batch, stated, strict=True)
        return [[Mention(0, 3, text[:3], INDICATION, 1.0)] for text in batch]


@pytest.fixture(scope="module")
def release(tiny_mpnet: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return tiny_release("judge", tiny_mpnet, tmp_path_factory.mktemp("judge"))


@pytest.mark.parametrize(
    ("case", "read"),
    [
        (Case(TEXT, (RASH,)), True),
        (Case(TEXT, (replace(RASH, label=WITHDRAWAL, status=None),)), True),
        (Case(TEXT, (NAME, replace(RASH, status="negated"))), True),
        (Case(TEXT, (replace(RASH, label=SYMPTOM, status="own"),)), True),
        (Case(TEXT, (replace(RASH, label=SYMPTOM, status=None),)), False),
        (Case(TEXT, (replace(RASH, label=INDICATION, status="relieved"),)), False),
        (Case(TEXT, (NAME,)), False),
        (Case(TEXT, ()), False),
        (Case(TEXT, (), STATED), True),
        (Case(TEXT, (), Stated((), "low mood")), False),
        (Case(TEXT.ljust(LONGEST), (RASH,), STATED), True),
        (Case(TEXT.ljust(LONGEST + 1), (RASH,), STATED), False),
    ],
)
def test_texts_with_an_effect_or_a_stated_medicine_are_read(case: Case, read: bool) -> None:
    assert is_read(case) is read


def test_only_what_is_read_gets_other_mentions() -> None:
    reader = Reader()
    model = JudgeModel(reader)  # type: ignore[arg-type]
    cases = [Case(TEXT, (NAME,)), Case(TEXT, (RASH, NAME), STATED), Case("the cat", (), STATED), Case("", ())]
    found = model.predict(cases)
    assert reader.read == [(TEXT, STATED), ("the cat", STATED)]
    assert [[m.text for m in mentions] for mentions in found] == [["drug"], ["the"], ["the"], []]


def test_a_release_is_loaded_and_passes_its_canary(release: Release) -> None:
    loaded = load(release)
    assert (loaded.task, loaded.passes_canary()) == ("judge", True)
    (found,) = loaded.model.predict([Case(TEXT, (RASH,))])
    assert all(TEXT[m.start : m.end] == m.text for m in found)


def test_a_judge_over_the_base_of_the_other_tasks_is_loaded(tmp_path: Path) -> None:
    assert load(tiny_release("judge", MINI, tmp_path)).passes_canary()


@pytest.mark.parametrize("change", ["model.safetensors", "missing"])
def test_a_release_over_another_base_is_refused(
    tmp_path: Path, tiny_mpnet: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_mpnet, base)
    made = tiny_release("judge", str(base), tmp_path / "root")
    moved = tmp_path / "moved"
    base.rename(moved)
    if change != "missing":
        # The digest of a base is computed once in a process, so the other one is in another folder.
        (moved / change).write_bytes((moved / change).read_bytes() + b" ")
        manifest = made.manifest.model_copy(update={"base": str(moved)})
        made = Release(made.path, manifest, made.version)
    monkeypatch.setattr(Encoder, "for_inference", lambda *_, **__: pytest.fail("read before it was checked"))
    with pytest.raises(ReleaseError, match="missing" if change == "missing" else "another sha256"):
        load(made if change != "missing" else open_release(made.path))


@pytest.mark.parametrize("stated_read", [True, False])
def test_an_effect_counts_from_a_lower_probability_where_nothing_is_stated(
    tiny_mpnet: str, monkeypatch: pytest.MonkeyPatch, stated_read: bool
) -> None:
    encoder = Encoder.load(tiny_mpnet, max_pieces=64)
    model = JudgeModel(NerModel(encoder, Head(encoder.dimension, 10), LABELS, None))
    model.tagger.decoding = Decoding(own_from=0.6, stated_read=stated_read)
    own_from: list[tuple[list[str], float]] = []

    def noted(self: NerModel, batch: Sequence[str], _: Sequence[Stated]) -> list[list[Mention]]:
        own_from.append((list(batch), self.decoding.own_from))
        return [[] for _ in batch]

    monkeypatch.setattr(NerModel, "predict", noted)
    model.predict(
        [Case("a", (RASH,)), Case("b", (RASH,), STATED), Case("c", (RASH,), Stated((), "low mood"))]
    )
    assert own_from == [(["b", "c"], 0.6), (["a"], OWN_UNSTATED_FROM if stated_read else 0.6)]
    model.tagger.decoding.own_from = 0.1
    model.predict([Case("a", (RASH,))])
    assert own_from[-1] == (["a"], 0.1)


@pytest.mark.parametrize(
    ("stated", "sentence"),
    [
        (STATED, "Took zoloft for low mood. "),
        (Stated(("zoloft", "aspirin")), "Took zoloft, aspirin. "),
        (Stated((), "low mood"), "Took it for low mood. "),
        (Stated(), ""),
    ],
)
def test_what_is_stated_is_a_sentence_before_the_text(stated: Stated, sentence: str) -> None:
    assert stated_before(stated) == sentence


def test_mentions_behind_what_is_stated_have_their_places_in_the_text() -> None:
    before = Mention(5, 11, "zoloft", DRUG, 1.0)
    moved = replace(RASH, start=RASH.start + 26, end=RASH.end + 26)
    assert behind([before, moved], 26) == [RASH]
    assert behind([RASH], 0) == [RASH]


@pytest.mark.parametrize("stated_read", [True, False])
def test_a_release_says_whether_what_is_stated_is_read(tiny_mpnet: str, stated_read: bool) -> None:
    encoder = Encoder.load(tiny_mpnet, max_pieces=64)
    model = NerModel(encoder, Head(encoder.dimension, 10), LABELS, None)
    model.decoding = Decoding(stated_read=stated_read)
    read: list[str] = []
    real = model.read

    def noted(batch: Sequence[str]):  # type: ignore[no-untyped-def]
        read.extend(batch)
        return real(batch)

    model.read = noted  # type: ignore[method-assign]
    text = "\N{ZERO WIDTH SPACE}a bad rash \N{PILL} and drug"
    for stated in ([STATED, Stated()], []):
        for mentions in model.predict([text, text], stated):
            assert all(text[m.start : m.end] == m.text for m in mentions)
    begins = "Took zoloft for low mood. " if stated_read else ""
    assert read == [begins + text, text, text, text]


@pytest.mark.slow
def test_the_real_base_is_found_by_its_name() -> None:
    if not mpnet.is_installed():
        pytest.skip(f"the packages of {mpnet.NAME} are not installed")
    encoder = Encoder.load(resolve_base(mpnet.NAME), max_pieces=128)
    texts = ["It gave me a headache.", "My head hurts because of it.", "Invoices are due in May."]
    vectors = encoder.embed(texts)
    near, far = (float(vectors[0] @ vectors[i]) for i in (1, 2))
    assert near > 0.5 > far
