"""What is read of a sentence, the token head, and the sentence head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.ner.heads import EventHead
from models.relation.model import RelationModel
from models.relation.pairs import LABELS, SentenceMention
from models.relation.reading import apart, naming, split
from models.relation.sentence_head import SentenceHead
from models.relation.spaces import EmbeddingSpaces, EncodedSentence
from models.relation.support_set import SupportSet, TokenHead
from models.relation.voting import Voting
from models.text import word_texts
from models.types import ADE, DRUG, Expansion, Mention, Span

TAGS = tags_of(LABELS)
B_DRUG, B_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE")
EVENT, NONE = "Clozapine caused agranulocytosis.", "No agranulocytosis was seen with clozapine."


@pytest.fixture(scope="module")
def encoder(tiny_bert: str) -> Encoder:
    return Encoder.load(tiny_bert)


@pytest.fixture(scope="module")
def model(encoder: Encoder) -> RelationModel:
    """The support set is the words of EVENT and NONE; every pair is related."""
    spaces = EmbeddingSpaces(encoder, np.eye(encoder.dimension, dtype=np.float32))
    first, second = spaces.entity_vectors(spaces.encode([word_texts(t) for t in (EVENT, NONE)]))
    support = SupportSet(
        words=np.concatenate([first, second]),
        tags=np.array([B_DRUG, 0, B_ADE, 0, 0, B_ADE, 0, 0, 0, B_DRUG, 0]),
        pairs=np.concatenate([first[0], first[2]])[None],
        related=np.ones(1, bool),
        pair_ids=["ade-1"],
    )
    return RelationModel(spaces, support, Voting(1, 1))


def with_sentence_head(model: RelationModel, head: EventHead, threshold: float = 0.5) -> RelationModel:
    return RelationModel(
        model.spaces,
        model.support,
        replace(model.voting, event_threshold=threshold),
        sentence_head=SentenceHead(head),
    )


def separating(model: RelationModel) -> EventHead:
    """A head that learnt EVENT from NONE."""
    torch.manual_seed(0)
    head = EventHead(model.encoder.dimension, dropout=0.0)
    with torch.no_grad():
        states = [e.vectors.clone() for e in model.spaces.encode([word_texts(t) for t in (EVENT, NONE)])]
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(200):
        logits = torch.stack([head(s) for s in states])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor([1.0, 0.0]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return head


def test_the_sentence_head_lowers_the_scores_in_sentences_without_an_event(model: RelationModel) -> None:
    plain = model.predict([EVENT, NONE])
    assert [len(t.relations) for t in plain] == [1, 1]
    every = with_sentence_head(model, separating(model), threshold=-1.0).predict([EVENT, NONE])
    (event,), (none,) = (t.relations for t in every)
    assert event.score > 0.9 * plain[0].relations[0].score
    assert none.score < 0.1 * plain[1].relations[0].score
    assert event.neighbours == plain[0].relations[0].neighbours
    assert [t.mentions for t in every] == [t.mentions for t in plain]
    kept = with_sentence_head(model, separating(model)).predict([EVENT, NONE])
    assert [len(t.relations) for t in kept] == [1, 0]


def test_a_sentence_must_exceed_its_threshold_and_a_pair_that_of_the_votes(model: RelationModel) -> None:
    gated = with_sentence_head(model, separating(model))
    gated.voting = replace(gated.voting, event_threshold=0.4)
    assert [len(t.relations) for t in gated.predict([EVENT, NONE])] == [1, 0]
    gated.voting = replace(gated.voting, event_threshold=-1.0)
    every = gated.predict([EVENT, NONE])
    assert [len(t.relations) for t in every] == [1, 1]
    assert every[1].relations[0].score < 0.1
    gated.voting = replace(gated.voting, threshold=1.0)
    assert [len(t.relations) for t in gated.predict([EVENT, NONE])] == [0, 0]


def test_the_sentence_head_reads_only_sentences_with_a_pair(model: RelationModel) -> None:
    gated = with_sentence_head(model, EventHead(model.encoder.dimension))
    asked: list[int] = []
    head = gated.sentence_head
    assert head is not None
    real = head.probabilities

    def counted(encoded: Sequence[EncodedSentence]) -> list[float]:
        asked.append(len(encoded))
        return real(encoded)

    head.probabilities = counted  # type: ignore[method-assign]
    gated.predict([EVENT, "Aspirin.", NONE])
    assert asked == [2]


def test_sentences_of_a_batch_do_not_affect_each_others_scores(model: RelationModel) -> None:
    torch.manual_seed(3)
    own = with_sentence_head(model, EventHead(model.encoder.dimension), threshold=-1.0)
    texts = [EVENT, f"{NONE} {EVENT}", NONE, "", "Aspirin.", f"{EVENT} " + "and so on " * 30 + "."]
    together = own.predict(texts)
    for text, tagged in zip(texts, together, strict=True):
        (alone,) = own.predict([text])
        assert [(r.head, r.tail) for r in alone.relations] == [(r.head, r.tail) for r in tagged.relations]
        for one, other in zip(alone.relations, tagged.relations, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
        for found, same in zip(alone.mentions, tagged.mentions, strict=True):
            assert found.score == pytest.approx(same.score, abs=1e-4)
    assert sum(len(t.relations) for t in together) >= 4


def test_the_threshold_holds_without_a_sentence_head_and_no_words_are_no_event(model: RelationModel) -> None:
    strict = RelationModel(model.spaces, model.support, replace(model.voting, threshold=1.0))
    assert [t.relations for t in strict.predict([EVENT])] == [()]
    head = SentenceHead(EventHead(model.encoder.dimension))
    assert head.probabilities(model.spaces.encode([[]])) == [0.0]
    assert head.probabilities([]) == []


@pytest.mark.parametrize(("share", "label"), [(1.0, "DRUG"), (0.6, "DRUG"), (0.4, "ADE"), (0.0, "ADE")])
def test_the_token_head_counts_as_much_as_its_share(model: RelationModel, share: float, label: str) -> None:
    """The neighbours call the first word a drug; this head calls every word an effect."""
    n, d = len(TAGS), model.encoder.dimension
    bias = np.full(n, -50, np.float32)
    bias[B_ADE] = 50
    support = replace(model.support, head=TokenHead(np.zeros((n, d), np.float32), bias))
    mixed = RelationModel(model.spaces, support, replace(model.voting, words_share=share))
    (tagged,) = mixed.predict([EVENT])
    assert tagged.mentions[0].label == label
    assert tagged.mentions[0].score == pytest.approx(max(share, 1 - share), abs=1e-4)


def test_probabilities_of_a_token_head_are_a_softmax() -> None:
    rng = np.random.default_rng(0)
    head = TokenHead(*(rng.normal(size=s).astype(np.float32) for s in ((6, 4), (6,))))
    vectors = 100 * rng.normal(size=(5, 4)).astype(np.float32)
    expected = torch.from_numpy(vectors @ head.weight.T + head.bias).softmax(1).numpy()
    assert head.probabilities(vectors) == pytest.approx(expected, abs=1e-6)
    assert head.probabilities(vectors[:0]).shape == (0, 6)


TEXT = "Pt had GIB on ASA. BP ok."
PT = Expansion(0, 2, "Pt", "patient", 1.0, "dictionary")
GIB = Expansion(7, 10, "GIB", "gastrointestinal bleeding", 0.9, "dictionary")
ASA = Expansion(14, 17, "ASA", "aspirin", 1.0, "dictionary")


def _expansion(long_form: str) -> Expansion:
    return Expansion(0, 2, "XX", long_form, 1.0, "dictionary")


def test_the_words_of_a_long_form_and_of_a_sentence_cut_into_lines_are_read() -> None:
    first, second = split([TEXT], [[PT, GIB, ASA]])
    assert first.read == ["Pt", "had", "gastrointestinal", "bleeding", "on", "aspirin", "."]
    ends = [(0, 2), (3, 6), (7, 10), (7, 10), (11, 13), (14, 17), (17, 18)]
    assert first.words == [Span(*own) for own in ends]
    assert second.read == ["BP", "ok", "."]
    assert [s.read for s in split(["Xy b! Xz d.", "e"])] == [["Xy", "b", "!"], ["Xz", "d", "."], ["e"]]
    # Else the drug is in one sentence and its effect in another.
    note = "She was treated with carbamazepine for trigeminal neuralgia and three\nweeks later had a rash."
    (sentence,) = split([note])
    assert sentence.read == note.replace(".", " .").split()


@pytest.mark.parametrize(
    ("long_form", "is_read"),
    [
        ("gastrointestinal bleeding", True),
        ("Stevens-Johnson syndrome", True),
        ("nausea and vomiting", True),
        ("methotrexate", True),
        ("patient", False),
        ("international normalized ratio", False),
        ("stroke volume", False),
        ("liver transplantation", False),
    ],
)
def test_long_forms_that_name_events_and_drugs_are_read(long_form: str, is_read: bool) -> None:
    assert bool(naming([_expansion(long_form)])) is is_read


def test_of_mentions_in_one_acronym_the_first_effect_stays() -> None:
    drug, effect = Mention(0, 3, "HIT", DRUG, 1.0), Mention(0, 3, "HIT", ADE, 1.0)
    later = Mention(7, 12, "fever", ADE, 1.0)
    first, second, third, fourth = (
        SentenceMention(m, place, 2 * place, "") for place, m in enumerate((drug, effect, effect, later))
    )
    assert apart([first, second, third, fourth]) == [second, fourth]
    assert apart([second, first]) == [second]
