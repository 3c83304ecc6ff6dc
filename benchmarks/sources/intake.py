"""Posts a second, on one core, of the intake and of its parts; beside decoding the same posts from JSON.

python -m benchmarks.sources.intake --json benchmarks/results/sources/intake.json
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.sources.duplicates import repost, url
from streams.intake.duplicates import Window
from streams.intake.filter import Filter, Terms, drug_terms
from streams.intake.intake import PostIntake, Privacy
from streams.intake.items import Post
from streams.intake.masking import mask
from streams.settings import Settings
from training.common.program_help import run_program
from training.teaching.markup import parse

ROOT = Path(__file__).parents[2]
#: Shares of a stream: posts about drugs, and of those reposts and posts with a URL.
RELEVANT, REPOSTED = 0.05, 0.2
#: Times that each part is measured; the parts take turns, and the best counts.
ROUNDS = 3
REGIONS = ("US", "GB")


def stream(n: int) -> list[dict[str, Any]]:
    """Posts of which few are about drugs: the others are those posts with the words of the lexicon taken out,
    so that they are as long; a third states no language.
    """
    rng = random.Random(7)
    texts = [
        orjson.loads(line)["text"]
        for line in (ROOT / "streams/samples/posts.jsonl").read_bytes().splitlines()
    ]
    for path in sorted((ROOT / "training/teaching/posts").glob("*.txt")):
        texts += [parse(line).text for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    terms = Terms(drug_terms())
    about = [text for text in texts if terms.occur_in(text)]
    other = [" ".join(word for word in text.split() if not terms.occur_in(word)) for text in about]
    other = [text for text in other if text and not terms.occur_in(text)]
    posts = []
    for i in range(n):
        text = rng.choice(about if rng.random() < RELEVANT else other)
        text = f"{rng.randrange(10**6)} {text}" if rng.random() > REPOSTED else url(repost(text, rng), rng)
        language = rng.choice(["en", "en", None])
        posts.append({"id": f"at://{i}", "text": text, "language": language, "author": f"user{i % 997}"})
    return posts


def rate(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    """Items a second of processor time."""
    started = time.process_time()
    for item in items:
        work(item)
    return len(items) / (time.process_time() - started)


def parts(posts: Sequence[Post], lines: Sequence[bytes]) -> dict[str, Callable[[], float]]:
    """What is measured, by its name; each measurement begins with an empty window."""
    filter_, privacy = Filter(Terms(drug_terms()), ("en",)), Privacy.of(Settings())
    keyed = Settings(author_key="0123456789abcdef")  # type: ignore[arg-type]

    def window() -> Window:
        return Window(keyed.duplicate_reports, keyed.duplicate_days)

    def first() -> float:
        seen = window()
        return rate(lambda p: seen.first(p.id, p.text, 0.0), posts[: len(posts) // 4])

    def whole(judge: Filter) -> Callable[[], float]:
        return lambda: rate(PostIntake(judge, Privacy.of(keyed), window()).take, posts)

    return {
        "decoding from JSON": lambda: rate(orjson.loads, lines),
        "filter": lambda: rate(lambda p: filter_.judge(p.text, p.language), posts),
        "masking": lambda: rate(lambda p: mask(p.text, privacy.regions), posts),
        "duplicates": first,
        "intake of a stream": whole(filter_),
        "intake, everything passes": whole(Filter(None, ("en",))),
    }


def main(
    posts: Annotated[int, typer.Option(min=1000, help="number of posts")] = 8_000,
    json: Annotated[Path | None, typer.Option(help="write the figures here")] = None,
) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    made = stream(posts)
    lines = [orjson.dumps(post) for post in made]
    items = [Post(**post) for post in made]
    terms = Filter(Terms(drug_terms()), ("en",))
    passed = sum(terms.judge(p.text, p.language) == "passed" for p in items)
    measured = parts(items, lines)
    best = dict.fromkeys(measured, 0.0)
    for _ in range(ROUNDS):
        for name, measure in measured.items():
            best[name] = max(best[name], measure())
    plain = best["decoding from JSON"]
    rows = {
        name: {
            "posts/s": round(n),
            "microseconds a post": round(1e6 / n, 1),
            "over decoding": round(plain / n, 1),
        }
        for name, n in best.items()
    }
    characters = sum(len(p.text) for p in items) / len(items)
    figures = {
        "posts": posts,
        "mean characters": round(characters),
        "share that passes": round(passed / posts, 3),
    }
    print_and_write(figures | {"rounds": ROUNDS, **provenance("sources.intake"), "rows": rows}, json)


if __name__ == "__main__":
    run_program(main)
