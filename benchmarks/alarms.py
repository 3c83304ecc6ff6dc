"""How many real texts with an event of the writer's raise an alarm, and how many without? Which are right?

`tweets` (TwiMed, Alvaro et al. 2017) and `tweets_natural` (Sarker and Gonzalez 2015, at the natural share of
reactions) are for development, since their labels are imperfect. Tweets of TwiMed that speak of an effect in
general are left out. Reviews and reports are parts of training/data/marked_reviews and marked_reports; a test
part is not looked at before a decision is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from benchmarks.machine import print_and_write, provenance
from streams.library import load
from streams.records import CodedEvent, CodedReport, Report
from streams.rollout.loading import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.alarms import DEFINITIONS, Post, alarm_curve, event_row, event_scores
from training.evaluation.judged_events import MARKED, marked

#: Reports that go through the pipeline together.
BATCH = 64
TWEETS, NATURAL = "tweets/twimed_dev.jsonl", "tweets/diego_dev.jsonl"


def posts(lines: str) -> list[Post]:
    """Tweets with an event of the writer's, and those without any, from JSON lines."""
    rows = [json.loads(line) for line in lines.splitlines()]
    return [
        Post(
            row["text"],
            tuple((m["start"], m["end"]) for m in row["mentions"] if m["label"] != "DRUG"),
            row["kind"] == "own_event",
        )
        for row in rows
        if row["kind"] in {"own_event", "none"}
    ]


def natural_posts(lines: str) -> list[Post]:
    """Tweets with and without a reaction from JSON lines; where it stands is not marked."""
    rows = [json.loads(line) for line in lines.splitlines()]
    return [Post(row["text"], (), row["adr"]) for row in rows]


def marked_posts(split: str, data: Path) -> list[Post]:
    """The marked texts of reviews or reports that are not empty."""
    source, part = MARKED[split]
    return [Post(t.text, t.events, bool(t.events), t.stated) for t in marked(data, part, source)]


def pipeline_events(
    posts_: Sequence[Post], settings: Settings, topic: str = "posts"
) -> list[list[tuple[int, int]]]:
    """The spans of the events that the whole pipeline reports as the writer's, with what is stated."""
    annotator = load(topic, settings=settings)
    reports = [
        Report(id=str(i), text=p.text, drug=p.stated.drugs, indication=p.stated.indication)
        for i, p in enumerate(posts_)
    ]
    spans = []
    for start in range(0, len(reports), BATCH):
        for record in annotator.predict(reports[start : start + BATCH]):
            assert isinstance(record, CodedReport)
            events = [record.mentions[e.mention] for e in record.events if is_own(e)]
            spans.append([(m.start, m.end) for m in events])
    return spans


def is_own(event: CodedEvent) -> bool:
    """Whether an event is stated of the writer."""
    return not (event.negated or event.hypothetical or event.other_experiencer)


SETS: dict[str, Callable[[Path], list[Post]]] = {
    "tweets": lambda data: posts((data / TWEETS).read_text(encoding="utf-8")),
    "tweets_natural": lambda data: natural_posts((data / NATURAL).read_text(encoding="utf-8")),
} | {split: partial(marked_posts, split) for split in MARKED}


def main(
    data: Annotated[Path, typer.Option(exists=True, help="folder of the corpora")],
    texts: Annotated[str, typer.Option("--set", help=", ".join(SETS))] = "tweets",
    release: Annotated[
        Path | None, typer.Option(exists=True, help="a NER release; by default the bundled one")
    ] = None,
    pipeline: Annotated[
        bool, typer.Option(help="whole pipeline too, with the judge and the releases that PV_ settings name")
    ] = False,
    topic: Annotated[
        Literal["posts", "sentences"], typer.Option(help="whose stages are the pipeline")
    ] = "posts",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    if texts not in SETS:
        raise typer.BadParameter(f"--set {texts}: {', '.join(SETS)}")
    loaded = load_release("ner", release, Settings(dtype="float32"))
    chosen = SETS[texts](data)
    model: Any = loaded.model
    figures = {"release": loaded.version, "set": texts} | alarm_curve(model, chosen)
    figures |= {"events": event_scores(model, chosen)}
    if pipeline:
        named = Settings().releases | ({"ner": release} if release is not None else {})
        settings = Settings(releases=named)
        figures |= {"pipeline": event_row(chosen, pipeline_events(chosen, settings, topic))}
    print_and_write(figures | {"definitions": DEFINITIONS} | provenance("alarms"), result)


if __name__ == "__main__":
    run_program(main)
