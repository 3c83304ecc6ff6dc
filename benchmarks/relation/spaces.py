"""Draws the entity and relation embedding spaces as t-SNE maps (Theodoropoulos et al. 2021, figures 6 and 8),
of a release and of its base model, on sentences that were not trained on.

The maps are SVG files. The title of each gives the share of points whose nearest other point in the original
space has the same kind, and the share expected by chance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.machine import provenance
from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.relation.model import RelationModel
from models.relation.neighbours import Floats
from models.releases.store import open_release
from models.text import word_texts
from training.common.program_help import run_program
from training.evaluation.relation import split_texts
from training.relation.data import TAGS, Example, examples, offsets
from training.relation.knn_scores import nearest
from training.relation.spaces.cldr import candidates

console = Console()
SIZE, MARGIN, RADIUS = 640, 40, 2.4
COLOURS = ("#9aa0a6", "#1a73e8", "#8ab4f8", "#d93025", "#f6aea9")
WHAT = "share of words, and of pairs of words, whose nearest other one is of the same kind"
KINDS = ("unrelated: one word is wrong", "related")


class Points(NamedTuple):
    """The points of one map: vectors (points, d), the kind of each point, and the names of the kinds."""

    name: str
    vectors: Floats
    kinds: NDArray[np.int64]
    labels: Sequence[str]

    def share(self) -> tuple[float, float]:
        """Share of points whose nearest neighbour has the same kind, and the share expected by chance."""
        x = torch.from_numpy(self.vectors)
        _, rows = nearest(x, x, 2)
        # The point itself is one of the two; among equal points it may be the second.
        own = torch.arange(len(x))
        other = torch.where(rows[:, 0] == own, rows[:, 1], rows[:, 0]).numpy()
        _, counts = np.unique(self.kinds, return_counts=True)
        return float((self.kinds[other] == self.kinds).mean()), float(((counts / counts.sum()) ** 2).sum())


def points_of(
    name: str, words: Sequence[Floats], pairs: Sequence[Floats], data: Sequence[Example], each: int
) -> list[Points]:
    """The points of both spaces, at most `each` of a kind. `words` and `pairs` are the word vectors of each
    sentence, (words, d), in the entity space and in the relation space.
    """
    rng = np.random.default_rng(0)
    tags = np.concatenate([e.tags for e in data])
    kinds = [i for i in range(len(TAGS)) if (tags == i).any()]
    chosen = np.concatenate([rng.permutation(np.flatnonzero(tags == i))[:each] for i in kinds])
    numbers = np.array([kinds.index(t) for t in tags[chosen]])
    entities = Points(
        f"{name}, entities", unit(np.concatenate(words)[chosen]), numbers, [TAGS[k] for k in kinds]
    )
    drawn, sentence = candidates(data, 2, torch.Generator().manual_seed(0))
    places = (drawn + offsets(data)[sentence, None, None])[:, [0, 1 + int(rng.integers(2))]].numpy()
    places = places[rng.permutation(len(places))[:each]]
    related = np.tile([1, 0], len(places))
    vectors = np.concatenate(pairs)[places].reshape(2 * len(places), -1)
    return [entities, Points(f"{name}, relations", unit(vectors), related, KINDS)]


def draw(points: Points, perplexity: float, seed: int) -> str:
    """A t-SNE map as SVG."""
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]  # noqa: PLC0415  a second to import

    limit = (len(points.vectors) - 1) / 3
    coordinates: Any = TSNE(
        perplexity=min(perplexity, limit), random_state=seed, init="pca", metric="euclidean", n_jobs=1
    ).fit_transform(points.vectors)
    low, high = coordinates.min(0), coordinates.max(0)
    places = MARGIN + (coordinates - low) / np.maximum(high - low, 1e-9) * (SIZE - 2 * MARGIN)
    same, chance = points.share()
    title = f"{points.name}: nearest point of the same kind {same:.1%}, by chance {chance:.1%}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE + 20 * len(points.labels)}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="24">{escape(title)}</text>',
    ]
    for (x, y), kind in zip(places.tolist(), points.kinds.tolist(), strict=True):
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{COLOURS[kind]}" fill-opacity="0.7"/>'
        )
    for row, label in enumerate(points.labels):
        y = SIZE + 20 * row
        lines.append(f'<circle cx="{MARGIN}" cy="{y - 4}" r="5" fill="{COLOURS[row]}"/>')
        lines.append(f'<text x="{MARGIN + 12}" y="{y}">{escape(label)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    release: Annotated[Path, typer.Option(help="a relation release")],
    output: Annotated[Path, typer.Option(help="folder for the maps")],
    split: Annotated[str, typer.Option(help="split whose test part is drawn")] = "ade_fold_1",
    each: Annotated[int, typer.Option(help="maximum number of points of a kind")] = 400,
    perplexity: Annotated[float, typer.Option(help="perplexity of t-SNE")] = 30.0,
    seed: Annotated[int, typer.Option(help="seed of t-SNE")] = 42,
    result: Annotated[Path | None, typer.Option("--json", help="write the shares here")] = None,
) -> None:
    torch.set_num_threads(1)
    opened = open_release(release)
    model = RelationModel.load(opened)
    plain = Encoder.load(opened.manifest.base)
    _, test = split_texts(data / "ade", split)
    shown = [e for e in examples(test, plain) if len(e.pairs)]
    sentences = [word_texts(e.gold.text) for e in shown]
    read = model.spaces.encode(sentences)
    counts = [len(e.tags) for e in shown]

    def cut(vectors: Sequence[Floats]) -> list[Floats]:
        return [v[:n] for v, n in zip(vectors, counts, strict=True)]

    words, pairs = cut(model.spaces.entity_vectors(read)), cut(model.spaces.relation_vectors(read))
    with torch.inference_mode():
        base = cut([unit(v.numpy()) for v in plain.word_vectors(sentences)])
    output.mkdir(parents=True, exist_ok=True)
    shares: dict[str, Any] = {}
    for points in points_of("plain base", base, base, shown, each) + points_of(
        f"release {opened.version}", words, pairs, shown, each
    ):
        path = output / (points.name.replace(", ", "-").replace(" ", "-") + ".svg")
        path.write_text(draw(points, perplexity, seed), encoding="utf-8")
        same, chance = points.share()
        shares |= {points.name: round(same, 4), f"{points.name}, by chance": round(chance, 4)}
        console.print(f"{path}: {len(points.kinds)} points, same kind {same:.3f}, by chance {chance:.3f}")
    if result is not None:
        figures = {"what": WHAT, "split": f"{split}, test part"} | shares | provenance("relation.spaces")
        result.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
