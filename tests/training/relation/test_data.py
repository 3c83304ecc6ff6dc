"""Sentences as the spaces of relations are trained on them."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.types import ADE, DRUG
from tests.training.recipes.runs import settings_of
from training.common.corpora import CorpusError, GoldMention, GoldText
from training.relation.data import (
    TAGS,
    UNKNOWN,
    examples,
    known_drugs,
    offsets,
    paired,
    read,
)
from training.relation.network import word_states
from training.teaching.readers import gold_texts

B_DRUG, B_ADE, I_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE"), TAGS.index("I-ADE")
TEXT = "Clozapine gave severe rash."
GOLD = GoldText("ade-1", TEXT, (GoldMention(15, 26, ADE), GoldMention(0, 9, DRUG)), ((1, 0),))


def test_a_sentence_has_tags_and_the_last_words_of_what_is_related_or_not(small: Encoder) -> None:
    (example,) = examples([GOLD], small)
    assert example.tags.tolist() == [B_DRUG, 0, B_ADE, I_ADE, 0]
    assert example.pairs.tolist() == [[0, 3]]
    assert example.wrong.tolist() == [[False, *[True] * 4], [True, True, False, False, True]]
    # The tiny BERT spells: nine pieces of the drug, then four of the next word.
    assert example.word_of.tolist()[:13] == [0] * 9 + [1] * 4
    mentions = (GoldMention(0, 9, DRUG), GoldMention(22, 26, ADE))
    (plain,) = examples([GoldText("ade-1", TEXT, mentions, ())], small)
    assert (plain.pairs.tolist(), plain.unrelated.tolist()) == ([], [[0, 3]])


def test_pairs_that_a_tagger_found_are_related_where_both_mentions_are_exact(small: Encoder) -> None:
    (example,) = examples([GOLD], small)
    assert example.unrelated.shape == (0, 2)
    right, short = (15, 26, ADE), (22, 26, ADE)
    assert paired(example, [(0, 9, DRUG), right]).pairs.tolist() == [[0, 3]]
    wrong = paired(example, [(0, 9, DRUG), short])
    assert (wrong.pairs.tolist(), wrong.unrelated.tolist()) == ([], [[0, 3]])
    alone = paired(example, [(0, 9, DRUG)])
    assert not len(alone.pairs)
    assert not len(alone.unrelated)


def test_drugs_in_sentences_without_events_are_not_learnt_and_those_learnt_known(small: Encoder) -> None:
    lexicon = DrugLexicon({"clozapine": "clozapine"})
    plain = GoldText("neg-1", "Clozapine was given.", ())
    (example,) = examples([plain], small, [lexicon])
    assert example.tags.tolist() == [UNKNOWN, 0, 0, 0]
    (learnt,) = examples([plain], small)
    assert learnt.tags.tolist() == [0, 0, 0, 0]
    # In a sentence with gold mentions the corpus says which drugs there are.
    (gold,) = examples([GOLD], small, [lexicon])
    assert UNKNOWN not in gold.tags
    bundled, own = known_drugs([GOLD])
    assert own.generic("clozapine") == "clozapine"
    assert len(own) == 1
    assert len(bundled) > 1000


def test_words_beyond_the_encoders_limit_are_left_out_with_their_relations(small: Encoder) -> None:
    long = GoldText(
        "ade-2",
        "Clozapine gave " + "x " * 30 + "rash.",
        (GoldMention(0, 9, DRUG), GoldMention(75, 79, ADE)),
        ((0, 1),),
    )
    (example,) = examples([long], small)
    assert len(example.pieces) == small.max_pieces - 2
    assert len(example.tags) == 2 + 17
    assert example.pairs.shape == (0, 2)


def test_states_are_the_means_of_each_words_pieces(small: Encoder) -> None:
    data = examples([GOLD, GoldText("neg-1", "the drug", ())], small)
    with torch.no_grad():
        states = word_states(small.forward([e.pieces for e in data]), data)
        expected = small.word_vectors([["Clozapine", "gave", "severe", "rash", "."], ["the", "drug"]])
    assert torch.allclose(states, torch.cat(expected), atol=1e-5)
    assert offsets(data).tolist() == [0, 5]


def training(**changes: Any) -> dict[str, Any]:
    return asdict(settings_of("relation", **{"teaching": 0.0} | changes))


def test_validation_negatives_and_training_share_no_sentence(corpus: Path) -> None:
    found = read(corpus, training())
    ids = [t.id for part in found[:4] for t in part]
    assert len(ids) == len(set(ids))
    assert len(found.train) + len(found.valid) == 16
    assert np.isclose(len(found.valid) / 16, 0.1, atol=0.05)
    assert all(t.id.startswith("neg-") and not t.mentions for t in found.negatives + found.valid_negatives)
    assert all(found.sources[id_].startswith("PubMed ") for id_ in ids)


def test_a_corpus_without_negatives_is_refused(corpus: Path, tmp_path: Path) -> None:
    own = shutil.copytree(corpus, tmp_path / "corpus")
    (own / "ade/negatives.txt").write_text("", encoding="utf-8")
    with pytest.raises(CorpusError, match="has no sentence without an event to train on"):
        read(own, training())
    assert read(own, training(negatives=0))[:4] == (*read(corpus, training())[:2], [], [])


def test_clinical_sentences_of_the_teaching_corpus_are_trained_on_with_their_links(corpus: Path) -> None:
    plain, found = read(corpus, training()), read(corpus, training(teaching=0.5))
    taught = found.train[len(plain.train) :]
    assert found.train[: len(plain.train)] == plain.train
    assert (found.valid, found.negatives) == (plain.valid, plain.negatives)
    assert len(taught) == round(len(gold_texts("clinical", "train")) / 2)
    linked = [t for t in taught if t.relations]
    assert len(linked) > len(taught) / 4
    labels = {(t.mentions[d].label, t.mentions[e].label) for t in linked for d, e in t.relations}
    assert labels == {(DRUG, ADE)}
