"""Every program over every family of encoders: a step of training, a release, its answers, the same again.

The models are tiny and random, so that the answers mean nothing. On a GPU: `PV_TEST_DEVICE=cuda`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.loading import as_json, load, model_class, same_answers
from models.releases.store import open_release
from models.types import ADE, DRUG, Case, Mention, Query
from tests.models.tiny_families import FAMILIES
from tests.training.acronym.corpus import write_corpus as write_acronyms
from tests.training.idiom.conftest import semeval
from tests.training.normalization.small_terms import write_corpus as write_mentions
from tests.training.recipes.runs import made
from tests.training.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import write_corpus as write_questions
from training.common import build
from training.evaluation.idiom import PRIMARY, STS
from training.idiom.train import IdiomTrainee
from training.summarization.decoder import Decoder

__all__ = ["semeval"]
#: The decoder of the summarizer learns from entities of the bundled tagger.
pytestmark = pytest.mark.usefixtures("few_written", "tiny_bundled")
DEVICE = os.environ.get("PV_TEST_DEVICE", "cpu")
TEXTS = ["Zoloft caused rash on day 3.", "a pain with PD", "Is it ok? Tea."]
Run = Callable[..., object]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Family to the folder of its model, of encoder-decoders too."""
    root = tmp_path_factory.mktemp("bases")
    (root / "bart").mkdir()
    (root / "t5").mkdir()
    makers = FAMILIES | {"bart": tiny_seq2seq.bart, "t5": tiny_seq2seq.t5}
    return {family: make(root / family) for family, make in makers.items()}


@pytest.fixture(scope="module")
def runs(corpus: Path, semeval: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """Task to its program with the settings of a small run; `base` and `output` are left to be given."""
    root = tmp_path_factory.mktemp("programs")
    for name in ("acronyms", "mentions", "questions"):
        (root / name).mkdir()
    mentions, plain = write_mentions(root / "mentions"), {"precision": "float32", "device": DEVICE}
    acronyms, questions = write_acronyms(root / "acronyms"), write_questions(root / "questions/data")
    tagging: dict[str, Any] = dict(data=corpus, epochs=1, batch=8, corpora="psytar", decode="paper")
    relating: dict[str, Any] = dict(data=corpus, objective="cldr", epochs=1, batch=8, teaching=0.0)
    coding: dict[str, Any] = dict(
        data=mentions / "data", terms=str(mentions / "terms.tsv"), epochs=1, trained="context", batch=32
    )
    expanding: dict[str, Any] = dict(
        data=acronyms, corpora="sdu22_scientific", objective="m", epochs=1, pieces=64,
    )  # fmt: skip
    comparing: dict[str, Any] = dict(data=semeval, pooling="last_two", epochs=1, rank=2, batch=16)
    asking: dict[str, Any] = dict(
        data=questions, epochs=1, batch=4, negatives=2, limit=20,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        # An epoch is kept whatever it does to these vectors.
        patch.setattr(IdiomTrainee, "validate", lambda self, number: {PRIMARY: 0.1 * number, STS: 0.5})
        yield {
            "ner": lambda base, **more: made("ner", base=base, **tagging | plain | more),
            "normalization": lambda base, **more: made("normalization", base=base, **coding | plain | more),
            "relation": lambda base, **more: made("relation", base=base, **relating | plain | more),
            "acronym": lambda base, **more: made("acronym", base=base, **expanding | plain | more),
            "idiom": lambda base, **more: made("idiom", base=base, **comparing | plain | more),
            "summarization": lambda base, **more: made(
                "summarization",
                base=base,
                method="decoder" if Path(base).name in ("bart", "t5") else "extract",
                **asking | plain | more,
            ),
        }


TASKS = ("ner", "normalization", "relation", "acronym", "idiom", "summarization")
#: The families of every task; those but BERT, and T5 for the summarizer, are left out of `make check`.
CELLS = [
    pytest.param(
        (task, family), id=f"{task}-{family}", marks=[] if family == "bert" else [pytest.mark.matrix]
    )
    for task in TASKS
    for family in FAMILIES
    # The layers of an ALBERT share their weights: none is trained apart.
    if family != "albert" or task not in ("relation", "acronym")
]
CELLS += [
    pytest.param(("summarization", "bart"), id="summarization-bart", marks=pytest.mark.matrix),
    pytest.param(("summarization", "t5"), id="summarization-t5"),
]


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices of the encoders that are loaded once a release is built, to be measured. The device of the
    run is the same processor under another name: tensors are where they were, and the name can be followed.
    """
    found: list[str] = []

    def following(name: str) -> Any:
        method = getattr(Encoder, name).__func__

        def loaded(kind: type[Encoder], /, base: str, *, device: str = "cpu", **more: Any) -> Encoder:
            found.append(device)
            encoder: Encoder = method(kind, base, device=device, **more)
            return encoder

        return classmethod(loaded)

    def with_building(task: str) -> Any:
        found.clear()
        return model_class(task)

    if DEVICE == "cpu":
        monkeypatch.setattr(f"{made.__module__}.device_of", lambda name: torch.device("cpu", 0))
    for name in ("load", "for_inference"):
        monkeypatch.setattr(Encoder, name, following(name))
    monkeypatch.setattr(build, "model_class", with_building)
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_a_family_is_trained_measured_on_the_runs_device_loaded_and_answers_alike_again(
    cell: tuple[str, str], runs: dict[str, Run], bases: dict[str, str], places: list[str], tmp_path: Path
) -> None:
    task, family = cell
    runs[task](bases[family], output=tmp_path)
    own = places[: 2 if task == "relation" else 1]
    assert own == ["cpu:0" if DEVICE == "cpu" else DEVICE] * len(own) != []
    (path,) = (tmp_path / task).iterdir()
    inputs: list[Any] = list(TEXTS)
    if task == "normalization":
        inputs = [Query(t, 0, 6, t[:6]) for t in TEXTS]
    elif task == "relation":
        inputs = [Case(t, (Mention(0, 1, t[0], DRUG, 1.0), Mention(2, 6, t[2:6], ADE, 1.0))) for t in TEXTS]
    release = open_release(path)
    assert release.manifest.base_sha256 == base_digest(bases[family])
    # Loading compares its answers with those that the release was built with.
    if task == "summarization" and family in ("bart", "t5"):  # what no stage serves
        model: Any = Decoder.load(release, device=DEVICE)
    else:
        model = load(release, device=DEVICE, dtype="float32").model
    alone, answers = as_json(model.predict(inputs[:2])), as_json(model.predict(inputs))
    assert len(answers) == len(TEXTS) - (task == "idiom")
    assert same_answers(alone, answers[: len(alone)], 1e-4)


@pytest.mark.parametrize("task", TASKS[:-1])
def test_an_encoder_decoder_is_refused_where_vectors_of_words_are_needed(
    task: str, runs: dict[str, Run], bases: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        runs[task](bases["bart"], output=tmp_path / "out")
    assert str(refused.value) == (
        f"{bases['bart']} (of the family bart) cannot be used: it is an encoder-decoder, an encoder is needed"
    )
    assert not (tmp_path / "out").exists()


def test_a_base_with_too_few_positions_for_a_task_is_refused(
    runs: dict[str, Run], bases: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(typer.BadParameter, match="it cannot read 400 pieces at once"):
        runs["acronym"](bases["roberta"], output=tmp_path, pieces=400)


def test_an_equal_run_gives_equal_files(runs: dict[str, Run], bases: dict[str, str], tmp_path: Path) -> None:
    for name in ("one", "other"):
        torch.manual_seed(len(name))
        runs["ner"](bases["modernbert"], output=tmp_path / name)
    one, other = (open_release(next((tmp_path / n / "ner").iterdir())) for n in ("one", "other"))
    assert one.manifest.files == other.manifest.files
