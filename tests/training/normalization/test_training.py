"""Training the coder: the split, the losses, a few steps on tiny data, and the release that comes out."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from models.encoder.added_tokens import extended_embedding
from models.encoder.model import Encoder
from models.normalization.context_refining import marker_tokens
from models.normalization.model import NormalizationModel
from models.releases.loading import load
from models.releases.manifest import ReleaseError
from models.releases.store import open_release
from models.terminology import Term
from models.types import Query
from tests.models import tiny
from training.common.checkpoint import CheckpointError
from training.common.coding_split import (
    Split,
    heldout_split,
    listed,
    mention_key,
    pts_by_term,
    query,
    right_terms,
)
from training.common.corpora import GoldCoding
from training.normalization import run as normalization
from training.normalization.context_refining import Settings, cosine_embedding, examples, softmax_loss
from training.normalization.nil_threshold import best_threshold, risk_coverage
from training.normalization.refinement import accuracy, joined, release_files, train
from training.normalization.trainer import Trainer

TERMS = [
    Term("insomnia", "Insomnia", "-"),
    Term("no sleep", "Insomnia", "-"),
    Term("nausea", "Nausea", "-"),
    Term("sick", "Nausea", "-"),
    Term("pain", "Pain", "-"),
    Term("aches", "Pain", "-"),
    Term("rash", "Rash", "-"),
]
BY_TERM = pts_by_term(TERMS)
LAY = {"awake": "insomnia", "queasy": "nausea", "hurts": "pain", "spots": "rash"}


def gold(mention: str, term: str, drug: str = "a", sentence: str = "") -> GoldCoding:
    return GoldCoding(mention, sentence or f"the drug gave me {mention} all day", drug, (term,))


GOLDS = [
    gold(f"{word} {n}", term, drug)
    for n, drug in enumerate(["a", "a", "b", "c", "d", "e"])
    for word, term in LAY.items()
]
SMALL = Settings(epochs=2, rank=4, lr=3e-3, batch=4, window=40)


def trainer_of(base: str, settings: Settings = SMALL) -> Trainer:
    encoder = Encoder.load(base, max_pieces=32)
    return Trainer(encoder, encoder, TERMS, settings)


def quiet(_: str) -> None:
    pass


# The split


rows = st.builds(
    gold,
    st.sampled_from(["Pain", "pain ", "no  sleep", "no sleep", "bad rash", "sick", "so sick", "aches"]),
    st.sampled_from(["insomnia", "pain", "rash", "nausea", "no term of ours"]),
    st.sampled_from(["a", "A", "b", "c", "d"]),
)


@given(st.lists(rows, min_size=1, max_size=40), st.integers(0, 99))
def test_no_mention_no_drug_and_no_held_out_term_is_in_two_parts(golds: list[GoldCoding], seed: int) -> None:
    split = heldout_split(golds, BY_TERM, seed)
    strings = [{mention_key(g.mention) for g in part} for part in split]
    assert not strings[0] & strings[1]
    assert not strings[0] & strings[2]
    assert not strings[1] & strings[2]
    known = {g.drug.lower() for g in split.train + split.valid}
    # Of at least one drug every mention is tested.
    assert any(
        all(g in split.test for g in golds if g.drug.lower() == drug)
        for drug in {g.drug.lower() for g in golds} - known
    )
    assert heldout_split(golds, BY_TERM, seed) == split


def test_the_test_part_has_whole_drugs_and_whole_preferred_terms() -> None:
    golds = [gold(f"m{n}", f"term {n % 25}", "abcde"[n % 5]) for n in range(500)]
    split = heldout_split(golds, {})
    drugs = {g.drug for g in split.test if sum(o.drug == g.drug for o in split.train) == 0}
    assert len(drugs) == 1
    assert sum(g.drug in drugs for g in golds) == sum(g.drug in drugs for g in split.test)
    held = {g.terms for g in split.test if g.drug not in drugs}
    assert len(held) == 1
    assert not {g.terms for g in split.train + split.valid} & held
    assert sum(map(len, split)) < len(golds) + 1
    assert 0.08 < len(split.valid) / (len(split.train) + len(split.valid)) < 0.15


def test_a_preferred_term_is_held_out_under_all_its_names() -> None:
    golds = [gold(f"m{n}", t.llt, "ab"[n % 2]) for n, t in enumerate(TERMS * 20)]
    for seed in range(10):
        split = heldout_split(golds, BY_TERM, seed)
        held = {pt for g in split.valid + split.test for pt in right_terms(g, BY_TERM)} - {
            pt for g in split.train for pt in right_terms(g, BY_TERM)
        }
        assert not [g for g in split.train if right_terms(g, BY_TERM) & held]


def test_the_split_is_listed() -> None:
    split = Split([gold("x", "pain")], [gold("Y y", "aches")], [gold("z", "rash"), gold("z ", "rash", "B")])
    assert listed(split, BY_TERM) == {
        "train": {"rows": 1, "mentions": 1, "drugs": 1, "terms": 1, "unseen": 0},
        "valid": {"rows": 1, "mentions": 1, "drugs": 1, "terms": 1, "unseen": 0},
        "test": {"rows": 2, "mentions": 1, "drugs": 2, "terms": 1, "unseen": 2},
    }


@pytest.mark.parametrize(
    ("mention", "sentence", "wanted"),
    [
        ("weight gain", "Big Weight  Gain.", Query("Big Weight  Gain.", 4, 16, "Weight  Gain")),
        ("ache ", "headache, ache", Query("headache, ache", 10, 14, "ache")),
        ("ach", "headache", Query("headache", 4, 7, "ach")),
        ("a (b", "so a (b here", Query("so a (b here", 3, 7, "a (b")),
        ("not there", "a sentence", Query("not there", 0, 9, "not there")),
        (" ", "a sentence", Query(" ", 0, 1, " ")),
    ],
)
def test_a_mention_is_asked_for_where_its_sentence_has_it(mention: str, sentence: str, wanted: Query) -> None:
    assert query(GoldCoding(mention, sentence, "a", ())) == wanted


# The losses


def test_the_cosine_embedding_loss_is_that_of_the_paper() -> None:
    refined = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    positive = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    negative = torch.tensor([[-1.0, 0.0], [3.0, 4.0]])
    # Positives: 1 - cos 45 degrees, 0. Negatives: max(0, -1), 0.8.
    wanted = ((1 - 0.5**0.5) + 0 + 0 + 0.8) / 4
    assert cosine_embedding(refined, positive, negative).item() == pytest.approx(wanted, abs=1e-6)


def test_the_softmax_ignores_other_names_of_the_right_term() -> None:
    refined, terms = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    positive, right = torch.tensor([[True, False, False]]), torch.tensor([[True, True, False]])
    e = float(torch.e)
    found = softmax_loss(refined, terms, positive, right, 1.0).item()
    assert found == pytest.approx(-torch.log(torch.tensor(e / (e + 1))).item(), abs=1e-6)
    both = softmax_loss(refined, terms, right, right, 1.0).item()
    assert both == pytest.approx(-torch.log(torch.tensor(2 * e / (2 * e + 1))).item(), abs=1e-6)


# Training


def test_an_example_has_its_named_rows_and_all_rows_of_the_right_term(tiny_bert: str) -> None:
    trainer = trainer_of(tiny_bert)
    known, alone = examples(
        [gold("hurts", "Aches"), gold("x", "unknown"), gold("spots", "rash", sentence="spots")],
        TERMS,
        trainer.context,
    )
    assert (known.named, known.right) == ((5,), (4, 5))
    assert known.pieces is not None
    assert marker_tokens(trainer.context)[0] in known.pieces
    assert (alone.pieces, alone.named) == (None, (6,))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hard_negatives": True},
        {"in_batch": True},
        {"in_batch": True, "hard_negatives": True, "synonyms": True},
        {"all_terms": True},
        {"all_terms": True, "synonyms": True, "isolated": True},
        {"isolated": True},
        {"rank": 0},
        {"swap": 0.5, "synonyms": True, "all_terms": True},
    ],
    ids=str,
)
def test_training_lowers_the_loss_and_leaves_the_base_alone(tiny_bert: str, options: dict[str, Any]) -> None:
    settings = replace(SMALL, epochs=4, **options)
    trainer = trainer_of(tiny_bert, settings)
    base = Encoder.load(tiny_bert, max_pieces=32)
    before = {n: p.clone() for n, p in base.model.named_parameters()}
    curve = train(trainer, GOLDS, GOLDS, None, quiet)
    assert len(curve) == 4
    # Hard negatives become harder.
    assert min(row["loss"] for row in curve[1:]) < curve[0]["loss"]
    assert all(0 < row["context_weight"] < 1 for row in curve)
    assert all(torch.equal(p, before[n]) for n, p in base.model.named_parameters())
    assert all(p.grad is None for p in base.model.parameters())
    if not settings.isolated:
        assert trainer.isolated.model is base.model
        assert torch.equal(trainer.vectors, base.embed([t.llt for t in TERMS]))
    rows = extended_embedding(trainer.context).rows
    assert not torch.allclose(rows[0], rows[1])


def test_a_swapped_mention_stands_in_the_sentence_and_wants_the_other_terms(tiny_bert: str) -> None:
    trainer = trainer_of(tiny_bert, replace(SMALL, swap=1.0))
    data = examples(GOLDS, TERMS, trainer.context)
    found = trainer.swapped(data, random.Random(4))
    assert {e.query.surface for e in found} == {t.llt for t in TERMS if t.pt != "Rash"}
    for before, after in zip(data, found, strict=True):
        assert after.query.text == before.query.text
        assert len(after.same) == 1
        assert set(after.right) - set(after.same) == {[t.llt for t in TERMS].index(after.query.surface)}
        assert after.pieces != before.pieces
    assert trainer_of(tiny_bert).swapped(data, random.Random(4)) == data


def test_no_gradient_reaches_s_isolated(tiny_bert: str) -> None:
    trainer = trainer_of(tiny_bert)
    data = examples(GOLDS[:4], TERMS, trainer.context)
    trainer.context.model.train()
    trainer.loss(data, [0, 2, 4, 6], random.Random(1)).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in trainer.isolated.model.parameters())
    assert not trainer.isolated.model.training
    assert all(p.grad is not None and p.grad.any() for p in trainer.refining.parameters())
    assert extended_embedding(trainer.context).rows.grad is not None
    trained = [n for n, p in trainer.context.model.named_parameters() if p.grad is not None]
    assert all("lora_" in n or n.endswith(".rows") for n in trained)


@pytest.mark.parametrize("hard", [False, True])
def test_a_negative_is_of_another_preferred_term(tiny_bert: str, hard: bool) -> None:
    trainer = trainer_of(tiny_bert, replace(SMALL, hard_negatives=hard))
    data = examples(GOLDS, TERMS, trainer.context)
    for seed in range(5):
        found = trainer.negatives(data, random.Random(seed))
        assert not [e for e, row in zip(data, found, strict=True) if row in e.right]


def test_a_run_that_was_killed_ends_with_the_same_weights(
    tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SMALL, epochs=3)
    whole = trainer_of(tiny_bert, settings)
    curve = train(whole, GOLDS, GOLDS[:8], tmp_path / "whole", quiet)

    class Killed(Exception):
        pass

    told: list[str] = []

    def kill(line: str) -> None:
        told.append(line)
        if line.startswith("epoch   2"):
            raise Killed

    with pytest.raises(Killed):
        train(trainer_of(tiny_bert, settings), GOLDS, GOLDS[:8], tmp_path / "killed", kill)
    torch.manual_seed(99)
    resumed = trainer_of(tiny_bert, settings)
    again = train(resumed, GOLDS, GOLDS[:8], tmp_path / "killed", quiet)
    assert again == curve
    for one, other in zip(whole.state(), resumed.state(), strict=True):
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    # A run that is over trains no more.
    assert train(trainer_of(tiny_bert, settings), GOLDS, GOLDS[:8], tmp_path / "killed", quiet) == curve
    with pytest.raises(CheckpointError):
        train(trainer_of(tiny_bert, SMALL), GOLDS, GOLDS[:8], tmp_path / "killed", quiet)


def test_the_papers_kind_of_backbone_trains_a_step(tmp_path: Path) -> None:
    base = tiny.mpnet(tmp_path)
    trainer = trainer_of(base, replace(SMALL, epochs=1))
    (row,) = train(trainer, GOLDS[:8], GOLDS[:8], None, quiet)
    assert row["loss"] > 0
    assert 0 < row["context_weight"] < 1


def test_two_joined_adapters_add_what_both_add() -> None:
    def adapter(rank: int, layer: str) -> dict[str, torch.Tensor]:
        return {
            f"{layer}.lora_a": torch.randn(rank, 5).half(),
            f"{layer}.lora_b": torch.randn(3, rank).half(),
        }

    one, other, third = adapter(2, "x"), adapter(4, "x"), adapter(1, "y")
    found = joined(one | third, other)
    assert found["x.lora_a"].shape == (6, 5)
    wanted = torch.stack([a["x.lora_b"].float() @ a["x.lora_a"].float() for a in (one, other)]).sum(0)
    assert torch.allclose(found["x.lora_b"].float() @ found["x.lora_a"].float(), wanted, atol=1e-4)
    assert torch.equal(found["y.lora_a"], third["y.lora_a"])


# The program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of six drugs and a terminology."""
    (tmp_path / "data/psytar").mkdir(parents=True)
    lines = [f'{g.drug}.1,{g.mention},"{g.sentence}",{g.terms[0]}' for g in GOLDS]
    (tmp_path / "data/psytar/normalization.csv").write_text(
        "\n".join(["drug_id,mention,sentence,sider_meddra_terms", *lines]) + "\n", encoding="utf-8"
    )
    (tmp_path / "data/psytar/ner_train.conll").write_text("pain\tB-ADR\n", encoding="utf-8")
    table = "".join(f"{t.llt}\t{t.pt}\t{t.soc}\n" for t in TERMS)
    (tmp_path / "terms.tsv").write_text("llt\tpt\tsoc\n" + table, encoding="utf-8")
    return tmp_path


def made(folder: Path, base: str, **options: Any) -> Path:
    common: dict[str, Any] = {"data": folder / "data", "terms": folder / "terms.tsv", "epochs": 1, "rank": 2}
    output = folder / f"out{len(list(folder.iterdir()))}"
    normalization.main(output=output, base=base, **common | options)
    (path,) = (output / "normalization").iterdir()
    return path


@pytest.mark.parametrize("options", [{}, {"isolated": True}, {"rank": 0}], ids=str)
def test_the_program_publishes_a_release_that_reads_the_sentence(
    folder: Path, tiny_bert: str, options: dict[str, Any]
) -> None:
    release = open_release(made(folder, tiny_bert, **options))
    assert ("isolated.safetensors" in release.manifest.files) is ("isolated" in options)
    coverage = [row["coverage"] for row in release.manifest.configuration["risk_coverage"]]
    assert coverage == sorted(coverage, reverse=True)
    loaded = load(release, dtype="float32")
    inside, alone = loaded.model.predict(
        [Query("it hurts all day", 3, 8, "hurts"), Query("hurts", 0, 5, "hurts")]
    )
    assert 0 < inside.context_weight < 1
    assert alone.context_weight is None
    names = {s.name: s for s in release.manifest.scores}
    assert {"acc@1", "acc@5", "acc@10", "acc@1_seen", "acc@1_unseen", "context_weight", "f1"} <= names.keys()
    assert names["acc@1"].baseline is not None


def test_a_release_can_begin_with_anothers_adapter(folder: Path, tiny_bert: str) -> None:
    first = made(folder, tiny_bert)
    second = open_release(made(folder, tiny_bert, start=first, start_isolated=first))
    one, other = load_file(first / "adapter.safetensors"), load_file(second.file("adapter.safetensors"))
    assert all(other[n].numel() == 2 * t.numel() for n, t in one.items())
    begun = load_file(second.file("isolated.safetensors"))
    assert all(torch.equal(begun[n], t) for n, t in one.items())
    assert load(second, dtype="float32").passes_canary()


def test_a_release_with_matrices_but_no_trained_context_is_refused(
    folder: Path, tiny_bert: str, tmp_path: Path
) -> None:
    release = open_release(made(folder, tiny_bert))
    files = {n: f for n, f in release.manifest.files.items() if n != "adapter.safetensors"}
    release.manifest = release.manifest.model_copy(update={"files": files})
    with pytest.raises(ReleaseError, match="without a trained S_context"):
        load(release, dtype="float32")


@pytest.mark.parametrize("options", [{}, {"isolated": True}, {"rank": 0}], ids=str)
def test_other_terms_are_coded_to_with_the_same_encoders(
    folder: Path, tiny_bert: str, options: dict[str, Any]
) -> None:
    first = made(folder, tiny_bert, **options)
    (folder / "other.tsv").write_text("llt\tpt\tsoc\nsore\tPain\t-\nfit\tSeizure\t-\n", encoding="utf-8")
    other = open_release(made(folder, tiny_bert, data=None, terms=folder / "other.tsv", like=first))
    asked = [Query("it hurts all day", 3, 8, "hurts")]
    one, two = (NormalizationModel.load(open_release(p)) for p in (first, other.path))
    (wanted,), (found,) = one.with_terms(two.terms, 5).predict(asked), two.predict(asked)
    assert {c.pt for c in found.candidates} == {"Pain", "Seizure"}
    # The stored vectors have 8 bits.
    assert found.candidates[0].score == pytest.approx(wanted.candidates[0].score, abs=0.01)
    assert found.context_weight == wanted.context_weight
    assert two.nil_below == one.nil_below
    assert "risk_coverage" not in other.manifest.configuration


def test_training_wants_data(folder: Path, tiny_bert: str) -> None:
    with pytest.raises(Exception, match="--data"):
        made(folder, tiny_bert, data=None)


def test_the_curve_of_risk_and_coverage_counts_what_is_coded() -> None:
    rows = [(0.9, True), (0.5, False), (0.3, False)]
    found = {row["threshold"]: row for row in risk_coverage(rows)}
    assert (found[0.2]["coverage"], found[0.2]["accuracy"]) == (1.0, 0.3333)
    assert (found[0.6]["coverage"], found[0.6]["accuracy"]) == (0.3333, 1.0)
    assert (found[0.95]["coverage"], found[0.95]["accuracy"]) == (0.0, 0.0)
    # From 0.51 on only the right one is coded.
    assert best_threshold(rows) == 0.51
    assert best_threshold([*rows, (0.4, True), (0.45, True), (0.35, True)]) == 0.31


def test_accuracy_is_over_the_mentions_whose_term_is_known(tiny_bert: str) -> None:
    model = trainer_of(tiny_bert).model()
    right, weight = accuracy(model, [gold("pain", "pain", sentence="pain"), gold("x", "unknown")])
    assert (right, weight) == (1.0, 0.0)
    assert release_files(trainer_of(tiny_bert), {}, {}).keys() == {"dcr.safetensors", "adapter.safetensors"}
