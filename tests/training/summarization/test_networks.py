"""Networks in training: the pieces that the decoder may generate, and encoder-decoders of the hub."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from models.encoder.capabilities import is_encoder_decoder
from models.summarization.decoding.beam_search import Search
from tests.models.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import MATERIAL, PAIRS, loop_of, network, settings
from training.summarization.ecl.trainer import SummarizerTrainee
from training.summarization.networks.hub_network import HubNetwork
from training.summarization.networks.pointer_network import generated_pieces


def test_pieces_that_are_rare_in_summaries_can_only_be_copied(tiny_bert: str) -> None:
    net = network(tiny_bert)
    pieces = generated_pieces(net.encoder, ["pain pain", "pain drug drug"], least=3)
    tokenizer = net.encoder.tokenizer
    assert pieces == [tokenizer.sep_token_id, tokenizer.convert_tokens_to_ids("pain")]


def test_an_untrained_network_writes_the_same_twice(tiny_bert: str) -> None:
    net = network(tiny_bert)
    assert not any(m.training for part in net.parts() for m in part.modules())
    writer = net.writer(Search(beams=1))
    assert writer.write([PAIRS[0].question]) == writer.write([PAIRS[0].question])


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
def test_a_bart_and_a_t5_take_a_step_and_write(make: Callable[[Path], str], tmp_path: Path) -> None:
    base = make(tmp_path)
    assert is_encoder_decoder(base)
    net = HubNetwork(base, max_pieces=64)
    before = {n: p.detach().clone() for n, p in net.model.named_parameters()}
    trainee = SummarizerTrainee(net, settings(pretraining=0, epochs=1, lr=1e-2), MATERIAL)
    (epoch,) = loop_of(trainee).epochs()
    assert set(epoch.losses) == {"ce", "simple", "hard"}
    assert all(math.isfinite(v) for v in epoch.losses.values())
    assert net.encoder_state()
    assert any(not torch.equal(p, before[n]) for n, p in net.model.named_parameters() if "encoder" in n)
    assert any(not torch.equal(p, before[n]) for n, p in net.model.named_parameters() if "decoder" in n)
    ((written, *_),) = net.writer(Search(beams=2, longest=6)).write(["is the drug aspirin bad?"])
    assert 0 <= written.score <= 1


def test_the_smoothing_of_a_hub_model_is_that_of_eq_3(tmp_path: Path) -> None:
    net = HubNetwork(tiny_seq2seq.bart(tmp_path), max_pieces=64)
    net.model.eval()
    with torch.no_grad():
        loss = net.cross_entropy(net.encode(["tea"]), ["fine"], 0.2)
        labels = net.tokens(["fine"])["input_ids"]
        logs = net.model(**net.tokens(["tea"]), labels=labels).logits[0].log_softmax(-1)
    right = logs.gather(1, labels[0].unsqueeze(1)).squeeze(1)
    others = (logs.sum(1) - right) / (logs.shape[1] - 1)
    assert float(loss) == pytest.approx(float(-(0.8 * right + 0.2 * others).mean()), rel=1e-4)
