"""Patients' phrases, which are searched in addition to the terminology's terms: "can't shut my eyes" is in no
terminology, but an annotator coded it in a training post.

A phrase is evidence for its wording alone, while a term is also valid for posts unlike those of the training
corpus. So a phrase of a public corpus, which has few preferred terms, is a candidate only for mentions with
nearly the same wording, and one that was written for a preferred term is behind a term of the same cosine.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from models.normalization.packed_vectors import PackedVectors, Vectors
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.terminology import Term

HEADER = ["phrase", "pt"]
#: Patients' phrases with their preferred terms, and the vectors: of coded mentions, and written phrases.
PHRASES, PHRASE_VECTORS = "phrases.tsv", "phrases.safetensors"
TAUGHT, TAUGHT_VECTORS = "taught.tsv", "taught.safetensors"


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases with the preferred term of each, and their unit vectors (phrases, dimension) by S_isolated."""

    texts: tuple[str, ...]
    pts: tuple[str, ...]
    vectors: Vectors
    min_cosine: float
    """cosine with a mention from which a phrase is a candidate"""
    penalty: float = 0.0
    """what is taken from the cosine where it is compared with those of terms"""

    def within(self, terms: Iterable[Term]) -> Phrases:
        """The phrases with a preferred term of `terms`, compared without case and spelled as there."""
        known = {t.pt.lower(): t.pt for t in terms}
        rows = [i for i, pt in enumerate(self.pts) if pt.lower() in known]
        return Phrases(
            tuple(self.texts[i] for i in rows),
            tuple(known[self.pts[i].lower()] for i in rows),
            self.vectors[torch.tensor(rows, dtype=torch.long)],
            self.min_cosine,
            self.penalty,
        )


def load_phrases(
    release: Release, terms: Sequence[Term], dimension: int, table: str, packed: str
) -> Phrases | None:
    """The phrases of a table of a release, which may lack it; `packed`: the file of their vectors. Raises
    ReleaseError when phrases, vectors and terminology do not fit together.
    """
    if table not in release.manifest.files:
        return None
    texts, pts = read(release.file(table))
    if unknown := set(pts) - {t.pt for t in terms}:
        raise ReleaseError(f"{release.version}: a phrase has the unknown preferred term {min(unknown)!r}")
    vectors = PackedVectors.from_tensors(read_tensors(release.file(packed)))
    if vectors.shape != (len(texts), dimension):
        raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(texts)} phrases")
    configuration = release.manifest.configuration
    if table == TAUGHT:
        return Phrases(texts, pts, vectors, -2.0, configuration["taught_penalty"])
    return Phrases(texts, pts, vectors, configuration["phrases_at_least"])


def read(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Phrases and their preferred terms from a `.tsv` file; ValueError with the line where malformed."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not rows or rows[0] != HEADER:
        raise ValueError(f"{path.name}: the header is not {' '.join(HEADER)}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(HEADER) or not all(row):
            raise ValueError(f"{path.name}, line {number}: a phrase and a preferred term are needed")
    return tuple(row[0] for row in rows[1:]), tuple(row[1] for row in rows[1:])


def write(path: Path, texts: Sequence[str], pts: Sequence[str]) -> None:
    """Writes the file that `read` reads."""
    lines = ["\t".join(HEADER), *(f"{text}\t{pt}" for text, pt in zip(texts, pts, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
