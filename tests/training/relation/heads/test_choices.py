"""The token head's share and the threshold of an event, chosen on validation sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from models.encoder.split.layer_split import EncodedSentence
from models.encoder.word_pieces import WordPieces
from models.relation.neighbours import TokenHead
from models.relation.voting import Voting
from models.types import ADE, DRUG, Mention, Relation, TaggedText
from training.common.corpora import GoldMention, GoldText
from training.relation.data import TAGS, Example
from training.relation.heads.threshold import choose_event_threshold
from training.relation.heads.token_head import choose_share
from training.relation.knn_scores import Queries
from training.relation.support_set import Part, WordRows

B_DRUG, B_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE")
MENTIONS = (GoldMention(0, 7, DRUG), GoldMention(15, 19, ADE))
TEXT = GoldText("ade-1", "Aspirin caused rash.", MENTIONS, ((0, 1),))
TAGGED = [B_DRUG, 0, B_ADE, 0]


def part(tags: list[int]) -> Part:
    """TEXT with a vector of its own for each word."""
    none, outside = np.zeros((0, 2), np.int64), np.zeros(len(tags), bool)
    example = Example(
        TEXT, [1] * len(tags), np.arange(len(tags)), np.array(tags), none, none, outside, outside
    )
    return Part([example], [EncodedSentence(WordPieces([], [], []), 3 * torch.eye(len(tags)), [])])


def rows(tags: list[int]) -> WordRows:
    """A support set in which each of these words has the tag given."""
    vectors = np.eye(4, dtype=np.float32)
    return WordRows(vectors, vectors, np.array(tags), 1, None)


def test_the_share_is_that_of_the_better_tagger_and_the_votes_alone_among_equals() -> None:
    asked = part(TAGGED)
    data = Queries(asked.examples, [])
    weight, none = 10 * np.eye(6, dtype=np.float32)[TAGGED].T, np.zeros(6, np.float32)
    right, wrong = TokenHead(weight, none), TokenHead(0 * weight, np.eye(6, dtype=np.float32)[0])
    assert choose_share(rows(TAGGED), asked, data) == 1.0
    assert choose_share(replace(rows(TAGGED), head=right), asked, data) == 1.0
    assert choose_share(replace(rows(TAGGED), head=wrong), asked, data) == 1.0
    misled = replace(rows([0, 0, 0, 0]), head=right)
    share = choose_share(misled, asked, data)
    assert share < 1
    assert misled.tags_of(asked).tolist() == [0, 0, 0, 0]
    assert replace(misled, share=share).tags_of(asked).tolist() == TAGGED


class Scored:
    """Relates the mentions of TEXT in every text, with a share of 0.8 of the votes, where the probability of
    an event that the text ends with is higher than the threshold.
    """

    sentence_head: object = object()
    voting = Voting(1, 1)

    def predict(self, texts: Sequence[str]) -> list[TaggedText]:
        found = []
        for text in texts:
            mentions = tuple(Mention(m.start, m.end, text[m.start : m.end], m.label, 1.0) for m in MENTIONS)
            event = float(text.split()[-1]) if self.sentence_head else 1.0
            own = (Relation(0, 1, 0.8 * event),) if self.voting.related(0.8, event) else ()
            found.append(TaggedText(mentions, own))
        return found


def test_the_threshold_keeps_most_relations_and_fewest_false_ones() -> None:
    def texts(events: Sequence[float], gold: GoldText) -> list[GoldText]:
        return [replace(gold, text=f"{gold.text} {event}") for event in events]

    none = replace(TEXT, mentions=(), relations=())
    model: Any = Scored()
    assert choose_event_threshold(model, texts([0.9, 0.4, 0.32], TEXT), texts([0.28, 0.1], none)) == 0.3
    assert model.voting.event_threshold == 0.3
    assert model.sentence_head is Scored.sentence_head
    assert choose_event_threshold(model, texts([0.9, 0.78], TEXT), texts([0.2], none)) == 0.75
    assert choose_event_threshold(model, texts([0.9, 0.78, 0.68], TEXT), texts([0.63], none)) == 0.65
    assert sum(len(t.relations) for t in model.predict(["and 0.64", "and 0.66"])) == 1
