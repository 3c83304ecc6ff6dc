"""The status of effects: what the status head sees, and what a mention becomes by it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from models.assertion.flags import asserted
from models.encoder.model import Encoder
from models.ner.decoding import Decoding, tags_of
from models.ner.heads import EventHead, Head
from models.ner.model import NerModel
from models.ner.sentences import read_together
from models.ner.status_decisions import decided
from models.ner.status_head import N_RULES, Pieces, Places, StatusHead
from models.types import (
    ADE,
    DRUG,
    HYPOTHETICAL,
    INDICATION,
    LABELS,
    NEGATED,
    NO_EVENT,
    OTHER,
    OWN,
    RELIEVED,
    STATUSES,
    SYMPTOM,
    Assertion,
    Mention,
)


def tagger(encoder: Encoder, **bias: float) -> NerModel:
    """Tags every word ADE, and judges every effect by these biases of its statuses."""
    head = StatusHead(encoder.dimension)
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    head.status[-1].bias.data = torch.tensor([bias.get(s, 0.0) for s in STATUSES])
    model = NerModel(
        encoder,
        Head(encoder.dimension, len(tags_of(LABELS))),
        LABELS,
        None,
        status_head=head,
        decoding=Decoding(window=50),
    )
    torch.nn.init.zeros_(model.head.linear.weight)
    torch.nn.init.zeros_(model.head.linear.bias)
    model.head.linear.bias.data[model.tags.index(f"I-{ADE}")] = 12.0
    return model


@pytest.mark.parametrize(
    ("status", "label"),
    [
        (OWN, ADE),
        (HYPOTHETICAL, ADE),
        (OTHER, ADE),
        (RELIEVED, INDICATION),
        ("indication", INDICATION),
    ],
)
def test_an_effect_keeps_its_label_unless_a_drug_is_taken_for_it(
    small: Encoder, status: str, label: str
) -> None:
    [[mention]] = tagger(small, **{status: 9.0}).predict(["headache again"])
    assert (mention.label, mention.status) == (label, status)
    assert mention.status_score is not None and mention.status_score > 0.9


def test_what_is_no_event_is_no_mention(small: Encoder) -> None:
    assert tagger(small, **{NO_EVENT: 9.0}).predict(["this queue is a headache"]) == [[]]


def test_the_threshold_decides_for_the_writers_own_events(small: Encoder) -> None:
    model = tagger(small, own=1.0, hypothetical=2.0)
    assert model.predict(["headache"])[0][0].status == HYPOTHETICAL
    model.decoding.own_from = 0.1
    assert model.predict(["headache"])[0][0].status == OWN


@pytest.mark.parametrize(
    ("text", "label"), [("headache", SYMPTOM), ("headache: yes", ADE), ("headache: no", SYMPTOM)]
)
def test_what_is_likeliest_an_event_but_not_sure_is_neither_an_event_nor_denied(
    small: Encoder, text: str, label: str
) -> None:
    model = tagger(small, own=2.0, hypothetical=1.0)
    model.decoding.own_from = 0.7
    mention = model.predict([text])[0][0]
    assert (mention.label, mention.status) == (label, OWN)
    assert mention.status_score is not None and mention.status_score < 0.7


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("had chills", OWN),
        ("had chills. No rash.", OWN),
        ("had no chills", NEGATED),
        ("denies fever, chills", NEGATED),
        ("chills: none", NEGATED),
    ],
)
def test_a_denial_needs_words_that_deny(small: Encoder, text: str, status: str) -> None:
    model = tagger(small, own=3.0, negated=5.0)
    assert model.status_head is not None
    [sentence] = read_together([text], 50)
    with torch.inference_mode():
        hidden, [tagged] = model._tag([text], [sentence])
        start = text.index("chills")
        case = model._case(text, sentence, tagged, [Mention(start, start + 6, "chills", ADE, 1.0)], 0.0)
        [[mention]] = decided(model.status_head, hidden, [case], 0.5, 0.0)
    assert mention.status == status


@torch.inference_mode()
def test_the_rules_are_seen_by_the_head(small: Encoder) -> None:
    model = tagger(small, own=5.0)
    assert model.status_head is not None
    first, last = (m for m in model.status_head.status if isinstance(m, torch.nn.Linear))
    first.weight.data[0, -N_RULES] = 1.0
    last.weight.data[STATUSES.index(NEGATED), 0] = 20.0
    places = [Mention(3, 11, "headache", ADE, 1.0)]
    for text, status in (("ok headache", OWN), ("no headache", NEGATED)):
        [sentence] = read_together([text], 50)
        hidden, [tagged] = model._tag([text], [sentence])
        case = model._case(text, sentence, tagged, places, 0.0)
        [[mention]] = decided(model.status_head, hidden, [case], 0.5, 0.0)
        assert mention.status == status


def test_sentences_of_a_text_are_read_together_up_to_the_window() -> None:
    text = "Took it. Slept badly. Never again."
    [whole] = read_together([text], 50)
    assert whole.starts == [3, 6]
    assert [len(s.words.texts) for s in read_together([text], 4)] == [3, 3, 3]
    assert len(read_together([text, text], 0)) == 6


def test_no_mention_goes_on_in_the_next_line(small: Encoder) -> None:
    text = "high blood pressure\nskin problems\n\ndry mouth"
    found = [m.text for m in tagger(small, **{OWN: 9.0}).predict([text])[0]]
    assert found == ["high blood pressure", "skin problems", "dry mouth"]


def test_pairs_are_scored_for_each_drug_and_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    head = StatusHead(16).eval()
    hidden = torch.randn(9, 16)
    mentions, drugs = [Pieces(0, 2), Pieces(5, 6)], [Pieces(3, 4), Pieces(7, 9)]
    statuses, pairs = head(hidden, mentions, drugs, torch.zeros(2, N_RULES))
    assert statuses.shape == (2, len(STATUSES)) and pairs.shape == (2, 2)
    one, one_pair = head(hidden, mentions[1:], drugs, torch.zeros(1, N_RULES))
    assert torch.allclose(one, statuses[1:], atol=1e-5) and torch.allclose(one_pair, pairs[1:], atol=1e-5)
    none, no_pairs = head(hidden, mentions, [], torch.zeros(2, N_RULES))
    assert none.shape == statuses.shape and no_pairs.shape == (2, 0)


def test_the_heads_see_all_sentences_of_a_batch_at_once(
    small: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tagger(small, **{OWN: 9.0})
    model.event_head = EventHead(small.dimension).eval()
    seen = {"statuses": 0, "events": 0, "tags": 0}
    judge, report, tag = StatusHead.statuses, EventHead.of_rows, Head.of_first

    def counting(name: str, method: Any) -> Any:
        def counted(self: Any, *arguments: Any) -> Any:
            seen[name] += 1
            return method(self, *arguments)

        return counted

    monkeypatch.setattr(StatusHead, "statuses", counting("statuses", judge))
    monkeypatch.setattr(EventHead, "of_rows", counting("events", report))
    monkeypatch.setattr(Head, "of_first", counting("tags", tag))
    found = model.predict(["headache. " * 60, "rash", "", "dizzy today"])
    assert [bool(own) for own in found] == [True, True, False, True]
    assert seen == {"statuses": 1, "events": 1, "tags": 1}


def test_sentences_together_have_the_logits_of_each_alone() -> None:
    torch.manual_seed(0)
    status, event = StatusHead(16).eval(), EventHead(16).eval()
    lengths = [4, 7, 1]
    hidden = torch.randn(sum(lengths), 16)
    rules = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    places = [
        Places(Pieces(0, 4), [Pieces(0, 2), Pieces(3, 4)], []),
        Places(Pieces(4, 11), [Pieces(6, 7)], [Pieces(4, 5), Pieces(8, 11)]),
        Places(Pieces(11, 12), [Pieces(11, 12)], []),
    ]
    with torch.inference_mode():
        together = status.statuses(hidden, places, rules)
        events = event.of_rows(hidden, torch.tensor(lengths))
        alone, of_rules = [], iter((rules[:2], rules[2:3], rules[3:]))
        for (start, end), mentions, drugs in places:
            own, named = ([Pieces(p.first - start, p.last - start) for p in ps] for ps in (mentions, drugs))
            alone.append(status(hidden[start:end], own, named, next(of_rules))[0])
        each = torch.stack([event(hidden[p.whole.first : p.whole.last]) for p in places])
    assert torch.allclose(together, torch.cat(alone), atol=1e-6)
    assert torch.allclose(events, each, atol=1e-6)


def test_a_status_replaces_the_rules() -> None:
    text = "no headache"
    assert asserted(text, Mention(3, 11, "headache", ADE, 1.0)) == Assertion(negated=True)
    assert asserted(text, Mention(3, 11, "headache", ADE, 1.0, None, OWN, 0.9)) == Assertion()
    assert asserted(text, Mention(3, 11, "headache", ADE, 1.0, None, OTHER, 0.9)) == Assertion(
        other_experiencer=True
    )


def test_drugs_are_not_judged(small: Encoder) -> None:
    model = tagger(small, **{NO_EVENT: 9.0})
    model.head.linear.bias.data.zero_()
    model.head.linear.bias.data[model.tags.index(f"I-{DRUG}")] = 12.0
    [[mention]] = model.predict(["zoloft"])
    assert (mention.label, mention.status) == (DRUG, None)


def test_heads_compute_in_32_bits_under_autocast() -> None:
    """Else gradients of their layers with one output are written beyond their memory (AMX, oneDNN 3.12)."""
    torch.manual_seed(0)
    status, event = StatusHead(16).eval(), EventHead(16).eval()
    hidden = torch.randn(9, 16)
    arguments = ([Pieces(0, 2)], [Pieces(3, 4), Pieces(7, 9)], torch.zeros(1, N_RULES))
    plain = (*status(hidden, *arguments), event(hidden))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = (*status(hidden, *arguments), event(hidden))
        assert status.query(hidden).dtype == torch.bfloat16
    assert [m.dtype for m in mixed] == [torch.float32] * 3
    assert all(torch.equal(a, b) for a, b in zip(plain, mixed, strict=True))
