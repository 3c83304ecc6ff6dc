"""How well reposts are recognized: real posts, copies of them with the edits of reposting, and other posts.

python -m benchmarks.sources.duplicates --json benchmarks/results/sources/duplicates.json
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from streams.intake.duplicates import SHORTEST, SIMILAR, Window
from streams.intake.masking import mask, unmasked_parts
from streams.intake.minhash import plain
from training.common.program_help import run_program
from training.teaching.markup import parse

ROOT = Path(__file__).parents[2]
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
COUNTED = (
    "right: a copy is said to repeat its own original; wrong: it is said to repeat another post, or a post "
    "that is no copy is said to be one"
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Length of an old retweet, and what is left of a post that is cut.
TWEET, CUT = 140, 0.8


def repost(text: str, rng: random.Random) -> str:
    return f"RT @user{rng.randrange(999)}: {text}"


def truncation(text: str, rng: random.Random) -> str:
    """A text cut as old retweets were: to 140 characters; a shorter text to four fifths."""
    return text[: min(TWEET, int(len(text) * CUT))] + "…"


def emoji(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for _ in range(rng.randint(1, 4)):
        words.insert(rng.randint(0, len(words)), rng.choice("😭😂🙏💀🤢😴"))
    return " ".join(words)


def url(text: str, rng: random.Random) -> str:
    return f"{text} https://t.co/{''.join(rng.choices(LETTERS, k=10))}"


def typo(text: str, rng: random.Random) -> str:
    """One wrong, missing, doubled or exchanged letter in about each 60 characters."""
    for _ in range(1 + len(text) // 60):
        i = rng.randrange(len(text) - 1)
        a, b = text[i], text[i + 1]
        changed = rng.choice([rng.choice(LETTERS) + b, b, a + a + b, b + a])
        text = text[:i] + changed + text[i + 2 :]
    return text


def several(text: str, rng: random.Random) -> str:
    return repost(url(emoji(text, rng), rng), rng)


EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "RT": repost, "truncation": truncation, "emoji": emoji, "URL": url, "typo": typo,
    "RT, emoji and URL": several,
}  # fmt: skip


def real_posts(more: Path | None) -> list[str]:
    """The samples, the teaching posts and the posts of a file, each text once; none of a few letters only."""
    files = [ROOT / "streams/samples/posts.jsonl", *([more] if more else [])]
    texts = [orjson.loads(line)["text"] for file in files for line in file.read_bytes().splitlines()]
    for path in sorted((ROOT / "training/data/teaching/posts").glob("*.txt")):
        texts += [parse(line).text for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return list({plain(text): text for text in texts if len(plain(text)) >= SHORTEST}.values())


def compared(text: str) -> str:
    """What of a text is compared."""
    return unmasked_parts(*mask(text))


def copies(texts: list[str]) -> dict[str, list[str]]:
    """For each edit the edited copy of each text."""
    rng = random.Random(20)
    return {name: [compared(edit(text, rng)) for text in texts] for name, edit in EDITS.items()}


def measure(texts: list[str], edited: dict[str, list[str]], similar: float) -> dict[str, Any]:
    """Sends the posts, then their copies, through a window; counts what is called a copy of what."""
    window = Window(len(texts) * 2, 7, similar)
    first = {i: window.first(str(i), compared(text), 0.0)[0] for i, text in enumerate(texts)}
    originals = [i for i, found in first.items() if found is None]
    found = {
        name: [(window.first(f"{name}{i}", of[i], 0.0)[0], str(i)) for i in originals]
        for name, of in edited.items()
    }
    recalls = {name: sum(f == i for f, i in pairs) / len(pairs) for name, pairs in found.items()}
    called = len(texts) - len(originals)
    wrong = sum(f not in (i, None) for pairs in found.values() for f, i in pairs)
    right = sum(f == i for pairs in found.values() for f, i in pairs)
    figures = {
        "precision": right / (right + wrong + called), "recall": right / (len(originals) * len(edited)),
        "other posts called copies": called, "copies of a wrong post": wrong,
    }  # fmt: skip
    figures |= {f"recall {name}": recall for name, recall in recalls.items()}
    return {name: round(value, 4) for name, value in figures.items()}


def main(
    posts: Annotated[
        Path | None, typer.Option(exists=True, help="JSON Lines with `text`: further posts to compare")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="write the figures here")] = None,
) -> None:
    texts = real_posts(posts)
    edited = copies(texts)
    words = [len(re.findall(r"\w+", text)) for text in texts]
    figures = {
        "posts": len(texts), "mean words": round(sum(words) / len(words), 1), "edits": len(EDITS),
        "threshold in use": SIMILAR, "counted": COUNTED, **provenance("sources.duplicates"),
        "rows": {f"similarity {t:g}": measure(texts, edited, t) for t in THRESHOLDS},
    }  # fmt: skip
    print_and_write(figures, json)


if __name__ == "__main__":
    run_program(main)
