"""How well do the models and rules perform on posts that are written to mislead them?

The posts of tests/data/challenge have idioms that name a symptom and idioms that do not, effects that are
denied, feared or of another person, and reasons for taking a drug. Each figure is given with that of a
trivial baseline.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.machine import provenance
from models import terminology
from models.assertion.rules import assertion
from models.scores import f1, strict_spans
from models.text import words
from models.types import ADE, Query
from streams.agents import ner, normalization
from streams.records import Report
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program

POSTS = Path(__file__).parents[2] / "tests/data/challenge/posts.jsonl"
FLAGS = ("negated", "hypothetical", "other_experiencer")
BATCH = 32
DEFINITIONS = {
    "ade_strict_f1": "F1 of mentions labelled ADE, exact boundaries",
    "ade_overlap_f1": "the same, but right is what shares a character with a mention of the other side",
    "false_events_per_100": "events without a flag, NIL ones too, whose mention overlaps no gold event "
    "without a flag, per 100 posts",
    "false_events_unflagged_per_100": "the same with all events that the pipeline gives, flagged or not",
    "missed_events_per_100": "gold events without a flag that no such event overlaps, per 100 posts",
    "coding_acc1": "gold events, mentions given, whose preferred term is the best candidate's, NIL or not",
    "coding_acc5": "the same among the five best candidates",
    "..._flag_precision": "flags set that gold has, over flags set, on gold events with mentions given",
    "..._flag_recall": "flags set that gold has, over flags of gold, on gold events with mentions given",
}
BASELINE = (
    "mentions and events: longest matches of the bundled terminology's lowest-level terms, none flagged; "
    "coding: the preferred term of the lowest-level term that equals the mention but for case; flags: all set"
)
#: For each gold event of a post: its preferred term, and the preferred terms that a method gives, best first.
Codings = list[tuple[str, tuple[str, ...]]]


class Event(NamedTuple):
    """An adverse event with its span, its preferred term and the flags that are set."""

    start: int
    end: int
    pt: str
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Post:
    """A post with its mentions and events: annotated by hand (gold), or predicted by a method."""

    kind: str
    text: str
    ades: frozenset[tuple[int, int, str]]
    events: tuple[Event, ...]


def gold_posts(path: Path = POSTS) -> list[Post]:
    """The annotated posts."""
    posts = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        ades = frozenset((m["start"], m["end"], ADE) for m in row["mentions"] if m["label"] == ADE)
        events = [
            Event(e["start"], e["end"], e["pt"], frozenset(f for f in FLAGS if e[f])) for e in row["events"]
        ]
        posts.append(Post(row["class"], row["text"], ades, tuple(events)))
    return posts


def by_pipeline(tagger: Any, coder: Any, posts: Sequence[Post]) -> list[Post]:
    """The posts with the mentions and events that the stages predict."""
    predicted = []
    for i in range(0, len(posts), BATCH):
        chunk = posts[i : i + BATCH]
        reports = [Report(id=f"challenge-{i + n}", text=p.text) for n, p in enumerate(chunk)]
        coded = normalization.predict(coder, ner.predict(tagger, reports))
        for post, report in zip(chunk, coded, strict=True):
            mentions = [report.mentions[e.mention] for e in report.events]
            events = [
                Event(m.start, m.end, e.pt or "", frozenset(f for f in FLAGS if getattr(e, f)))
                for m, e in zip(mentions, report.events, strict=True)
            ]
            ades = frozenset((m.start, m.end, ADE) for m in report.mentions if m.label == ADE)
            predicted.append(Post(post.kind, post.text, ades, tuple(events)))
    return predicted


class LookUp:
    """The baseline: exact matches of lowest-level terms."""

    def __init__(self, terms: Sequence[terminology.Term]) -> None:
        self.terms: dict[tuple[str, ...], str] = {}
        for term in terms:
            self.terms.setdefault(self._words(term.llt), term.pt)
        self.longest = max(map(len, self.terms))

    def tag(self, posts: Sequence[Post]) -> list[Post]:
        """The posts with the longest matches as mentions and events."""
        tagged = []
        for post in posts:
            events = tuple(self._events(post.text))
            ades = frozenset((e.start, e.end, ADE) for e in events)
            tagged.append(Post(post.kind, post.text, ades, events))
        return tagged

    def code(self, posts: Sequence[Post]) -> list[Codings]:
        """The gold events, each coded to the term that equals it."""
        return [
            [(e.pt, (self.terms.get(self._words(p.text[e.start : e.end]), ""),)) for e in p.events]
            for p in posts
        ]

    def _events(self, text: str) -> list[Event]:
        spans, events, i = words(text), [], 0
        lower = [text[s.start : s.end].lower() for s in spans]
        while i < len(spans):
            for n in range(min(self.longest, len(spans) - i), 0, -1):
                if pt := self.terms.get(tuple(lower[i : i + n])):
                    events.append(Event(spans[i].start, spans[i + n - 1].end, pt))
                    i += n - 1
                    break
            i += 1
        return events

    @staticmethod
    def _words(text: str) -> tuple[str, ...]:
        return tuple(text[s.start : s.end].lower() for s in words(text))


def codings(coder: Any, posts: Sequence[Post]) -> list[Codings]:
    """The gold events with the candidates of the normalization model."""
    queries = [Query(p.text, e.start, e.end, p.text[e.start : e.end]) for p in posts for e in p.events]
    answers = iter(coder.predict(queries))
    return [[(e.pt, tuple(c.pt for c in next(answers).candidates)) for e in p.events] for p in posts]


def tagging_scores(predicted: Sequence[Post], gold: Sequence[Post]) -> dict[str, float]:
    """F1 of the mentions labelled ADE: with exact boundaries, and by overlap."""
    strict = strict_spans([p.ades for p in predicted], [p.ades for p in gold], [ADE]).micro
    correct = missed = 0
    for p, g in zip(predicted, gold, strict=True):
        correct += sum(any(_overlap(a, b) for b in g.ades) for a in p.ades)
        missed += sum(not any(_overlap(a, b) for a in p.ades) for b in g.ades)
    n_predicted, n_gold = (sum(len(p.ades) for p in posts) for posts in (predicted, gold))
    precision = correct / n_predicted if n_predicted else 0.0
    recall = 1 - missed / n_gold if n_gold else 0.0
    overlap = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"ade_strict_f1": strict.f1, "ade_overlap_f1": overlap}


def event_errors(predicted: Sequence[Post], gold: Sequence[Post]) -> dict[str, float]:
    """False and missed events per 100 posts, with and without the flags."""
    false = unflagged = missed = 0
    for p, g in zip(predicted, gold, strict=True):
        real = [e for e in g.events if not e.flags]
        wrong = [e for e in p.events if not any(_overlap(e, r) for r in real)]
        unflagged += len(wrong)
        false += sum(not e.flags for e in wrong)
        kept = [e for e in p.events if not e.flags]
        missed += sum(not any(_overlap(e, r) for e in kept) for r in real)
    per_100 = 100 / len(gold)
    return {
        "false_events_per_100": false * per_100,
        "false_events_unflagged_per_100": unflagged * per_100,
        "missed_events_per_100": missed * per_100,
    }


def coding_scores(coded: Sequence[Codings]) -> dict[str, float]:
    """Share of the gold events whose preferred term is among the first 1 and 5 candidates."""
    pairs = [pair for post in coded for pair in post]
    return {
        f"coding_acc{k}": sum(pt in terms[:k] for pt, terms in pairs) / len(pairs) for k in (1, 5) if pairs
    }


def flag_scores(posts: Sequence[Post], all_set: bool = False) -> dict[str, float]:
    """Precision and recall of each flag on the gold events, as the rules set it, or with all flags set."""
    scores: dict[str, float] = {}
    for flag in FLAGS:
        pairs = [
            (all_set or getattr(assertion(p.text, e.start, e.end), flag), flag in e.flags)
            for p in posts
            for e in p.events
        ]
        both = f1(sum(a and b for a, b in pairs), sum(a for a, _ in pairs), sum(b for _, b in pairs))
        if any(b for _, b in pairs):
            scores |= {f"{flag}_flag_precision": both.precision, f"{flag}_flag_recall": both.recall}
    return scores


def _overlap(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return bool(a[0] < b[1] and b[0] < a[1])


def figures(
    gold: list[Post], predicted: list[Post], coded: list[Codings], *, all_set: bool
) -> dict[str, Any]:
    """Figures of each class and of all posts together."""
    result: dict[str, Any] = {}
    for kind in [*dict.fromkeys(p.kind for p in gold), "all"]:
        own = [i for i, p in enumerate(gold) if kind in {p.kind, "all"}]
        g, p = [gold[i] for i in own], [predicted[i] for i in own]
        scores = tagging_scores(p, g) | event_errors(p, g)
        scores |= coding_scores([coded[i] for i in own]) | flag_scores(g, all_set)
        counts = {"posts": len(g), "events": sum(len(p.events) for p in g)}
        result[kind] = counts | {name: round(value, 3) for name, value in scores.items()}
    return result


def print_table(ours: dict[str, Any], baseline: dict[str, Any]) -> None:
    """Prints each figure with that of the baseline, one column per class."""
    table = Table("figure", *ours, title="ours (baseline)")
    for name in ours["all"]:
        cells = [f"{ours[k][name]:g} ({baseline[k][name]:g})" if name in ours[k] else "" for k in ours]
        table.add_row(name, *cells)
    Console(width=200).print(table)


def _version_or_path(release: str | None) -> str | Path | None:
    return Path(release) if release and Path(release).is_dir() else release


def main(
    ner_release: Annotated[
        str | None, typer.Option("--ner", help="NER release, a version or directory; by default bundled")
    ] = None,
    normalization_release: Annotated[
        str | None, typer.Option("--normalization", help="normalization release, likewise")
    ] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    tagger = load_release("ner", _version_or_path(ner_release), Settings())
    coder = load_release("normalization", _version_or_path(normalization_release), Settings())
    gold, look_up = gold_posts(), LookUp(terminology.load())
    ours = figures(
        gold, by_pipeline(tagger.model, coder.model, gold), codings(coder.model, gold), all_set=False
    )
    baseline = figures(gold, look_up.tag(gold), look_up.code(gold), all_set=True)
    print_table(ours, baseline)
    row = {
        **ours["all"],
        **provenance("events.challenge"),
        "releases": {"ner": tagger.version, "normalization": coder.version},
        "definitions": DEFINITIONS,
        "classes": ours,
        "baseline": baseline,
        "baseline_definition": BASELINE,
    }
    if result is not None:
        result.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
