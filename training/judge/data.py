"""What a judge learns from: mentions with their classes, marked ones and those that the tagger finds, and
their vectors, which are computed once and kept on disk.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from models.judge.features import Features
from models.releases.private import private_folder
from models.releases.tensors import read_tensors
from models.types import DRUG, Case, Mention, Stated
from training.evaluation.judge import JudgedText, cases_of, judged_text, psytar, reviews, written
from training.judge.settings import Settings
from training.teaching.reviewed import read_reviewed

#: Corpus of the settings to its reader: a further corpus is one more line.
READERS: dict[str, Callable[[Path], list[JudgedText]]] = {
    "written": written,
    "psytar": lambda data: psytar(data, "train"),
    "reviews": reviews,
}
#: What the tagger finds where nobody marked anything: of some class that is no event.
NO_EVENT = "no event"
#: Texts that reviewers have decided, as the command of a run names them.
DECIDED = "decided"
#: Texts that are encoded together and kept in one file.
TOGETHER = 64
console = Console()


@dataclass(frozen=True, slots=True)
class Example:
    """A text with mentions, and the class of each."""

    case: Case
    classes: tuple[str, ...]


def read(
    data: Path, settings: Settings, tagger: Any, decided: Path | None = None
) -> dict[str, list[Example]]:
    """Corpus to its texts with any mention; `decided` is a file of texts that reviewers have decided. Raises
    CorpusError.
    """
    found = {name: READERS[name](data) for name in dict.fromkeys(settings.corpora.split("+"))}
    if decided is not None:
        found[DECIDED] = [judged_text(marked) for marked in read_reviewed(decided).values()]
    corpora = {}
    for name, all_texts in found.items():
        texts = all_texts[: settings.limit] if settings.limit else all_texts
        if name == "written":
            texts = _some_stated(texts, settings)
        cases = [c for i in range(0, len(texts), TOGETHER) for c in cases_of(texts[i : i + TOGETHER], tagger)]
        made = (_example(t, c, settings.unmatched) for t, c in zip(texts, cases, strict=True))
        corpora[name] = [example for example in made if example.classes]
        count = sum(len(example.classes) for example in corpora[name])
        console.print(f"{name}: {count} mentions in {len(corpora[name])} of {len(texts)} texts")
    return corpora


def _some_stated(texts: Sequence[JudgedText], settings: Settings) -> list[JudgedText]:
    """The texts, most of which name their drug themselves; no source states anything of some."""
    draw = random.Random(settings.seed)
    return [t if draw.random() < settings.stated else t._replace(stated=Stated()) for t in texts]


def _example(text: JudgedText, case: Case, unmatched: bool) -> Example:
    """The marked mentions, and those that the tagger found with the class of the mark that they share most
    characters with.
    """
    spans = {(start, end): name for start, end, name in text.mentions}
    for found in case.mentions:
        if found.label == DRUG:
            continue
        shared = [(min(found.end, end) - max(found.start, start), name) for start, end, name in text.mentions]
        most, name = max(shared, default=(0, ""))
        if most > 0 or unmatched:
            spans.setdefault((found.start, found.end), name if most > 0 else NO_EVENT)
    places = sorted(spans)
    mentions = tuple(Mention(a, b, text.text[a:b], "ADE", 1.0) for a, b in places)
    return Example(replace(case, mentions=mentions), tuple(spans[place] for place in places))


def vectors_of(cases: Sequence[Case], features: Features, of: str, folder: Path) -> list[list[Tensor | None]]:
    """The vectors of each case's mentions, in 16 bits on disk below `folder`, where those of an earlier run
    are found. `of`: what else they depend on, such as the digest of the base.
    """
    found: list[list[Tensor | None]] = []
    for i in range(0, len(cases), TOGETHER):
        found += _together(cases[i : i + TOGETHER], features, of, folder)
        if i % (10 * TOGETHER) == 0:
            console.print(
                f"vectors of {min(i + TOGETHER, len(cases))} of {len(cases)} texts", highlight=False
            )
    return found


def _together(cases: Sequence[Case], features: Features, of: str, folder: Path) -> list[list[Tensor | None]]:
    content = orjson.dumps([of, features.how.around, features.how.prefix, features.encoder.max_pieces, cases])
    path = folder / f"{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
    if not path.exists():
        vectors = features.of(cases)
        folder.mkdir(parents=True, exist_ok=True)
        with private_folder("vectors", folder, ".vectors-") as own:
            save_file(dict(_named(vectors, features.size)), own / path.name)
            (own / path.name).rename(path)
    stored = read_tensors(path)
    rows = iter(stored["rows"].float())
    there = iter(stored["there"].tolist())
    return [[next(rows) if next(there) else None for _ in case.mentions] for case in cases]


def _named(vectors: Sequence[Sequence[Tensor | None]], size: int) -> Iterator[tuple[str, Tensor]]:
    flat = [v for own in vectors for v in own]
    rows = [v for v in flat if v is not None]
    yield "rows", torch.stack(rows).half() if rows else torch.zeros(0, size).half()
    yield "there", torch.tensor([v is not None for v in flat])
