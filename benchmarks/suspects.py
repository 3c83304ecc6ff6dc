"""Which of several drugs is an effect in a post due to: do the rules find it, or the tagger's pair head?

Posts of the teaching corpus with several medicines and their gold marks; right is exactly the marked
medicines. The rules were written with knowledge of the training posts, so only the held-out posts compare
them with a head. The bundled head was trained on a part of the training posts; that of the folds never on the
post that it classifies.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor, nn

from benchmarks.machine import print_and_write, provenance
from models.drugs.causes import NamedDrug, causes
from models.ner.model import NerModel
from models.ner.reading import read_together
from models.ner.status import N_RULES, Pieces, StatusHead, piece_range
from models.types import CODED_LABELS, DRUG, Span
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.teaching.batches import Part
from training.teaching.markup import Mark, MarkedText
from training.teaching.readers import marked_texts

FOLDS, EPOCHS, BATCH, RATE = 5, 20, 8, 1e-3


@dataclass(frozen=True, slots=True)
class Case:
    """A post with several medicines, its drugs and its writer's events with known ones."""

    text: str
    drugs: list[NamedDrug]
    events: list[tuple[Span, set[str]]]
    hidden: Tensor
    """(pieces, dimension)"""
    places: tuple[list[Pieces], list[Pieces]]
    """of the events and of the drugs"""

    def links(self, head: StatusHead) -> Tensor:
        """(events, drugs): logits of the pair head."""
        rules = torch.zeros(len(self.events), N_RULES)
        logits: Tensor = head(self.hidden, *self.places, rules)[1]
        return logits

    def gold(self) -> Tensor:
        return torch.tensor([[float(d.name in names) for d in self.drugs] for _, names in self.events])


def cases(tagger: NerModel, part: Part) -> list[Case]:
    """The posts of a part; a post that the tagger does not read in one window is left out."""
    found = (_case(tagger, marked) for _, marked in marked_texts("posts", part))
    return [case for case in found if case is not None]


def _case(tagger: NerModel, marked: MarkedText) -> Case | None:
    drugs = [m for m in marked.marks if m.label == DRUG and m.numbers]
    events = [m for m in marked.marks if m.label in CODED_LABELS and m.flag is None and m.numbers]
    windows = read_together([marked.text], tagger.decoding.window)
    if len({m.numbers for m in drugs}) < 2 or not events or len(windows) != 1:  # noqa: PLR2004
        return None
    with torch.no_grad():
        hidden, (tagged,) = tagger._tag([marked.text], windows)

    def places(marks: Sequence[Mark]) -> list[Pieces]:
        ranges = (piece_range(tagged.pieces, windows[0].words, Span(m.start, m.end)) for m in marks)
        return [p for p in ranges if p is not None]

    return Case(
        marked.text,
        [NamedDrug(m.start, m.end, str(m.numbers[0])) for m in drugs],
        [(Span(m.start, m.end), {str(n) for n in m.numbers}) for m in events],
        hidden.clone(),
        (places(events), places(drugs)),
    )


def by_rules(case: Case) -> list[set[str]]:
    return [set(causes(case.text, case.drugs, effect).names) for effect, _ in case.events]


def by_nearest(case: Case) -> list[set[str]]:
    """The last drug before the effect, else the first one."""
    before = [[d for d in case.drugs if d.start < effect.start] for effect, _ in case.events]
    return [{(found or case.drugs[:1])[-1].name} for found in before]


def by_head(case: Case, head: StatusHead) -> list[set[str]]:
    """The drugs above even odds, at least the best one."""
    chosen = []
    with torch.inference_mode():
        for row in case.links(head).tolist():
            above = {d.name for d, logit in zip(case.drugs, row, strict=True) if logit > 0}
            chosen.append(above or {case.drugs[row.index(max(row))].name})
    return chosen


def trained(head: StatusHead, posts: Sequence[Case]) -> StatusHead:
    """A copy of the head whose layers for pairs learned the posts further, over unchanged hidden states."""
    torch.manual_seed(0)
    shuffled = random.Random(0)
    own = copy.deepcopy(head).train()
    optimizer = torch.optim.AdamW(own.pair.parameters(), lr=RATE, weight_decay=0.05)
    for _ in range(EPOCHS):
        order = shuffled.sample(list(posts), len(posts))
        for at in range(0, len(order), BATCH):
            batch = order[at : at + BATCH]
            losses = [nn.functional.binary_cross_entropy_with_logits(c.links(own), c.gold()) for c in batch]
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return own.eval()


def by_folds(head: StatusHead, posts: Sequence[Case]) -> list[list[set[str]]]:
    """For each post the answer of a head that was trained on the posts of the other folds."""
    order = random.Random(1).sample(range(len(posts)), len(posts))
    answers: dict[int, list[set[str]]] = {}
    for fold in range(FOLDS):
        own = set(order[fold::FOLDS])
        further = trained(head, [posts[i] for i in order if i not in own])
        answers |= {i: by_head(posts[i], further) for i in own}
    return [answers[i] for i in range(len(posts))]


def right(posts: Sequence[Case], answers: Sequence[Sequence[set[str]]]) -> dict[str, float | int]:
    """Events, and how many of them have exactly their medicines."""
    hits = [
        a == g for c, own in zip(posts, answers, strict=True) for a, (_, g) in zip(own, c.events, strict=True)
    ]
    return {
        "posts": len(posts),
        "events": len(hits),
        "right": sum(hits),
        "share": round(sum(hits) / len(hits), 4),
    }


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    torch.set_num_threads(1)
    tagger = load_release("ner", None, Settings(dtype="float32")).model
    assert isinstance(tagger, NerModel) and tagger.status_head is not None
    head = tagger.status_head
    train, held_out = cases(tagger, "train"), cases(tagger, "held_out")
    rows = {}
    for name, posts in (("training posts", train), ("held-out posts", held_out)):
        rows[f"{name}: rules"] = right(posts, [by_rules(c) for c in posts])
        rows[f"{name}: the last drug before the effect"] = right(posts, [by_nearest(c) for c in posts])
        rows[f"{name}: bundled pair head"] = right(posts, [by_head(c, head) for c in posts])
    rows["training posts: pair head trained further, by folds"] = right(train, by_folds(head, train))
    further = trained(head, train)
    rows["held-out posts: pair head trained further"] = right(
        held_out, [by_head(c, further) for c in held_out]
    )
    print_and_write({"rows": rows} | provenance("suspects"), result)


if __name__ == "__main__":
    run_program(main)
