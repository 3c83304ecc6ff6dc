"""The release of the extractor: trained, written, loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from models.encoder.model import Encoder
from models.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.summarization.extraction.extractor import Extractor
from training.summarization.__main__ import main
from training.summarization.extraction.release import training_pairs
from training.summarization.release import build
from training.teaching.readers import questions

pytestmark = pytest.mark.usefixtures("tiny_bundled")
ROWS = [
    ("test", "I take tea. Is tea fine?", "Is tea fine?"),
    ("train", "I take TEA; is tea fine", "Is tea fine?"),
    ("train", "I have gout. Does it hurt?", "Does gout hurt?"),
    ("train", "My aunt has lupus. What is the cause?", "What causes lupus?"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path) -> Path:
    """The folder, with the questions in it."""
    (folder / "questions").mkdir()
    rows = [
        {"id": str(i), "split": split, "question": question, "summary": summary}
        for i, (split, question, summary) in enumerate(ROWS)
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    (folder / "questions/meqsum.jsonl").write_text(lines, encoding="utf-8")
    return folder


def test_questions_of_an_evaluation_are_not_trained_on(data: Path) -> None:
    ids = {p.id for p in training_pairs(data)}
    assert {"2", "3"} == {i for i in ids if not i.startswith("teaching-")}
    held_out = {id_ for id_, _ in questions("held_out")}
    assert len(held_out) >= 400
    assert not ids & held_out


@pytest.fixture(scope="module")
def release(tiny_bundled: None, tiny_bert: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    data = written(tmp_path_factory.mktemp("extractive"))
    main(data=data, output=data / "out", backbone=tiny_bert, extractive=True, limit=8)
    (path,) = (data / "out/summarization").iterdir()
    return open_release(path)


def test_the_release_extracts_and_states_what_it_learnt_from(release: Release) -> None:
    manifest = release.manifest
    assert set(manifest.files) == {
        "focus_ranker.tsv",
        "answer_ranker.tsv",
        "insertion_ranker.tsv",
        "key_words.safetensors",
        "focus_terms.tsv",
        "focus_drugs.tsv",
    }
    assert manifest.configuration["questions"] == 10
    assert [source.licence for source in manifest.training_data] == ["CC BY 4.0", "CC0-1.0"]
    scores = {s.name: s.value for s in manifest.scores}
    assert scores == scores | {"extractive": 1.0, "unfaithful": 0.0, "invented": 0.0}
    loaded = load(release, dtype="float32")
    assert loaded.passes_canary()
    (short,) = loaded.model.predict(["Tea, please. I would like to know if tea is bad for me. Is it fine?"])
    assert short.text.endswith("?")


def test_weights_of_other_features_are_no_release(release: Release, tmp_path: Path) -> None:
    copied = shutil.copytree(release.path, tmp_path / "changed")
    release = Release(copied, release.manifest, release.version)
    path = release.path / "focus_ranker.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace("cosine", "sine"), encoding="utf-8")
    with pytest.raises(ReleaseError, match="finite weight"):
        Extractor.load(release, Encoder.load("mini"))


def test_an_encoder_alone_is_a_release_that_picks_a_whole_sentence(tmp_path: Path, tiny_bert: str) -> None:
    """The releases before this one had no rankers."""
    (tmp_path / "files").mkdir()
    release = build(
        tmp_path / "files",
        data=None,
        base=tiny_bert,
        root=tmp_path / "out",
        kind="extractive",
        configuration={"max_pieces": 256},
        training_data=[],
    )
    (short,) = load(release, dtype="float32").model.predict(["Tea. Hi, can you tell me is it fine?"])
    assert short.text == "Hi, can you tell me is it fine?"
