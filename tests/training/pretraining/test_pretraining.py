"""Masked-language pretraining: what is read and hidden, and what a tagger begins with."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import typer
from safetensors.torch import load_file, save_file

from models.encoder.model import Encoder
from models.releases.store import open_release
from tests.models import tiny
from training import unlabelled
from training.common.checkpoint import CheckpointError
from training.common.loop import TrainingLoop
from training.common.pretrained import read_sources
from training.ner.__main__ import main as train_ner
from training.ner.settings import Settings as NerSettings
from training.ner.trainer import _beginning
from training.pretraining.__main__ import main
from training.pretraining.data import masked
from training.pretraining.settings import Settings
from training.pretraining.trainer import MaskedTrainee
from training.teaching.readers import gold_texts
from training.unlabelled import read_unlabelled

MASK = 4
TEXTS = ["the drug made pain", "no pain since the drug", "drug and pain", "the pain of day two"] * 8


def test_a_share_of_each_text_is_hidden() -> None:
    batch = [list(range(10, 30)), [50], list(range(40, 45))]
    found = masked(batch, 0.2, MASK, [7, 8], random.Random(3))
    assert Counter(found.rows.tolist()) == {0: 4, 1: 1, 2: 1}
    places = set(zip(found.rows.tolist(), found.columns.tolist(), strict=True))
    assert len(places) == len(found.targets)
    for (row, column), target in zip(
        zip(found.rows.tolist(), found.columns.tolist(), strict=True), found.targets.tolist(), strict=True
    ):
        assert batch[row][column] == target
    for row, (before, after) in enumerate(zip(batch, found.sequences, strict=True)):
        changed = {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
        assert changed <= {column for r, column in places if r == row}


def test_most_hidden_pieces_are_masks_and_some_stay_or_become_others() -> None:
    found = masked([[9] * 20] * 400, 0.5, MASK, [7, 8], random.Random(1))
    hidden = Counter(
        found.sequences[r][c] for r, c in zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    )
    assert sum(hidden.values()) == 4000
    assert hidden[MASK] / 4000 == pytest.approx(0.8, abs=0.03)
    assert hidden[9] / 4000 == pytest.approx(0.1, abs=0.02)
    assert (hidden[7] + hidden[8]) / 4000 == pytest.approx(0.1, abs=0.02)


def test_no_text_of_a_test_part_is_read(corpus: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(corpus, tmp_path / "corpus"))
    tested = (folder / "psytar/ner_test.conll").read_text(encoding="utf-8")
    with (folder / "psytar/ner_train.conll").open("a", encoding="utf-8") as file:
        file.write("\n" + tested)
    (folder / "questions").mkdir()
    rows = [
        {"question": "is this text long enough to be a question of a patient?", "faq": "short?"},
        {
            "question": "Zoloft caused liver pain on day 16 .",
            "faq": "why does the drug make me so tired all day?",
        },
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    (folder / "questions/rqe_train.jsonl").write_text(lines, encoding="utf-8")
    own = tmp_path / "own.jsonl"
    own.write_text('{"text": "a post of my own"}\n', encoding="utf-8")
    found = read_unlabelled(folder, "ade_fold_1", own)
    assert len(set(found.texts)) == len(found.texts)
    held_out = {t.text for kind in ("posts", "clinical") for t in gold_texts(kind, "held_out")}
    assert not held_out & set(found.texts)
    days = [text for text in found.texts if text.startswith("Since day")]
    assert days == [f"Since day {i} of zoloft no sleep ." for i in range(12)]
    assert not any(
        f"on day {i} ." in text and "caused" in text for text in found.texts for i in range(16, 20)
    )
    assert {"a post of my own", rows[0]["question"], rows[1]["faq"]} <= set(found.texts)
    assert "short?" not in found.texts
    names = [source.name.split(",")[0].split(" (")[0] for source in found.sources]
    corpora = ["ADE corpus v2", "ADE corpus v2", "PsyTAR", "teaching corpus of pvstream", "RQE"]
    assert names == [*corpora, "texts of own.jsonl"]


@pytest.mark.parametrize("line", ["no JSON", '{"id": 1}', "[1]", '{"text": 3}'])
def test_a_line_without_a_text_is_named(corpus: Path, tmp_path: Path, line: str) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('{"text": "a"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(typer.BadParameter, match="line 2 is no JSON object with a text"):
        read_unlabelled(corpus, "ade_fold_1", own)


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the teaching corpus only the first texts are read."""
    monkeypatch.setattr(unlabelled, "gold_texts", lambda *named: gold_texts(*named)[:10])


def loop(base: str, folder: Path | None = None) -> TrainingLoop:
    settings = Settings(base=base, epochs=3, batch=4, held_out=4, lr=2e-3, head_lr=5e-3)
    return TrainingLoop(MaskedTrainee(settings, TEXTS, "cpu"), {}, folder)


def trainee(run: TrainingLoop) -> MaskedTrainee:
    assert isinstance(run.trainee, MaskedTrainee)
    return run.trainee


def test_hidden_pieces_become_likelier_and_embeddings_stay(tiny_bert: str) -> None:
    run = loop(tiny_bert)
    run.run()
    scores = [epoch.scores["log-probability"] for epoch in run.curve]
    assert scores[-1] > scores[0] + 0.5
    before, after = Encoder.load(tiny_bert).model.state_dict(), trainee(run).encoder.model.state_dict()
    changed = {name for name, tensor in before.items() if not torch.equal(tensor, after[name])}
    assert changed == set(trainee(run).weights_file())
    assert changed
    assert not any(name.startswith("embeddings") for name in changed)


def test_a_killed_run_resumes_to_the_same_weights(tiny_bert: str, tmp_path: Path) -> None:
    whole = loop(tiny_bert)
    whole.run()
    for epoch in loop(tiny_bert, tmp_path).epochs():
        if epoch.number == 1:
            break
    torch.manual_seed(99)
    resumed = loop(tiny_bert, tmp_path)
    resumed.run()
    one, other = (trainee(run).weights_file() for run in (whole, resumed))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.usefixtures("few_texts")
def test_a_tagger_begins_with_the_weights_and_names_what_they_learned(corpus: Path, tmp_path: Path) -> None:
    base, weights = tiny.bert(tmp_path / "base"), tmp_path / "runs/pretrained.safetensors"
    main(data=corpus, output=weights, base=base, epochs=1, held_out=4, batch=64)
    stored = load_file(weights)
    encoder, *_ = _beginning(NerSettings(base=base, rank=0, pretrained=str(weights)))
    begun = encoder.model.state_dict()
    assert all(torch.equal(begun[name], tensor.float()) for name, tensor in stored.items())
    train_ner(
        data=corpus, output=tmp_path, base=base, epochs=1, rank=0, eight_bit=True, pretrained=str(weights)
    )
    (path,) = (tmp_path / "ner").iterdir()
    named = [source.name for source in open_release(path).manifest.training_data]
    assert len(named) == len(set(named))
    assert set(named) >= {source.name for source in read_sources(weights, base, "ade_fold_1")}


@pytest.mark.usefixtures("few_texts")
def test_other_weights_are_refused_before_training(corpus: Path, tiny_bert: str, tmp_path: Path) -> None:
    base, weights = tiny.mpnet(tmp_path / "base"), tmp_path / "pretrained.safetensors"
    main(data=corpus, output=weights, base=tiny_bert, epochs=1, held_out=4, batch=64)
    plain = tmp_path / "plain.safetensors"
    save_file(load_file(weights), plain)
    for file, other, rank, reason in (
        (weights, base, 0, "holds weights for another base"),
        (plain, tiny_bert, 0, "is no file of training.pretraining"),
        (tmp_path / "none", tiny_bert, 0, "is no file of training.pretraining"),
        (weights, tiny_bert, 2, "is for --rank 0"),
    ):
        with pytest.raises(typer.BadParameter, match=reason):
            train_ner(data=corpus, output=tmp_path, base=other, epochs=1, rank=rank, pretrained=str(file))
    with pytest.raises(typer.BadParameter, match="holds weights for ade_fold_1, not for ade_group_3"):
        train_ner(
            data=corpus, output=tmp_path, base=tiny_bert, rank=0, pretrained=str(weights), split="ade_group_3"
        )


def test_few_texts_and_bases_that_cannot_be_used_are_refused(
    tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(typer.BadParameter, match="3 texts, of which 600 are held out"):
        MaskedTrainee(Settings(base=tiny_bert), TEXTS[:3])
    encoder = Encoder.load(tiny_bert)
    monkeypatch.setattr(Encoder, "load", lambda base: encoder)
    monkeypatch.setattr(encoder, "dimension", 64)
    with pytest.raises(typer.BadParameter, match="embeddings of another size"):
        MaskedTrainee(Settings(base=tiny_bert, held_out=1), TEXTS)
    monkeypatch.setattr(encoder, "tokenizer", SimpleNamespace(mask_token_id=None))
    with pytest.raises(typer.BadParameter, match="has no mask token"):
        MaskedTrainee(Settings(base=tiny_bert, held_out=1), TEXTS)
    with pytest.raises(typer.BadParameter, match="is a folder"):
        main(data=tmp_path, output=tmp_path, base=tiny_bert)


@pytest.mark.usefixtures("few_texts")
def test_a_run_does_not_resume_over_other_texts(corpus: Path, tiny_bert: str, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('{"text": "a post of my own"}\n', encoding="utf-8")
    output, run = tmp_path / "pretrained.safetensors", tmp_path / "run"
    main(data=corpus, output=output, base=tiny_bert, epochs=1, held_out=4, batch=64, run=run)
    with pytest.raises(CheckpointError):
        main(data=corpus, output=output, base=tiny_bert, epochs=1, held_out=4, batch=64, run=run, texts=own)
