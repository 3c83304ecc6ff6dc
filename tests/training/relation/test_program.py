"""The program that trains the relation model, and what its releases hold and relate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from models.encoder.weights import ADAPTER
from models.loading import load
from models.relation.model import RelationModel
from models.relation.neighbours import votes
from models.relation.spaces import UPPER_ADAPTER
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.types import ADE, DRUG
from training.common.checkpoint import CheckpointError
from training.relation.__main__ import main
from training.relation.data import TAGS, examples, read
from training.relation.settings import Objective
from training.relation.support_set import transitions_of

pytestmark = pytest.mark.matrix


def only_release(root: Path) -> Release:
    (path,) = (root / "relation").iterdir()
    return open_release(path)


@pytest.mark.parametrize("objective", ["all", "clner", "cldr", "clgs"])
def test_the_program_builds_what_it_trained(
    objective: Objective,
    corpus: Path,
    tiny_bert: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(
        data=corpus, objective=objective, output=tmp_path, base=tiny_bert, epochs=2, pair_epochs=2, batch=4,
        lr=1e-3, precision="float32",
    )  # fmt: skip
    release = only_release(tmp_path)
    assert (ADAPTER in release.manifest.files) == (objective in {"all", "clner"})
    assert (UPPER_ADAPTER in release.manifest.files) == (objective != "clner")
    model: Any = load(release, dtype="float32").model
    learnt = examples(read(corpus, "ade_fold_1", 42).train, model.spaces.encoder)
    assert np.array_equal(model.support.transitions, transitions_of(learnt))
    assert set(model.support.tags) <= {0, 2, 3, 4, 5}
    ids = set(model.support.pair_ids)
    assert ids <= {f"ade-{i}" for i in range(16)} | {f"neg-{i}" for i in range(10)}
    assert {f"ade-{i}" for i in range(16, 20)}.isdisjoint(ids)
    scores = {s.name: s for s in release.manifest.scores}
    assert scores["re_strict_macro_f1"].records == 4
    assert all(s.baseline is not None for s in scores.values())
    assert "condensed" in capsys.readouterr().out


def test_a_run_does_not_go_on_over_the_encoder_of_another_objective(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    run: dict[str, Any] = {
        "data": corpus, "base": tiny_bert, "epochs": 1, "pair_epochs": 1, "batch": 4,
        "precision": "float32", "run": tmp_path / "run",
    }  # fmt: skip
    main(output=tmp_path / "first", objective="clner", **run)
    main(output=tmp_path / "first", **run)
    for changed in ({"objective": "cldr"}, {"pair_lr": 1e-3}):
        with pytest.raises(CheckpointError, match="other settings"):
            main(output=tmp_path / "other", **run, **changed)
    # The same command goes on with what there is.
    main(output=tmp_path / "again", **run)


def test_a_run_with_the_teaching_corpus_learns_from_its_pairs_and_names_it(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    main(
        data=corpus, output=tmp_path, base=tiny_bert, epochs=1, pair_epochs=1, batch=4, teaching=0.05,
        precision="float32",
    )  # fmt: skip
    release = only_release(tmp_path)
    taught = [t for t in read(corpus, "ade_fold_1", 42, teaching=0.05).train if t.id.startswith("teaching-")]
    assert (
        release.manifest.training_data[-1].name
        == f"teaching corpus of pvstream, {len(taught)} synthetic texts"
    )
    model: Any = load(release, dtype="float32").model
    assert {t.id for t in taught if t.relations} <= set(model.support.pair_ids)


def test_a_trained_release_relates_what_it_was_trained_on_and_says_why(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    main(
        data=corpus, output=tmp_path, base=tiny_bert, epochs=40, pair_epochs=3, batch=4, lr=2e-3,
        precision="float32", patience=40,
    )  # fmt: skip
    gold = read(corpus, "ade_fold_1", 42).train[0]
    (found,) = load(only_release(tmp_path), dtype="float32").model.predict([gold.text])
    assert {(m.start, m.end, m.label) for m in found.mentions} == {
        (m.start, m.end, m.label) for m in gold.mentions
    }
    (one,) = found.relations
    assert (found.mentions[one.head].label, found.mentions[one.tail].label) == (DRUG, ADE)
    assert one.neighbours[0].id.startswith("ade-")
    assert one.neighbours[0].distance == pytest.approx(0, abs=1e-2)
    assert np.all(np.diff([n.distance for n in one.neighbours]) >= 0)


def test_a_release_without_transitions_is_read_and_one_with_others_is_not(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    main(
        data=corpus, objective="clner", output=tmp_path, base=tiny_bert, epochs=1, batch=4,
        precision="float32",
    )  # fmt: skip
    release = only_release(tmp_path)
    support = release.file("support.safetensors")
    tensors = load_file(support)
    one = tensors.pop("transitions")
    save_file(tensors, support)
    model = RelationModel.load(release)
    assert model.support.transitions is None
    tags, shares = model.tag_words(model.support.words, [len(model.support.words)])
    _, rows = model._word_index.search(model.support.words, model.voting.k_words)
    alone = votes(model.support.tags[rows], len(TAGS))
    assert tags.tolist() == alone.argmax(1).tolist()
    assert shares.tolist() == alone.max(1).tolist()
    save_file(tensors | {"transitions": one[:-1]}, support)
    with pytest.raises(ReleaseError, match="does not fit"):
        RelationModel.load(release)
