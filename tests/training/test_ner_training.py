"""Training the tagger: gold tags on words and pieces, a few steps, and the adapter that comes out of them."""

from __future__ import annotations

import copy
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from models.drugs import DrugLexicon
from models.encoder import ADAPTER, Encoder, merge_adapter
from models.loading import load
from models.ner import NerModel, tags_of
from models.store import open_release
from models.text import words
from models.types import ADE, DRUG, LABELS
from tests.models import tiny
from training import ner
from training.adapter import adapter_tensors
from training.checkpoint import CheckpointError
from training.ner import Run, Settings
from training.readers import GoldMention, GoldText
from training.tagging import PAPER, Example, Scheme, batches, examples, word_tags

TAGS = tags_of(LABELS)
LEXICON = DrugLexicon({"zoloft": "sertraline", "st john's wort": "hypericum"})


def gold(text: str, *mentions: tuple[str, str]) -> GoldText:
    """A text whose mentions are given by their first occurrence."""
    return GoldText(
        "x", text, tuple(GoldMention(text.index(m), text.index(m) + len(m), label) for m, label in mentions)
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(gold("a rash"), "O O", id="no mention"),
        pytest.param(gold("awful back pain", ("back pain", ADE)), "O B-ADE I-ADE", id="two words"),
        pytest.param(gold("rash pain", ("rash", ADE), ("pain", ADE)), "B-ADE B-ADE", id="side by side"),
        pytest.param(
            gold("lithium toxicity", ("lithium", DRUG), ("lithium toxicity", ADE)),
            "B-ADE I-ADE",
            id="the longest of two",
        ),
        pytest.param(
            gold("severe back pain now", ("severe back", ADE), ("back pain now", ADE)),
            "O B-ADE I-ADE I-ADE",
            id="the longest of two that cross",
        ),
        pytest.param(gold("can't sleep", ("can't", ADE)), "B-ADE I-ADE I-ADE O", id="a word of three"),
        pytest.param(gold("painful", ("pain", ADE)), "O", id="part of a word"),
        pytest.param(
            gold("painful rash", ("pain", ADE), ("ful rash", ADE)), "O B-ADE", id="from within a word"
        ),
    ],
)
def test_a_words_tag_is_that_of_the_longest_mention_that_holds_it(text: GoldText, wanted: str) -> None:
    assert word_tags(text, words(text.text), None) == wanted.split()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (gold("Zoloft gave rash", ("rash", ADE)), "B-DRUG O B-ADE"),
        (gold("St John's Wort helps"), "B-DRUG I-DRUG I-DRUG I-DRUG I-DRUG O"),
        # Gold comes first where the two overlap.
        (gold("zoloft withdrawal", ("zoloft withdrawal", "WITHDRAWAL")), "B-WITHDRAWAL I-WITHDRAWAL"),
    ],
)
def test_a_corpus_without_drugs_gets_those_of_the_lexicon(text: GoldText, wanted: str) -> None:
    split = wanted.replace("B-DRUG I-DRUG I-DRUG I-DRUG I-DRUG O", "B-DRUG" + " I-DRUG" * 4 + " O").split()
    assert word_tags(text, words(text.text), LEXICON) == split
    assert DRUG not in "".join(word_tags(text, words(text.text), None))


TEXT = "Zoloft gave me no sleep , awful rash and back pain"


@given(
    st.lists(
        st.tuples(st.integers(0, len(TEXT) - 1), st.integers(1, 20), st.sampled_from(LABELS)), max_size=6
    )
)
def test_tags_of_any_mentions_are_well_formed_and_only_where_a_mention_is(
    raw: list[tuple[int, int, str]],
) -> None:
    mentions = tuple(GoldMention(start, min(start + n, len(TEXT)), label) for start, n, label in raw)
    spans = words(TEXT)
    tags = word_tags(GoldText("x", TEXT, mentions), spans, None)
    assert len(tags) == len(spans)
    for i, (tag, span) in enumerate(zip(tags, spans, strict=True)):
        if tag != "O":
            assert any(m.start <= span.start and span.end <= m.end and m.label == tag[2:] for m in mentions)
        if tag.startswith("I-"):
            assert tags[i - 1] in (tag, f"B-{tag[2:]}")


SENTENCES = [
    gold("Zoloft gave me awful insomnia", ("Zoloft", DRUG), ("awful insomnia", ADE)),
    gold("Intravenous azithromycin - induced ototoxicity", ("azithromycin", DRUG), ("ototoxicity", ADE)),
    gold("no \0 nausea \U0001f922 at all", ("nausea", ADE)),
    gold("Aspirin caused a rash", ("Aspirin", DRUG), ("rash", ADE)),
    gold("The weather was fine"),
    gold("Clozapine and severe agranulocytosis", ("Clozapine", DRUG), ("severe agranulocytosis", ADE)),
    gold("hepatotoxicity after ibuprofen", ("hepatotoxicity", ADE), ("ibuprofen", DRUG)),
    gold("He slept well"),
]


def test_flags_tags_and_pieces_stand_in_line(mini: Encoder) -> None:
    for text, example in zip(SENTENCES, examples(SENTENCES, mini, TAGS, None), strict=True):
        assert len(example.pieces) == len(example.tags) == len(example.flags)
        pieces = mini.tokenizer.convert_ids_to_tokens(example.pieces)
        assert [bool(flag) for flag in example.flags] == [p.startswith("##") for p in pieces]
        assert [TAGS[t] == "X" for t in example.tags] == [p.startswith("##") for p in pieces]
        kept = [TAGS[t] for t in example.tags if TAGS[t] != "X"]
        spans = words(text.text)
        wanted = word_tags(text, spans, None)
        assert kept == [t for t, s in zip(wanted, spans, strict=True) if text.text[s.start : s.end] != "\0"]


def test_a_word_of_many_pieces_has_its_tag_on_the_first(mini: Encoder) -> None:
    (example,) = examples([SENTENCES[1]], mini, TAGS, None)
    at = example.tags.index(TAGS.index("B-ADE"))
    assert mini.tokenizer.convert_ids_to_tokens(example.pieces)[at:] == ["ot", "##oto", "##xi", "##city"]
    assert example.flags[at:] == [0, 1, 1, 1]
    assert [TAGS[t] for t in example.tags[at:]] == ["B-ADE", "X", "X", "X"]


def test_an_example_is_no_longer_than_a_window(tiny_bert: str) -> None:
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    (example,) = examples([gold("nausea " * 20)], encoder, TAGS, None)
    assert len(example.pieces) == len(example.tags) == len(example.flags) == 30


@settings(max_examples=50)
@given(st.lists(st.integers(1, 40), max_size=300), st.integers(1, 9), st.integers(0, 5))
def test_batches_hold_every_example_once_and_are_as_many_as_the_schedule_counts(
    lengths: list[int], size: int, seed: int
) -> None:
    data = [Example([i] * n, [0] * n, [0] * n) for i, n in enumerate(lengths)]
    made = list(batches(data, size, random.Random(seed)))
    assert Counter(e.pieces[0] for batch in made for e in batch) == Counter(range(len(data)))
    assert all(0 < len(batch) <= size for batch in made)
    assert len(made) == -(-len(data) // size)


class Stopped(Exception):
    """A power cut."""


def run(base: str, folder: Path | None = None, **changes: Any) -> Run:
    settings = Settings(base=base, **{"rank": 4, "batch": 4} | changes)
    return Run(settings, examples(SENTENCES, Encoder.load(base), TAGS, None, settings.scheme), folder)


def constant(model: NerModel) -> dict[str, float]:
    return {"posts": 0.5}


@pytest.fixture(scope="module")
def trained() -> tuple[Run, list[float]]:
    """A run of seven epochs of two steps each, and the mean loss of every epoch."""
    made = run("mini", epochs=7, lr=5e-3)
    return made, [epoch.loss for epoch in made.fit(constant)]


def test_a_few_steps_lower_the_loss(trained: tuple[Run, list[float]]) -> None:
    _, losses = trained
    assert len(losses) == 7
    assert losses[-1] < 0.7 * losses[0]


def test_the_first_of_two_phases_trains_the_head_alone(tiny_bert: str) -> None:
    made = run(tiny_bert, epochs=2)
    before = {n: p.clone() for n, p in made.encoder.model.named_parameters()}
    weight = made.head.linear.weight.detach().clone()
    epochs = made.fit(constant)
    next(epochs)
    assert all(torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())
    assert not torch.equal(made.head.linear.weight, weight)
    assert not made.head.training
    assert not made.encoder.model.training
    next(epochs)
    assert any(not torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())


def test_a_single_phase_trains_everything_at_once(tiny_bert: str) -> None:
    made = run(tiny_bert, epochs=2, phases=1)
    before = {n: p.clone() for n, p in made.encoder.model.named_parameters()}
    next(made.fit(constant))
    assert any(not torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())


@pytest.mark.parametrize("killed_after", [1, 2, 3])
@pytest.mark.parametrize("rank", [0, 4])
def test_a_killed_run_goes_on_to_the_same_weights(
    tiny_bert: str, tmp_path: Path, killed_after: int, rank: int
) -> None:
    def fresh(folder: Path | None) -> Run:
        settings = Settings(base=tiny_bert, rank=rank, batch=4, epochs=4, lr=1e-3)
        return Run(settings, examples(SENTENCES, Encoder.load(tiny_bert), TAGS, None), folder)

    whole = fresh(None)
    curve = [epoch.loss for epoch in whole.fit(constant)]
    broken = fresh(tmp_path)
    for epoch in broken.fit(constant):
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = fresh(tmp_path)
    assert [epoch.loss for epoch in resumed.fit(constant)] == curve[killed_after:]
    one, other = whole.encoder.model.state_dict(), resumed.encoder.model.state_dict()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert torch.equal(whole.head.linear.weight, resumed.head.linear.weight)
    assert resumed.best.keys() == whole.best.keys()


def test_the_best_epoch_before_a_kill_is_kept_after_it(tiny_bert: str, tmp_path: Path) -> None:
    scores = iter([0.9, 0.1])
    first = run(tiny_bert, tmp_path, epochs=3)
    for epoch in first.fit(lambda model: {"posts": next(scores)}):
        if epoch.number == 2:
            break
    resumed = run(tiny_bert, tmp_path, epochs=3)
    (last,) = resumed.fit(lambda model: {"posts": 0.2})
    assert not last.kept
    for name, tensors in first.best.items():
        assert all(torch.equal(t, resumed.best[name][n]) for n, t in tensors.items())


def test_a_run_does_not_go_on_with_other_settings(tiny_bert: str, tmp_path: Path) -> None:
    list(run(tiny_bert, tmp_path, epochs=2).fit(constant))
    with pytest.raises(CheckpointError, match="other settings"):
        list(run(tiny_bert, tmp_path, epochs=2, lr=1e-2).fit(constant))


def test_a_power_cut_while_a_checkpoint_is_written_leaves_the_last_one(
    tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(tiny_bert, tmp_path, epochs=3)
    epochs = made.fit(constant)
    next(epochs)

    def cut(descriptor: int) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr("training.checkpoint.os.fsync", cut)
        with pytest.raises(Stopped):
            next(epochs)
    assert [e.number for e in run(tiny_bert, tmp_path, epochs=3).fit(constant)] == [2, 3]


def test_without_x_a_piece_has_its_words_tag_and_without_the_flag_none_is_told(mini: Encoder) -> None:
    text = gold("azithromycin rash", ("azithromycin", DRUG), ("rash", ADE))
    (paper,) = examples([text], mini, TAGS, None, PAPER)
    (plain,) = examples([text], mini, TAGS, None, Scheme(biox=False, flag=False))
    assert paper.pieces == plain.pieces
    assert [TAGS[t] for t in paper.tags] == ["B-DRUG", *["X"] * (len(paper.tags) - 2), "B-ADE"]
    assert [TAGS[t] for t in plain.tags] == ["B-DRUG", *["I-DRUG"] * (len(paper.tags) - 2), "B-ADE"]
    assert sum(paper.flags) == len(paper.tags) - 2 > 0
    assert sum(plain.flags) == 0


def test_the_stored_adapter_gives_the_trained_models_hidden_states(
    mini: Encoder, trained: tuple[Run, list[float]]
) -> None:
    encoder = trained[0].encoder
    tensors = adapter_tensors(encoder.model)
    assert {t.dtype for t in tensors.values()} == {torch.float16}
    merged = copy.deepcopy(mini.model)
    merge_adapter(merged, tensors)
    surfaces = [[t.text[s.start : s.end] for s in words(t.text)] for t in SENTENCES]
    with torch.inference_mode():
        wanted = torch.cat(encoder.word_vectors(surfaces))
        found = torch.cat(Encoder(merged, mini.tokenizer, mini.max_pieces).word_vectors(surfaces))
        plain = torch.cat(mini.word_vectors(surfaces))
    assert (found - wanted).abs().max() < 1e-2
    # The adapter is no small change, so that agreement says something.
    assert (plain - wanted).abs().max() > 0.1


@pytest.mark.parametrize(("rank", "weights"), [(2, "adapter.safetensors"), (0, "encoder.safetensors")])
def test_a_training_run_publishes_a_tagger_that_loads(
    corpus: Path, tmp_path: Path, rank: int, weights: str
) -> None:
    base = tiny.bert(tmp_path / "base")
    ner.main(data=corpus, output=tmp_path, base=base, epochs=2, rank=rank, batch=4, repair=False)
    (path,) = (tmp_path / "ner").iterdir()
    release = open_release(path)
    manifest = release.manifest
    assert sorted(manifest.files) == sorted([weights, "drugs.tsv", "head.safetensors"])
    assert manifest.configuration["labels"] == list(LABELS)
    assert {(s.data, s.records) for s in manifest.scores} == {
        ("PsyTAR test", 4),
        ("ADE corpus fold 1 test", 4),
    }
    assert {v.dtype for v in load_file(release.file("head.safetensors")).values()} == {torch.float16}
    loaded = load(release, dtype="float32")
    assert loaded.model.repaired is False  # type: ignore[attr-defined]
    (mentions,) = loaded.model.predict(["Zoloft caused rash"])
    assert ("Zoloft", DRUG, "sertraline") in [(m.text, m.label, m.generic) for m in mentions]


@pytest.mark.parametrize(("corpora", "data"), [("ade", "ADE corpus fold 1 test"), ("psytar", "PsyTAR test")])
def test_a_run_on_one_corpus_is_scored_on_that_one(
    corpus: Path, tmp_path: Path, corpora: ner.Corpora, data: str
) -> None:
    base = tiny.bert(tmp_path / "base")
    ner.main(data=corpus, output=tmp_path, base=base, epochs=2, rank=2, batch=4, corpora=corpora)
    (path,) = (tmp_path / "ner").iterdir()
    manifest = open_release(path).manifest
    assert {s.data for s in manifest.scores} == {data}
    assert len(manifest.training_data) == 1


def test_a_training_run_leaves_the_shared_weights_alone(corpus: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    before = {n: t.clone() for n, t in Encoder.load(base).model.state_dict().items()}
    ner.main(data=corpus, output=tmp_path, base=base, epochs=2, rank=0, batch=4)
    after = Encoder.load(base).model.state_dict()
    assert all(torch.equal(t, after[n]) for n, t in before.items())


def test_whole_layers_are_trained_and_stored_as_an_adapter(tmp_path: Path) -> None:
    made = run(tiny.bert(tmp_path / "base"), epochs=3, rank=0, factor=2, lr=5e-3)
    epochs = list(made.fit(lambda _: {"x": float(len(made.best))}))
    assert len(epochs) == 3
    pairs = made.best[ADAPTER]
    assert {t.shape[0 if n.endswith("lora_a") else 1] for n, t in pairs.items()} == {2}
    base = Encoder.load(made.settings.base).model.state_dict()
    trained, stored = made.encoder.model, copy.deepcopy(Encoder.load(made.settings.base).model)
    merge_adapter(stored, pairs)
    name = "encoder.layer.0.output.dense.weight"
    whole = trained.state_dict()[name] - base[name]
    left = trained.state_dict()[name] - stored.state_dict()[name]
    assert whole.norm() > 0
    assert left.norm() < whole.norm()
    biases = [n for n in base if n.endswith("bias") and "pooler" not in n]
    assert all(torch.equal(trained.state_dict()[n], base[n]) for n in biases)


def test_a_run_can_end_before_the_encoder_has_moved(tmp_path: Path) -> None:
    made = run(tiny.bert(tmp_path / "base"), epochs=2, rank=0, factor=2)
    scores = iter([1.0, 0.5])
    assert [e.kept for e in made.fit(lambda _: {"x": next(scores)})] == [True, False]
    assert set(made.best) == {"head.safetensors"}


def test_a_large_backbones_class_trains_a_step(tmp_path: Path) -> None:
    made = run(tiny.roberta(tmp_path / "base"), epochs=1, phases=1)
    (epoch,) = made.fit(constant)
    assert epoch.loss > 0
