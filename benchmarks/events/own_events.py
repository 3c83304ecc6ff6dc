"""From which probability on is the status head's word enough that an event is the writer's?

Flags are set by the head alone, and by the rules beside it that may find another experiencer below each value
of `models.assertion.status.SURE`. The value is chosen on texts that the release in question has not learned
and that are no test part: PsyTAR's development part, and the posts of the teaching corpus that were added
after an earlier release was trained, read by that one. (Earlier runs behind the bundled release have learned
what is PsyTAR's validation part today.) The other data are measured without a choice: the held-out posts,
PsyTAR's test sentences, and tweets, whose labels are imperfect. The earlier release and what it knew:

    git archive 7a378f8a models/pretrained/ner/d5540536dd90 | tar x -C FOLDER
    git archive 366d9688 training/teaching/posts | tar x -C FOLDER
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.events.alarms import TWEETS
from benchmarks.machine import print_and_write, provenance
from models.ner.model import NerModel
from models.types import CODED_LABELS, DRUG, Mention
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.corpora import GoldText, read_psytar
from training.common.program_help import run_program
from training.evaluation.alarms import Post, overlaps
from training.evaluation.own_events import (
    DEFINITIONS as CURVE,
)
from training.evaluation.own_events import (
    Unflagged,
    by_head,
    by_head_and_rules,
    by_rules,
    own_event_curve,
    shares,
)
from training.evaluation.posts.corpus import psytar
from training.ner.event_options import held_out_posts
from training.teaching.readers import gold_texts, marked_texts

SURE = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
DEFINITIONS = {
    "f1": "harmonic mean of the coverage and of 1 - risk",
    "coverage": CURVE["coverage"],
    "risk": CURVE["risk"],
    "flags": "number of events with a flag",
    "flag precision": "share of the events with a flag that share a character with no event of the writer's",
    "flag recall": "share of the events that share a character with none that have a flag",
    "rules below P": "the head, and the rules where its probability is lower than P",
    "by the head, by the rules": "both on what the release finds; 'no flags' is the baseline that sets none",
}


def flags() -> Mapping[str, Unflagged]:
    """What decides whether an event has no flag, by name."""
    below = {f"rules below {p}": p for p in SURE} | {"rules always": math.inf}
    return (
        {"no flags": lambda text, mention: True, "by the rules": by_rules, "by the head": by_head}
        | {name: partial(by_head_and_rules, sure=p) for name, p in below.items()}
    )  # fmt: skip


def figures(
    posts: Sequence[Post], found: Sequence[Sequence[Mention]], unflagged: Unflagged
) -> dict[str, float | int]:
    """The scores of DEFINITIONS of the events among `found`."""
    kept = shares(posts, found, unflagged)
    recall, precision = kept["coverage"], 1 - kept["risk"] if kept["unflagged"] else 0.0
    flagged = right = others = 0
    for post, mentions in zip(posts, found, strict=True):
        for m in mentions:
            if m.label in CODED_LABELS:
                is_other = not overlaps((m.start, m.end), post.events)
                has_flag = not unflagged(post.text, m)
                others += is_other
                flagged += has_flag
                right += is_other and has_flag
    return {
        "f1": round(2 * precision * recall / max(1e-9, precision + recall), 4),
        "coverage": kept["coverage"],
        "risk": kept["risk"],
        "flags": flagged,
        "flag precision": round(right / max(1, flagged), 4),
        "flag recall": round(right / max(1, others), 4),
    }


def tweets(lines: str) -> list[Post]:
    """Tweets with the adverse effects of their writers, and those that speak of none; the others, which speak
    of an effect in general, are left out.
    """
    posts = []
    for row in map(json.loads, lines.splitlines()):
        if row["kind"] in {"own_event", "none"}:
            adverse = {r["symptom"] for r in row["relations"] if r["kind"] == "adverse"}
            mentions = [row["mentions"][i] for i in sorted(adverse)] if row["kind"] == "own_event" else []
            events = tuple((m["start"], m["end"]) for m in mentions if m["label"] != DRUG)
            posts.append(Post(row["text"], events, bool(events)))
    return posts


def _post(text: GoldText) -> Post:
    events = tuple((m.start, m.end) for m in text.mentions if m.label in CODED_LABELS)
    return Post(text.text, events, bool(events))


def added_posts(known: Path) -> list[Post]:
    """The training posts of the teaching corpus that are not in the folder of an earlier one."""
    before = {text.text for _, text in marked_texts("posts", "train", known)}
    return [_post(text) for text in gold_texts("posts", "train") if text.text not in before]


def parts(data: Path, release: NerModel, earlier: NerModel, known: Path) -> Iterator[tuple[str, Any, Any]]:
    """The name of each part with its posts and the tagger that reads it."""
    yield "added posts (earlier release)", added_posts(known), earlier
    trained = {text.text for text in read_psytar(data / "psytar/ner_train.conll")}
    dev = [t for t in read_psytar(data / "psytar/ner_dev.conll") if t.text not in trained]
    yield "PsyTAR development", [_post(text) for text in dev], release
    yield "held-out posts", held_out_posts(), release
    records = psytar(data).records
    spans = [tuple((e.start, e.end) for e in post.events) for post in records]
    yield "PsyTAR test", [Post(p.text, s, bool(s)) for p, s in zip(records, spans, strict=True)], release
    yield "tweets", tweets((data / TWEETS).read_text(encoding="utf-8")), release


def measured(posts: Sequence[Post], model: NerModel) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """The figures of each way of setting flags, and the curve of risk and coverage."""
    reading = model.read([p.text for p in posts])
    found = model.mentions_of(reading, model.decoding.event_below)
    rows = {name: figures(posts, found, unflagged) for name, unflagged in flags().items()}
    return rows, own_event_curve(model, posts, reading)


def main(
    data: Annotated[Path, typer.Option(help=f"folder with psytar/ and {TWEETS}")],
    earlier: Annotated[Path, typer.Option(help="folder of a release that knew fewer posts")],
    known: Annotated[Path, typer.Option(help="folder with the posts/ that it was trained on")],
    release: Annotated[Path | None, typer.Option(help="a NER release; by default the bundled one")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    settings = Settings(dtype="float32")
    loaded, before = load_release("ner", release, settings), load_release("ner", earlier, settings)
    now: Any = loaded.model
    then: Any = before.model
    rows: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for name, posts, model in parts(data, now, then, known):
        own, curves[name] = measured(posts, model)
        rows |= {f"{name}, {how}": row for how, row in own.items()}
    found = {"release": loaded.version, "earlier": before.version, "rows": rows, "curves": curves}
    described = {"definitions": DEFINITIONS, "curve_definitions": CURVE}
    print_and_write(found | described | provenance("events.own_events"), result)


if __name__ == "__main__":
    run_program(main)
