"""The counts of each post, and the scores computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from models.scores import Counts, Measure, micro_f1, ratio
from training.evaluation.coding.end_to_end import matched_terms
from training.evaluation.posts.corpus import OTHER_KINDS, OWN_KINDS, Corpus, GoldEvent, GoldPost
from training.evaluation.posts.found import FoundEvent

PRIMARY = "coded_f1"
CODED = (
    "of unflagged coded events: distinct pairs of post and preferred term; NIL is no prediction, a gold term "
    "that the terminology does not know by name is a miss, and events that overlap a gold event without a "
    "known term are left out"
)
EVENTS = (
    "of unflagged events, coded or NIL: spans that share a character with an event of the writer's, each "
    "paired with one"
)
OVERLAPPING = "of unflagged events paired with an event of the writer's by their spans"
_CODED = ("coded_right", "coded_found", "coded_gold")
_EVENT = ("event_right", "event_found", "event_gold")
_COLUMNS = (
    *_CODED, *_EVENT, "known_term", "right_term", "known_drug", "right_drug",
    "own", "own_hit", "other", "other_alarmed",
)  # fmt: skip
NAMES = (
    *_COLUMNS,
    *(f"{kind}:{column}" for kind in OWN_KINDS for column in _CODED),
    *(f"{kind}:{column}" for kind in OTHER_KINDS for column in ("other", "other_alarmed")),
)
_AT = {name: i for i, name in enumerate(NAMES)}
ByTerm = Mapping[str, set[str]]


def counts_of(corpus: Corpus, found: Sequence[Sequence[FoundEvent]], by_term: ByTerm) -> Counts:
    """(posts, columns NAMES). `by_term`: lowest-level term in lower case to its preferred terms."""
    counts = np.zeros((len(corpus.records), len(NAMES)))
    for row, post, events in zip(counts, corpus.records, found, strict=True):
        for name, value in _post(post, events, by_term).items():
            row[_AT[name]] = value
    return counts


def _post(post: GoldPost, found: Sequence[FoundEvent], by_term: ByTerm) -> dict[str, float]:
    coded = dict(zip(_CODED, _coded(post, found, by_term), strict=True))
    paired = pairs(post.events, found)
    if post.events:
        kind, whole = coded, {"own": 1.0, "own_hit": float(bool(paired))}
    else:
        kind = whole = {"other": 1.0, "other_alarmed": float(bool(found))}
    return {
        **coded,
        **whole,
        **dict(zip(_EVENT, (len(paired), len(found), len(post.events)), strict=True)),
        **_attributes(paired, by_term),
        **{f"{post.kind}:{name}": value for name, value in kind.items()},
    }


def _coded(post: GoldPost, found: Sequence[FoundEvent], by_term: ByTerm) -> tuple[float, float, float]:
    """Right, found and gold preferred terms, times the weight of the post."""
    unknown = [e for e in post.events if not e.terms]
    pts = {f.pt for f in found if f.pt is not None and not any(_overlap(f, e) for e in unknown)}
    gold = {_right(e, by_term) or frozenset(e.terms) for e in post.events if e.terms}
    right, n = matched_terms(gold, pts), post.weight
    return right * n, len(pts) * n, len(gold) * n


def _right(event: GoldEvent, by_term: ByTerm) -> frozenset[str]:
    return frozenset(pt for name in event.terms for pt in by_term.get(name.lower(), ()))


def _attributes(paired: Sequence[tuple[GoldEvent, FoundEvent]], by_term: ByTerm) -> dict[str, float]:
    """How many of the paired events have a known gold term, and drug, and how many of them are right."""
    terms = [f.pt in _right(g, by_term) for g, f in paired if g.terms]
    drugs = [_same_drugs(g, f) for g, f in paired if g.drugs]
    return {
        "known_term": len(terms), "right_term": sum(terms),
        "known_drug": len(drugs), "right_drug": sum(drugs),
    }  # fmt: skip


def _same_drugs(gold: GoldEvent, found: FoundEvent) -> bool:
    """Whether the suspected drugs are those of the gold event, no more and no fewer."""
    named = set(found.drugs)
    return all(names & named for names in gold.drugs) and named <= frozenset().union(*gold.drugs)


def pairs(gold: Sequence[GoldEvent], found: Sequence[FoundEvent]) -> list[tuple[GoldEvent, FoundEvent]]:
    """Gold and found events that share a character, each in one pair, from left to right: as many pairs as
    possible where neither overlap among themselves.
    """
    left = sorted(gold, key=lambda e: e.end)
    result = []
    for event in sorted(found, key=lambda e: e.end):
        partner = next((g for g in left if _overlap(event, g)), None)
        if partner is not None:
            left.remove(partner)
            result.append((partner, event))
    return result


def _overlap(found: FoundEvent, gold: GoldEvent) -> bool:
    return found.start < gold.end and gold.start < found.end


def measures_of(corpus: Corpus) -> tuple[Measure, ...]:
    """The scores that the corpus' annotations allow, those of its kinds last."""
    if not corpus.spans:
        return tuple(m for m in _scores() if m.name.startswith("coded") or m.name == "false_posts")
    kinds = {p.kind for p in corpus.records}
    return (*_scores(), *_paired(), *_by_kind(kinds))


def _scores() -> Iterator[Measure]:
    for name, columns, what in (("coded", _CODED, CODED), ("event", _EVENT, EVENTS)):
        right, predicted, gold = (_AT[c] for c in columns)
        yield micro_f1(f"{name}_f1", f"F1 {what}", (right,))
        yield ratio(f"{name}_precision", f"precision {what}", (right, predicted))
        yield ratio(f"{name}_recall", f"recall {what}", (right, gold))
    alarmed = "share of posts without an event of the writer's that get an unflagged event, coded or NIL"
    yield ratio("false_posts", alarmed, (_AT["other_alarmed"], _AT["other"]))
    hit = "share of posts with an event of the writer's that get an unflagged event overlapping one"
    yield ratio("hit_posts", hit, (_AT["own_hit"], _AT["own"]))


def _paired() -> Iterator[Measure]:
    right = f"share {OVERLAPPING} whose preferred term is right, where the gold event has one; NIL is wrong"
    yield ratio("right_code", right, (_AT["right_term"], _AT["known_term"]))
    named = f"share {OVERLAPPING} whose suspected drugs are exactly the gold event's, where they are known"
    yield ratio("right_drug", named, (_AT["right_drug"], _AT["known_drug"]))


def _by_kind(kinds: set[str]) -> Iterator[Measure]:
    for kind in (k for k in OWN_KINDS if k in kinds):
        yield micro_f1(
            f"coded_f1_{kind}", f"posts of the kind {kind}: F1 {CODED}", (_AT[f"{kind}:{_CODED[0]}"],)
        )
    for kind in (k for k in OTHER_KINDS if k in kinds):
        columns = (_AT[f"{kind}:other_alarmed"], _AT[f"{kind}:other"])
        yield ratio(
            f"false_posts_{kind}", f"share of posts of the kind {kind} that get an unflagged event", columns
        )


def posts_of(name: str, corpus: Corpus) -> int | None:
    """The number of posts that a score is computed over; None: all."""
    if "false_posts" in name or "hit_posts" in name:
        kind = name.removeprefix("false_posts").removeprefix("_")
        of_events = "hit_posts" in name
        return sum(
            p.kind == kind if kind in OTHER_KINDS else bool(p.events) == of_events for p in corpus.records
        )
    kind = name.removeprefix("coded_f1_")
    if kind in OWN_KINDS:
        return sum(p.kind == kind and p.weight > 0 for p in corpus.records)
    if name.startswith("coded"):
        return sum(p.weight > 0 for p in corpus.records)
    return None
