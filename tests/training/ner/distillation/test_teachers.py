"""What a tagger learns from other taggers."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.ner.model import NerModel
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.types import LABELS
from tests.models import tiny
from tests.training.ner.test_data import SENTENCES
from training.common.corpora import read_psytar
from training.common.loop import TrainingLoop
from training.ner.__main__ import main
from training.ner.assemble import training_sentences
from training.ner.data import UNKNOWN, UNLABELLED, Corpus, Example, examples, read
from training.ner.distillation.teachers import piece_numbers, teachers_of, with_targets
from training.ner.releases import check_split
from training.ner.settings import Settings
from training.ner.trainer import TaggerTrainee

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bert(tmp_path_factory.mktemp("teachers") / "base")


@pytest.fixture(scope="module")
def runs(base: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The outputs of two runs with other seeds."""
    made = []
    for seed in (1, 2):
        made.append(tmp_path_factory.mktemp("teacher"))
        small: dict[str, Any] = {"base": base, "rank": 0, "eight_bit": True, "phases": 1, "epochs": 2}
        main(data=corpus, output=made[-1], batch=4, lr=0.01, seed=seed, **small)
    return made


def release_of(run: Path) -> Release:
    (folder,) = (run / "ner").iterdir()
    return open_release(folder)


def unlabelled(base: str) -> list[Example]:
    corpus = Corpus(SENTENCES, [], (), None, labelled=False)
    return examples(corpus, Encoder.load(base), tags_of(LABELS))


def probabilities(model: NerModel, example: Example) -> torch.Tensor:
    (hidden,) = model.encoder.encode_pieces([example.pieces])
    logits: torch.Tensor = model.head(hidden, torch.tensor(example.flags, dtype=torch.float32))
    return logits.softmax(-1).detach()


def test_what_teachers_say_is_the_normalized_geometric_mean(base: str, runs: list[Path]) -> None:
    releases = [release_of(run) for run in runs]
    data = unlabelled(base)
    one, other = (NerModel.load(release) for release in releases)
    for example, given in zip(data, with_targets(data, releases, Settings(base=base)), strict=True):
        product = (probabilities(one, example) * probabilities(other, example)).sqrt()
        assert given.taught is not None
        assert given.taught.event is None
        wanted = product / product.sum(-1, keepdim=True)
        assert torch.allclose(given.taught.tags.float(), wanted, atol=1e-3)


def test_a_tagger_learns_from_texts_without_labels_what_its_teacher_says(base: str, runs: list[Path]) -> None:
    data = unlabelled(base)
    assert {tag for example in data for tag in example.tags} == {UNKNOWN}
    assert all(e.event is None and not e.effects for e in data)
    settings = Settings(
        base=base,
        rank=0,
        eight_bit=True,
        phases=1,
        epochs=12,
        lr=0.01,
        batch=4,
        keep="last",
        precision="float32",
    )
    learned = with_targets(data, [release_of(runs[0])], settings)
    trainee = TaggerTrainee(settings, learned, lambda model: {"posts": 0.5})
    before = distance(trainee.released(), learned)
    TrainingLoop(trainee, asdict(settings), None).run()
    assert distance(trainee.released(), learned) < before / 2


def distance(model: NerModel, data: list[Example]) -> float:
    """The mean difference of the probabilities from the teacher's."""
    gaps = [
        (probabilities(model, e) - e.taught.tags.float()).abs().mean() for e in data if e.taught is not None
    ]
    return float(torch.stack(gaps).mean())


def test_a_teacher_may_have_another_base_with_the_same_pieces(
    base: str, corpus: Path, tmp_path: Path
) -> None:
    other = tiny.mpnet(tmp_path / "mpnet")
    numbers = piece_numbers(base, other)
    own, theirs = Encoder.load(base).tokenizer, Encoder.load(other).tokenizer
    assert numbers is not None
    for text in ("the drug, 20mg", "pain \u00e9\u4e00", own.unk_token):
        pieces = own(text, add_special_tokens=False)["input_ids"]
        assert [numbers[p] for p in pieces] == theirs(text, add_special_tokens=False)["input_ids"]
    main(
        data=corpus, output=tmp_path, base=other, rank=0, eight_bit=True, phases=1, epochs=1, batch=4, lr=0.01
    )  # fmt: skip
    settings = Settings(base=base, teachers=str(tmp_path))
    (release,) = teachers_of(settings)
    model = NerModel.load(release)
    text = SENTENCES[0]
    corpora = (Corpus([text], [], (), None, labelled=False),)
    (mine,), (others,) = (examples(*corpora, e, tags_of(LABELS)) for e in (Encoder.load(base), model.encoder))
    (learned,) = with_targets([mine], [release], settings)
    assert mine.pieces != others.pieces
    assert learned.taught is not None
    assert torch.allclose(learned.taught.tags.float(), probabilities(model, others), atol=1e-3)


def test_a_run_with_teachers_states_what_they_knew(
    base: str, runs: list[Path], corpus: Path, tmp_path: Path
) -> None:
    names = ",".join(map(str, runs))
    own = tmp_path / "ward.jsonl"
    own.write_text('{"text": "no sleep on zoloft"}\n', encoding="utf-8")
    main(
        data=corpus, output=tmp_path, base=base, rank=0, eight_bit=True, phases=1, epochs=1, corpora="ade",
        teachers=names, unlabelled=4, texts=str(own), recombined=3,
    )  # fmt: skip
    manifest = release_of(tmp_path).manifest
    assert manifest.configuration["training"]["teachers"] == names
    sources = [source.name for source in manifest.training_data]
    assert any("PsyTAR" in source for source in sources)
    assert any("teaching corpus" in source for source in sources)
    assert sources[-1] == "texts of ward.jsonl"
    assert len(set(sources)) == len(sources)


def test_texts_without_labels_are_none_of_those_with_labels_and_none_that_is_tested(
    base: str, corpus: Path
) -> None:
    settings = Settings(base=base, teachers="any", unlabelled=1000, corpora="ade")
    corpora = read(corpus, settings)
    extra = {t.text for t in corpora[UNLABELLED].train}
    assert extra
    known = {t.text for t in (*corpora["clinical"].train, *corpora["clinical"].valid)}
    without = read(corpus, replace(settings, unlabelled=0))
    assert not extra & known
    tested = {t.text for t in read_psytar(corpus / "psytar/ner_test.conll")}
    assert any("day 14" in text for text in tested)
    assert not extra & tested
    assert len(training_sentences(corpora, settings)) - len(extra) == len(
        training_sentences(without, settings)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": "ade_group_1"}, "was trained on ade_fold_1, not on ade_group_1"),
        ({"base": "mini"}, "a teacher's base has the word pieces of mini, .* has others"),
        ({"event_head": True}, "a teacher needs an event head"),
    ],
)
def test_teachers_that_do_not_fit_are_refused(
    base: str, runs: list[Path], changes: dict[str, Any], message: str
) -> None:
    settings = replace(Settings(base=base, teachers=str(runs[0])), **changes)
    with pytest.raises(ReleaseError, match=message):
        teachers_of(settings)


@pytest.mark.parametrize(
    ("trained", "more", "fits"),
    [
        ({"split": "ade_group_1"}, {}, True),
        ({"split": "ade_fold_1"}, {}, False),
        ({"split": "ade_fold_1", "corpora": "psytar"}, {}, True),
        ({"split": "ade_fold_1", "corpora": "psytar", "teachers": "runs/first"}, {}, False),
        ({"split": "ade_fold_1", "corpora": "psytar"}, {"mean_of": ["a", "b"]}, False),
    ],
)
def test_a_tagger_without_the_ade_corpus_fits_every_split_unless_another_one_taught_it(
    runs: list[Path], trained: dict[str, Any], more: dict[str, Any], fits: bool
) -> None:
    release = release_of(runs[0])
    manifest = release.manifest.model_copy(update={"configuration": {"training": trained} | more})
    release.manifest = manifest
    with nullcontext() if fits else pytest.raises(ReleaseError, match="was trained on ade_fold_1"):
        check_split(release, Settings(split="ade_group_1"))


def test_a_run_does_not_begin_with_a_tagger_that_may_know_its_test_part(
    base: str, runs: list[Path], corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="was trained on ade_fold_1, not on ade_group_1"):
        main(
            data=corpus, output=tmp_path, base=base, rank=0, epochs=1, split="ade_group_1", start=str(runs[0])
        )


def test_texts_without_labels_need_teachers(base: str, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="for --teachers"):
        main(data=corpus, output=tmp_path, base=base, unlabelled=5)


def test_all_texts_of_a_file_are_learned_from_but_those_that_are_tested(
    base: str, corpus: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    texts = ["slept badly on zoloft", "Since day 14 of zoloft no sleep .", "fine so far"]
    own.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    read_texts = read(corpus, Settings(base=base, teachers="any", texts=str(own)))[UNLABELLED].train
    assert [t.text for t in read_texts] == ["slept badly on zoloft", "fine so far"]
    own.write_text('{"post": "a"}\n', encoding="utf-8")
    with pytest.raises(typer.BadParameter, match="line 1 is no JSON object with a text"):
        read(corpus, Settings(base=base, teachers="any", texts=str(own)))
