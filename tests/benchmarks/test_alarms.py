"""Which tweets are compared, and what counts as their events."""

from __future__ import annotations

import json

from benchmarks.alarms import natural_posts, pipeline_events, posts
from models.types import Stated
from streams.settings import Settings
from training.evaluation.alarms import Post


def test_tweets_with_an_own_event_are_compared_to_those_without_any() -> None:
    def row(kind: str, *mentions: tuple[int, int, str]) -> str:
        spans = [{"start": a, "end": b, "label": label} for a, b, label in mentions]
        return json.dumps({"kind": kind, "text": "zoloft hives", "mentions": spans})

    lines = "\n".join(
        [row("own_event", (0, 6, "DRUG"), (7, 12, "SYMPTOM")), row("spoken_of"), row("none", (0, 6, "DRUG"))]
    )
    assert posts(lines) == [Post("zoloft hives", ((7, 12),), True), Post("zoloft hives", (), False)]


def test_tweets_at_the_natural_share_have_no_spans() -> None:
    rows = [{"id": "d-0", "text": "zoloft hives", "adr": True}, {"id": "d-1", "text": "zoloft", "adr": False}]
    found = natural_posts("\n".join(map(json.dumps, rows)))
    assert found == [Post("zoloft hives", (), True), Post("zoloft", (), False)]


def test_the_whole_pipeline_knows_what_is_stated() -> None:
    texts = ["Zoloft gave me hives.", "My anxiety is bad, and it gave me hives.", "I took zoloft."]
    stated = [Stated(), Stated(("zoloft",), "anxiety"), Stated()]
    posts_ = [Post(text, (), False, s) for text, s in zip(texts, stated, strict=True)]
    spans = pipeline_events(posts_, Settings(dtype="float32", judge="off"))
    words = [[text[a:b] for a, b in own] for text, own in zip(texts, spans, strict=True)]
    assert words == [["hives"], ["hives"], []]
