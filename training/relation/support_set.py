"""The support sets of a release: projected, balanced and condensed; each step is printed with its scores.

Related pairs are the gold relations. Unrelated pairs are drugs and effects without a relation, and the pairs
that the tagger finds in sentences without an adverse event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from models.encoder.faiss_index import unit
from models.encoder.split.layer_split import EncodedSentence
from models.relation.neighbours import (
    HEAD,
    Floats,
    Numbers,
    SupportSet,
    TokenHead,
    decode_tags,
    votes,
)
from models.text import word_texts
from training.common.tagging.transitions import pairs_of
from training.common.tagging.transitions import transitions_of as tag_transitions
from training.relation.data import TAGS, UNKNOWN, Example, ValidationPairs, offsets
from training.relation.knn_scores import PAIR_SCORES, Queries, nearest, pair_scores, tag_scores
from training.relation.settings import Settings

console = Console()
MAX_BYTES = 8_000_000
#: Dimensions of a stored word, and of each word of a stored pair.
DIMENSION, PAIR_DIMENSION = 64, 128
#: Support words outside of mentions before condensing, and all after it.
OUTSIDE, WORDS = 12_000, 8_000
#: Of pairs at least the paper's five, which a relation names as its reasons and whose share is its score.
K_WORDS, K_PAIRS = (3, 5, 7, 9, 11, 15), (5, 7, 9, 11)
#: The paper's values, used where no other is better on validation.
PAPER_WORDS, PAPER_PAIRS = 7, 5
#: Weight of the tag transitions in relation to the votes.
TRANSITIONS = 0.3


@dataclass(frozen=True, slots=True)
class Part:
    """Sentences with their encoded words."""

    examples: list[Example]
    read: list[EncodedSentence]

    def words(self) -> Floats:
        """(words, d) unit vectors, sentence after sentence."""
        return unit(self.hidden())

    def hidden(self) -> Floats:
        """(words, d) as the encoder gives them, sentence after sentence."""
        return np.concatenate([r.vectors[: len(e.tags)].numpy() for e, r in self.each()])

    def tags(self) -> Numbers:
        return np.concatenate([e.tags for e in self.examples])

    def each(self) -> list[tuple[Example, EncodedSentence]]:
        return list(zip(self.examples, self.read, strict=True))


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

    def tensors(self) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(np.stack(self.vectors)), torch.tensor(self.related)


def fit_projection(vectors: Floats, dimension: int) -> Floats:
    """(d, dimension): the directions along which unit vectors differ most (no centring: cosines must
    survive), rounded to 16 bits.
    """
    gram = torch.from_numpy(vectors.T @ vectors).double()
    directions = torch.linalg.eigh(gram).eigenvectors.flip(1)[:, :dimension]
    return np.ascontiguousarray(directions.half().float().numpy())


def balanced(x: Floats, y: Numbers, outside: int, rng: np.random.Generator) -> Numbers:
    """Rows of every word inside of mentions and of `outside` words outside of them: half of these are the
    words nearest to mentions, half are drawn at random.
    """
    inside, others = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    if len(others) <= outside or not len(inside):
        return np.sort(np.concatenate([inside, others[:outside]]))
    sample = rng.choice(inside, min(4000, len(inside)), replace=False)
    near, _ = nearest(torch.from_numpy(x[others]), torch.from_numpy(x[sample]), 1)
    order = np.argsort(-near[:, 0].numpy())
    rest = rng.choice(order[outside // 2 :], outside - outside // 2, replace=False)
    return np.sort(np.concatenate([inside, others[order[: outside // 2]], others[rest]]))


def condensed(x: Floats, y: Numbers, size: int, k: int, rng: np.random.Generator) -> Numbers:
    """Rows of at most `size` words, every tag in its proportion: words that their k neighbours outvote are
    removed (Wilson's editing), the others are sampled at random.

    Words of a tag form dense clusters, so a random sample votes like the whole. Hart's condensing rule, which
    collects outvoted words, keeps the noise between clusters and costs two points of F1 here.
    """
    if len(y) <= size:
        return np.arange(len(y))
    _, rows = nearest(torch.from_numpy(x), torch.from_numpy(x), k + 1)
    # The nearest neighbour of a word is the word itself.
    shares = votes(y[rows[:, 1:].numpy()], len(TAGS))
    agreed = np.flatnonzero(shares.argmax(1) == y)
    kept = []
    for tag in np.unique(y[agreed]):
        own = agreed[y[agreed] == tag]
        kept.append(rng.permutation(own)[: max(1, size * len(own) // len(agreed))])
    return np.sort(np.concatenate(kept))


@dataclass(frozen=True, slots=True)
class WordRows:
    """The support set of the entity space."""

    projection: Floats
    """(d, dimension)"""
    vectors: Floats
    """(words, dimension)"""
    tags: Numbers
    k: int
    transitions: Floats | None
    """None: the tag with most votes is chosen for each word"""
    head: TokenHead | None = None
    share: float = 1.0
    """of the votes beside the head, see `Voting.words_share`"""

    def votes_on(self, part: Part) -> Floats:
        """(words, tags): the shares of the votes on the words of sentences."""
        asked = torch.from_numpy(unit(part.words() @ self.projection))
        _, rows = nearest(asked, torch.from_numpy(self.vectors), self.k)
        return votes(self.tags[rows.numpy()], len(TAGS))

    def tags_of(self, part: Part) -> Numbers:
        """(words,): the tags that a release gives them, sentence after sentence."""
        shares = self.votes_on(part)
        if self.head is not None and self.share < 1:
            other = self.head.probabilities(part.hidden())
            shares = (self.share * shares + (1 - self.share) * other).astype(np.float32)
        return decode_tags(shares, [len(e.tags) for e in part.examples], self.transitions)


def transitions_of(data: Sequence[Example]) -> Floats:
    """The transitions between the tags of sentences, where both are known."""
    pairs = pairs_of([e.tags.tolist() for e in data], len(TAGS))
    return tag_transitions(pairs[:, (pairs != UNKNOWN).all(0)], TAGS, TRANSITIONS)


class _Steps:
    """A table with the scores of the word support after each step that makes it."""

    def __init__(self, hidden: Floats, y: Numbers, asked: Floats, data: Queries) -> None:
        self._support, self._asked, self._data = (hidden, y), asked, data
        self.table = Table(
            "words", "rows", "MB", "k", "strict micro F1", "macro F1", "false effects per 1000"
        )

    def add(
        self, name: str, projection: Floats, rows: Numbers, ks: Sequence[int], transitions: Floats | None
    ) -> dict[int, float]:
        """For each k the strict micro F1 with these rows of the support, projected to 16 bits."""
        hidden, y = self._support
        x = unit(hidden[rows] @ projection).astype(np.float16).astype(np.float32)
        support, queries = torch.from_numpy(x), torch.from_numpy(unit(self._asked @ projection))
        found = tag_scores(support, torch.from_numpy(y[rows]), queries, self._data, ks, transitions)
        for k, scores in found.items():
            size = f"{x.size * 2 / 1e6:.1f}"
            self.table.add_row(name, str(len(rows)), size, str(k), *(f"{v:.4f}" for v in scores.values()))
        return {k: scores["strict micro F1"] for k, scores in found.items()}


def word_support(train: Part, queries: Part, data: Queries, dense: Floats, settings: Settings) -> WordRows:
    """The support set from the words of `train`, projected, balanced and condensed, with the k that is best
    on `data`, whose words are `queries`; prints the scores after each step.
    """
    rng = np.random.default_rng(settings.seed)
    known = train.tags() != UNKNOWN
    y, hidden = train.tags()[known], train.words()[known]
    sequences = settings.decode == "sequence"
    transitions = transitions_of([e for e in train.examples if e.gold.mentions]) if sequences else None
    steps = _Steps(hidden, y, queries.words(), data)
    rows = np.arange(len(y))
    steps.add("all, as trained", dense, rows, [PAPER_WORDS], transitions)
    projection = dense
    if dense.shape[1] > DIMENSION:
        projection = dense @ fit_projection(unit(hidden @ dense), DIMENSION)
    projection = projection.astype(np.float16).astype(np.float32)
    x = unit(hidden @ projection)
    steps.add("projected", projection, rows, [PAPER_WORDS], transitions)
    rows = balanced(x, y, OUTSIDE, rng)
    steps.add("balanced", projection, rows, [PAPER_WORDS], transitions)
    rows = rows[condensed(x[rows], y[rows], WORDS, PAPER_WORDS, rng)]
    steps.add("condensed, without transitions", projection, rows, [PAPER_WORDS], None)
    by_k = steps.add("condensed", projection, rows, K_WORDS, transitions)
    console.print(steps.table)
    return WordRows(projection, x[rows], y[rows], best_k(by_k, PAPER_WORDS), transitions)


def best_k(scores: dict[int, float], paper: int) -> int:
    """The k with the best score; the paper's among equals."""
    best = max(scores.values())
    return paper if scores.get(paper) == best else next(k for k, v in scores.items() if v == best)


def pair_rows(data: Sequence[Example], vectors: Sequence[Floats]) -> Pairs:
    """The related and the unrelated pairs of sentences; `vectors`: (words, d) of each sentence."""
    pairs = Pairs()
    for example, vector in zip(data, vectors, strict=True):
        texts = word_texts(example.gold.text)
        for rows, related in ((example.pairs, True), (example.unrelated, False)):
            for d, e in rows.tolist():
                pairs.add(example.gold.id, (texts[d], vector[d]), (texts[e], vector[e]), related)
    return pairs


def pair_projection(data: Sequence[Example], hidden: Sequence[Floats], dimension: int) -> Floats:
    """(d, dimension), fitted on the words of pairs and as many other words."""
    first = offsets(data).tolist()
    x = unit(np.concatenate(hidden))
    used = np.unique(np.concatenate([e.pairs.ravel() + f for e, f in zip(data, first, strict=True)]))
    rest = np.setdiff1d(np.arange(len(x)), used)
    rest = np.random.default_rng(0).permutation(rest)[: len(used)]
    return fit_projection(x[np.concatenate([used, rest])], min(dimension, x.shape[1]))


def support_of(words: WordRows, pairs: Pairs) -> SupportSet:
    related, ids = np.array(pairs.related), [row[0] for row in pairs.rows]
    return SupportSet(
        words.vectors, words.tags, np.stack(pairs.vectors), related, ids, words.transitions, words.head
    )


def tensors_of(support: SupportSet, projection: Floats, pairs_projection: Floats) -> dict[str, Tensor]:
    """The tensors of a release's support file; raises ValueError where they exceed MAX_BYTES."""
    tensors = {
        "projection": torch.from_numpy(projection).half(),
        "pair_projection": torch.from_numpy(pairs_projection).half(),
        "words": torch.from_numpy(support.words).half(),
        "tags": torch.from_numpy(support.tags).to(torch.uint8),
        "pairs": torch.from_numpy(support.pairs).half(),
        "related": torch.from_numpy(support.related).to(torch.uint8),
    }
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    if size > MAX_BYTES:
        raise ValueError(f"the support is {size / 1e6:.1f} MB, more than {MAX_BYTES / 1e6:.0f}")
    if support.head is not None:
        both = (support.head.weight, support.head.bias)
        tensors |= {name: torch.from_numpy(t).half() for name, t in zip(HEAD, both, strict=True)}
    if support.transitions is not None:
        tensors["transitions"] = torch.from_numpy(support.transitions)
    return tensors


def choose_pairs(name: str, pairs: Pairs, valid: Pairs, data: ValidationPairs) -> int:
    """The k with the best corpus F1 on the validation pairs `valid`, the paper's where there are none; prints
    the scores of every k.
    """
    if not valid.rows:
        return PAPER_PAIRS
    support, related = pairs.tensors()
    queries, gold = valid.tensors()
    found = pair_scores(support, related, queries, gold, data, K_PAIRS)
    table = Table("pairs", "rows", "MB", "k", *PAIR_SCORES)
    for k, scores in found.items():
        size = f"{support.numel() * 2 / 1e6:.1f}"
        table.add_row(name, str(len(support)), size, str(k), *(f"{v:.4f}" for v in scores.values()))
    console.print(table)
    return best_k({k: scores["corpus F1"] for k, scores in found.items()}, PAPER_PAIRS)
