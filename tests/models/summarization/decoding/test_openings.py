"""Openings that bind the first pieces of a summary."""

from __future__ import annotations

import math

import pytest
import torch

from models.encoder.model import Encoder
from models.summarization.decoding.beam_search import Search, search
from models.summarization.decoding.generation import PointerWriter, opening_prefixes
from models.summarization.decoding.openings import OpenedStep, Openings
from tests.models.summarization.decoding.test_beam_search import END, chain, random_tables
from tests.models.summarization.tiny_writers import pointer_writer

TEXTS = ["pain drug", "the pain of the drug is 7 times the pain", "drug, drug!"]


@pytest.mark.parametrize("beams", [1, 3])
def test_every_summary_begins_with_an_opening_of_its_text_or_as_it_may(beams: int) -> None:
    settings = Search(beams=beams, shortest=3, longest=6)
    tables = random_tables(3, 7, 5)
    openings = [((2, 4), (3,)), (), ((5, 1, 5),)]
    step = OpenedStep(chain(tables.repeat_interleave(beams, 0)), [o for o in openings for _ in range(beams)])
    first, free, last = search(step, 3, END, END, settings)
    assert all(h.numbers[:2] == (2, 4) or h.numbers[0] == 3 for h in first)
    assert all(h.numbers[:3] == (5, 1, 5) for h in last)
    assert free == search(chain(tables[1:2].repeat_interleave(beams, 0)), 1, END, END, settings)[0]
    assert all(h.score > -math.inf for own in (first, free, last) for h in own)


def test_behind_the_shorter_of_two_openings_a_summary_is_free() -> None:
    tables = random_tables(1, 5, 1)
    tables[0, :, 4] = 9.0
    step = OpenedStep(chain(tables), [((2,), (2, 3))])
    ((hypothesis,),) = search(step, 1, END, END, Search(beams=1, shortest=2, longest=4, no_repeat=0))
    assert hypothesis.numbers[:2] == (2, 4)


def test_openings_bind_above_a_probability_and_never_for_a_kind_without() -> None:
    openings = Openings([((1, 2),), ()], threshold=0.6)
    scores = torch.tensor([[0.7, 0.3], [0.55, 0.45], [0.1, 0.9]]).log()
    assert openings.chosen(scores) == [((1, 2),), (), ()]
    assert Openings([((1, 2),), ()], threshold=1.0).chosen(torch.tensor([[99.0, 0.0]])) == [()]


def test_a_writer_begins_with_the_opening_of_the_kind_whatever_the_batch(small: Encoder) -> None:
    plain = pointer_writer(small, kinds=2)
    texts = [["what is the", "zebra"], []]
    prefixes = opening_prefixes(small, plain.vocabulary, texts)
    assert [len(p) for p in prefixes] == [1, 0]
    with torch.no_grad():
        plain.decoder.kind_head[1].bias[0] = 9.0
    for threshold, share in ((0.5, 1.0), (1.0, 0.0)):
        openings = Openings(prefixes, threshold)
        writer = PointerWriter(small, plain.decoder, plain.vocabulary, plain.settings, openings)
        written = writer.write(TEXTS)
        assert [writer.write([t])[0] for t in TEXTS] == written
        begun = [s.text.lower().startswith("what is the") for own in written for s in own]
        assert sum(begun) == share * len(begun)
