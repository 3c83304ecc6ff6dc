"""What counts as the right drugs of an effect, and that the head of a fold never saw the post it judges."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from benchmarks import suspects
from benchmarks.suspects import Case, by_folds, by_head, by_nearest, by_rules, right
from models.drugs.causes import NamedDrug
from models.ner.status import Pieces, StatusHead
from models.types import Span

TEXT = "from a to b because of itch"
CASE = Case(
    TEXT,
    [NamedDrug(5, 6, "1"), NamedDrug(10, 11, "2")],
    [(Span(23, 27), {"1"})],
    torch.randn(8, 12, generator=torch.Generator().manual_seed(1)),
    ([Pieces(6, 7)], [Pieces(1, 2), Pieces(3, 4)]),
)


def test_right_are_exactly_the_marked_medicines() -> None:
    assert (by_rules(CASE), by_nearest(CASE)) == ([{"1"}], [{"2"}])
    answers = [by_rules(CASE), by_nearest(CASE), [{"1", "2"}]]
    assert right([CASE] * 3, answers) == {"posts": 3, "events": 3, "right": 1, "share": 0.3333}


def test_a_head_answers_with_at_least_one_drug() -> None:
    head = StatusHead(12).eval()
    output = head.pair[-1]
    assert isinstance(output, nn.Linear)
    with torch.no_grad():
        output.bias.fill_(-100)
    (best,) = by_head(CASE, head)
    assert len(best) == 1
    with torch.no_grad():
        output.bias.fill_(100)
    assert by_head(CASE, head) == [{"1", "2"}]


def test_the_head_of_a_fold_never_saw_the_post_it_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    posts = [Case(f"{TEXT} {i}", CASE.drugs, CASE.events, CASE.hidden, CASE.places) for i in range(12)]
    seen: dict[int, set[str]] = {}

    def remember(head: StatusHead, chosen: list[Case]) -> StatusHead:
        own = StatusHead(12)
        seen[id(own)] = {c.text for c in chosen}
        kept.append(own)
        return own

    def judge(case: Case, head: StatusHead) -> list[set[str]]:
        assert case.text not in seen[id(head)]
        return [{"1"}]

    kept: list[StatusHead] = []
    monkeypatch.setattr(suspects, "trained", remember)
    monkeypatch.setattr(suspects, "by_head", judge)
    assert right(posts, by_folds(StatusHead(12), posts))["right"] == 12


def test_training_further_learns_the_pairs_and_leaves_the_given_head_as_it_was() -> None:
    torch.manual_seed(3)
    head = StatusHead(12, dropout=0.0)
    before = [p.clone() for p in head.parameters()]
    assert by_head(CASE, suspects.trained(head, [CASE])) == [{"1"}]
    assert all(torch.equal(a, b) for a, b in zip(before, head.parameters(), strict=True))
