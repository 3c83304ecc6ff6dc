"""The speed of the acronym stage: the time in the encoder is measured, and answers stay as they are."""

from __future__ import annotations

from benchmarks.acronym.__main__ import Clock
from models.encoder.model import Encoder


def test_a_clock_measures_a_packed_encoder_and_changes_no_vector(tiny_bert: str) -> None:
    encoder = Encoder.for_inference(tiny_bert, max_pieces=32)
    before = encoder.embed(["a pain", "the drug helped"])
    clock = Clock(encoder.model)
    assert clock.seconds == 0
    assert encoder.embed(["a pain", "the drug helped"]).equal(before)
    assert clock.seconds > 0
