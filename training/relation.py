"""Makes a relation release: projected word and pair vectors of the training sentences as the support of a
KNN.

The encoder is not trained here: the plain base, or (`--encoder`) the adapter of a tagger's release. Related
pairs are the gold relations. Unrelated ones are drug and effect mentions without a relation, drugs and
effects paired with a wrong word of the sentence (CLDR's negatives), and whatever the tagger pairs in
sentences without an adverse event.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from safetensors.torch import save_file

from models import drugs
from models.encoder import Encoder, base_digest, surface_words
from models.index import unit
from models.ner import tags_of
from models.relation import LABELS, Floats, RelationModel, Support
from models.release import TrainingData
from models.store import open_release
from models.text import words
from models.types import ADE, DRUG, Span
from training.evaluate import manifest_scores
from training.evaluations.relation import split_negatives
from training.ner import ADE_CORPUS
from training.publish import OFFERED, offer, print_scores, publish_release
from training.readers import GoldText, read_ade_fold
from training.tagging import word_tags

console = Console()
NEGATIVES = TrainingData(
    name="ADE corpus v2, sentences without an adverse event (a sample)", licence="none stated, citation asked"
)
TAGS = tags_of(LABELS)
CANARY = [
    "Intravenous azithromycin - induced ototoxicity .",
    "Two patients developed agranulocytosis after clozapine; neither had taken aspirin.",
    "No adverse events were seen.",
]


@dataclass(slots=True)
class Pairs:
    """Rows of the pair support as they are collected."""

    vectors: list[Floats] = field(default_factory=list)
    related: list[bool] = field(default_factory=list)
    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, sentence: str, drug: tuple[str, Floats], effect: tuple[str, Floats], related: bool) -> None:
        self.vectors.append(np.concatenate([drug[1], effect[1]]))
        self.related.append(related)
        self.rows.append((sentence, drug[0], effect[0]))


def fit_projection(vectors: Floats, dimension: int) -> Floats:
    """(d, dimension): the directions along which unit word vectors differ most (no centring: cosines must
    survive).
    """
    _, _, directions = torch.linalg.svd(torch.from_numpy(vectors), full_matrices=False)
    return np.ascontiguousarray(directions[:dimension].T.numpy(), dtype=np.float32)


def word_support(
    vectors: Sequence[Floats], tags: Sequence[Sequence[int]], outside: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Every word of a mention and `outside` words of none: half those nearest to mentions, half at random."""
    x, y = np.concatenate(vectors), np.array([t for ts in tags for t in ts], dtype=np.int64)
    inside = np.flatnonzero(y)
    others = np.flatnonzero(y == 0)
    if len(others) > outside:
        near = (x[others] @ x[rng.choice(inside, min(4000, len(inside)), replace=False)].T).max(1)
        order = np.argsort(-near)
        rest = rng.choice(order[outside // 2 :], outside - outside // 2, replace=False)
        others = others[np.concatenate([order[: outside // 2], rest])]
    kept = np.sort(np.concatenate([inside, others]))
    return x[kept], y[kept]


def pair_support(texts: Sequence[GoldText], vectors: Sequence[Floats], rng: random.Random) -> Pairs:
    """Related and unrelated [drug ; effect] pairs of the last words of gold mentions."""
    pairs = Pairs()
    for text, vector in zip(texts, vectors, strict=True):
        spans = words(text.text)
        surface = surface_words(text.text)
        last = {i: _last_word(spans, m.end) for i, m in enumerate(text.mentions)}
        outside = [
            i
            for i, s in enumerate(spans)
            if not any(m.start < s.end and s.start < m.end for m in text.mentions)
        ]
        related = set(text.relations)
        for d, drug in enumerate(text.mentions):
            for e, effect in enumerate(text.mentions):
                if drug.label == DRUG and effect.label == ADE:
                    one, other = (surface[last[d]], vector[last[d]]), (surface[last[e]], vector[last[e]])
                    pairs.add(text.id, one, other, (d, e) in related)
        for d, e in sorted(related):
            for wrong in rng.sample(outside, min(1, len(outside))):
                word = (surface[wrong], vector[wrong])
                if rng.random() < 0.5:  # noqa: PLR2004  a wrong effect as often as a wrong drug
                    pairs.add(text.id, (surface[last[d]], vector[last[d]]), word, False)
                else:
                    pairs.add(text.id, word, (surface[last[e]], vector[last[e]]), False)
    return pairs


def add_false_alarms(pairs: Pairs, model: RelationModel, negatives: Sequence[GoldText]) -> None:
    """What the tagger pairs in sentences without an adverse event is unrelated."""
    found = model.predict([t.text for t in negatives])
    for text, tagged in zip(negatives, found, strict=True):
        spans = words(text.text)
        vector = model.project([surface_words(text.text)])[0]
        for d in tagged.mentions:
            for e in tagged.mentions:
                if d.label == DRUG and e.label == ADE:
                    i, j = _last_word(spans, d.end), _last_word(spans, e.end)
                    one, other = (
                        (text.text[spans[i].start : spans[i].end], vector[i]),
                        (text.text[spans[j].start : spans[j].end], vector[j]),
                    )
                    pairs.add(text.id, one, other, False)


def _last_word(spans: Sequence[Span], end: int) -> int:
    return max(i for i, s in enumerate(spans) if s.end <= end)


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    encoder: Annotated[
        Path | None, typer.Option(help="a tagger's release whose adapter is used; without it the plain base")
    ] = None,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: str = "mini",
    dimension: Annotated[int, typer.Option(help="of the projected word vectors")] = 48,
    outside: Annotated[int, typer.Option(help="words of no mention in the support")] = 12000,
    negatives: Annotated[int, typer.Option(help="sentences without an adverse event for the support")] = 3000,
    k_words: int = 7,
    k_pairs: int = 5,
    seed: int = 42,
    offered: OFFERED = False,
) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    train, _ = read_ade_fold(data / "ade", 1)
    plain, _ = split_negatives(data / "ade")
    folder = Path(tempfile.mkdtemp(prefix="relation-"))
    sources = [ADE_CORPUS, NEGATIVES]
    if encoder is not None:
        tagger = open_release(encoder)
        sources += [s for s in tagger.manifest.training_data if s not in sources]
        base = tagger.manifest.base
        shutil.copyfile(tagger.file("adapter.safetensors"), folder / "adapter.safetensors")
    model = Encoder.load(base, adapter=folder / "adapter.safetensors" if encoder else None)

    surfaces = [surface_words(t.text) for t in train]
    with torch.inference_mode():
        hidden = [unit(h.numpy()) for h in model.word_vectors(surfaces)]
    sample = np.concatenate(hidden)
    projection = fit_projection(
        sample[numbers.choice(len(sample), min(20000, len(sample)), replace=False)], dimension
    )
    projection = projection.astype(np.float16).astype(np.float32)
    vectors = [unit(h @ projection) for h in hidden]
    tags = [[TAGS.index(t) for t in word_tags(text, words(text.text), None)] for text in train]
    word_vectors, word_numbers = word_support(vectors, tags, outside, numbers)
    pairs = pair_support(train, vectors, rng)
    console.print(
        f"support: {len(word_vectors)} words, {len(pairs.related)} pairs, {sum(pairs.related)} related"
    )

    def assembled() -> RelationModel:
        support = Support(
            word_vectors,
            word_numbers,
            np.stack(pairs.vectors),
            np.array(pairs.related),
            [r[0] for r in pairs.rows],
        )
        return RelationModel(model, projection, support, k_words, k_pairs)

    add_false_alarms(pairs, assembled(), plain[:negatives])
    console.print(f"with false alarms of {negatives} sentences: {len(pairs.related)} pairs")
    tensors = {
        "projection": torch.from_numpy(projection).half(),
        "words": torch.from_numpy(word_vectors).half(),
        "tags": torch.from_numpy(word_numbers).to(torch.uint8),
        "pairs": torch.from_numpy(np.stack(pairs.vectors)).half(),
        "related": torch.from_numpy(np.array(pairs.related)).to(torch.uint8),
    }
    save_file(tensors, folder / "support.safetensors")
    table = [f"{s}\t{d}\t{e}\t{int(r)}\n" for (s, d, e), r in zip(pairs.rows, pairs.related, strict=True)]
    (folder / "pairs.tsv").write_text("sentence\tdrug\teffect\trelated\n" + "".join(table), encoding="utf-8")
    shutil.copyfile(drugs.BUNDLED, folder / "drugs.tsv")
    release = publish_release(
        folder,
        task="relation",
        kind="nearest training words and pairs in "
        + ("a tagger's space" if encoder else "the plain encoder's space"),
        base=base,
        base_sha256=base_digest(base),
        configuration={"max_pieces": model.max_pieces, "k_words": k_words, "k_pairs": k_pairs, "seed": seed},
        training_data=sources,
        canary=CANARY,
        scores=lambda m: manifest_scores("relation", m, data, ("ade_fold_1",)),
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)
    if offered:
        offer(release, data)


if __name__ == "__main__":
    typer.run(main)
