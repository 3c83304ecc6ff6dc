"""The ablations of Table 5 and the speed of a release, on a tiny base model and corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.summarization import __main__ as summarization
from benchmarks.summarization import ecl_ablations
from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel
from tests.models.summarization.tiny_writers import pointer_writer, ranked_writer
from training.common.loop import TrainingLoop
from training.evaluation.summarization.measure import ROUGES
from training.summarization.data import read
from training.summarization.ecl.trainer import SummarizerTrainee
from training.summarization.examples import material_of
from training.summarization.networks.hub_network import network_of
from training.summarization.networks.network import Network
from training.summarization.settings import Settings


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    (tmp_path / "questions").mkdir()
    rows = [
        {
            "id": f"{i}",
            "split": split,
            "question": f"Is drug{i} bad for my {split}{i}?",
            "summary": f"Is it {i}?",
        }
        for split in ("train", "test")
        for i in range(3)
    ]
    # A hundred questions are held out for validation; the others are for training.
    rows += [
        {"id": f"x{i}", "split": "train", "question": f"w{i} v{i} u{i}?", "summary": "s?"} for i in range(100)
    ]
    rqe = [{"id": "r", "entails": True, "question": "does the drug hurt?", "faq": "does it hurt?"}]
    for name, lines in (("meqsum", rows), ("rqe_train", rqe)):
        text = "\n".join(json.dumps(r) for r in lines)
        (tmp_path / f"questions/{name}.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def test_ablations_are_added_to_the_file_and_not_measured_again(
    questions: Path, tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = questions / "ablations.json"
    options: dict[str, Any] = {
        "pretraining": 1,
        "message_share": 0.0,
        "epochs": 1,
        "negatives": 2,
        "questions": 2,
    }
    options |= {"data": questions, "result": path, "backbone": tiny_bert, "precision": "float32"}
    ecl_ablations.main(**options, seeds=1)
    first = json.loads(path.read_bytes())
    assert {r["variant"] for r in first["rows"].values()} == set(ecl_ablations.VARIANTS)
    weights = {(r["settings"]["simple"], r["settings"]["hard"]) for r in first["rows"].values()}
    assert weights == set(ecl_ablations.VARIANTS.values())
    assert first["ECL rouge1"].endswith("1 seeds")
    del first["rows"]["ECL-h seed 1"]
    marked = first["rows"]["ECL seed 1"] = first["rows"]["ECL seed 1"] | {"rouge1": 77.0}
    path.write_text(json.dumps(first), encoding="utf-8")
    calls: list[float] = []

    def rouge_of(*_: object) -> dict[str, float]:
        calls.append(1.0)
        return dict.fromkeys(ROUGES, 1.0)

    monkeypatch.setattr(ecl_ablations, "rouge_of", rouge_of)
    ecl_ablations.main(**options, seeds=1)
    again = json.loads(path.read_bytes())["rows"]
    assert len(calls) == 1
    assert again["ECL seed 1"] == marked
    assert again["ECL-h seed 1"]["rouge1"] == 1.0


def test_ablations_start_from_the_weights_of_a_run(
    questions: Path, tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = read(questions, held_out=100, seed=ecl_ablations.SPLIT)
    settings = Settings(backbone=tiny_bert, pretraining=1, epochs=0, message_share=0.0, seed=9)
    network = network_of(settings, corpora)
    material = material_of(corpora, OwnRecogniser(None, [], DrugLexicon({})))
    trainee = SummarizerTrainee(network, settings, material)
    assert len(list(TrainingLoop(trainee, {}, questions / "run").epochs())) == 1
    initial: list[float] = []

    def fit(own: Network, *_: object) -> float:
        initial.append(sum(float(p.detach().sum()) for p in own.parts()[-1].parameters()))
        return 1.0

    monkeypatch.setattr(ecl_ablations, "fit", fit)
    ecl_ablations.main(
        data=questions,
        result=questions / "ablations.json",
        start=questions / "run",
        backbone=tiny_bert,
        seeds=1,
        questions=1,
        precision="float32",
    )
    # No first stage is trained; each variant starts with the weights of the run.
    assert len(initial) == len(ecl_ablations.VARIANTS)
    expected = sum(float(p.detach().sum()) for p in network.parts()[-1].parameters())
    assert initial == pytest.approx([expected] * len(initial))


def test_seeds_are_averaged() -> None:
    rows = {
        str(i): {"variant": "ECL", "rouge1": v, "rouge2": 1.0, "rougeL": 1.0}
        for i, v in enumerate((40.0, 42.0))
    }
    assert ecl_ablations.summary(rows)["ECL rouge1"] == "41.00 (sd 1.41), 2 seeds"


def test_the_beam_of_a_release_can_be_set(tiny_bert: str) -> None:
    small = Encoder.load(tiny_bert, max_pieces=32)
    writer = pointer_writer(small)
    recogniser = OwnRecogniser.bundled(None)
    model = SummarizationModel(small, writer, recogniser)
    assert summarization.set_beams(model, 1)
    assert writer.settings.beams == 1
    several = ranked_writer(small, 0.1, 0.2, 0.3, 0.4)
    assert summarization.set_beams(SummarizationModel(small, several, recogniser), 2)
    assert several.pointer.settings.beams == 2
    assert not summarization.set_beams(SummarizationModel(small, several.templates, recogniser), 2)
    assert summarization.speed(model, ["drug?"], 1) > 0
