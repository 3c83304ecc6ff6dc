"""Training sentences of CONORM-NER: the corpora, and pieces with their tags and sub-word flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import typer
from torch import Tensor, nn

from models.drugs import DrugLexicon
from models.encoder.model import Encoder, WordPieces
from models.ner.decoding import CONTINUATION
from models.ner.head import Head
from models.text import words
from models.types import LABELS
from training.common.corpora import GoldText, hold_out, read_psytar
from training.common.word_tags import word_tags
from training.evaluation.ner import ADE_TAGS, PSYTAR_TAGS
from training.evaluation.relation import split_texts
from training.ner.settings import Settings
from training.teaching.batches import Kind
from training.teaching.readers import gold_texts, sample

TEACHING = "teaching"


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one corpus contributes to a run."""

    train: list[GoldText]
    valid: list[GoldText]
    """empty: no epoch is chosen on this corpus"""
    labels: tuple[str, ...]
    lexicon: DrugLexicon | None


def read(data: Path, settings: Settings) -> dict[str, Corpus]:
    """Training and validation sentences; no sentence of a test part is in them."""
    corpora = {}
    if settings.corpora != "psytar":
        train, test = split_texts(data / "ade", settings.split)
        tested = {t.text for t in test}
        corpora["clinical"] = _held_out([t for t in train if t.text not in tested], settings, ADE_TAGS, None)
    if settings.corpora != "ade":
        tested = {t.text for part in ("dev", "test") for t in read_psytar(data / f"psytar/ner_{part}.conll")}
        train = [t for t in read_psytar(data / "psytar/ner_train.conll") if t.text not in tested]
        corpora["posts"] = _held_out(train, settings, PSYTAR_TAGS, DrugLexicon.load())
    if settings.teaching:
        corpora[TEACHING] = Corpus(_teaching(settings), [], LABELS, None)
    return corpora


def _teaching(settings: Settings) -> list[GoldText]:
    """A share of the posts and clinical sentences of the teaching corpus that are not held out.

    Raises typer.BadParameter where there are none, as in an installed wheel.
    """
    kinds: tuple[Kind, ...] = ("posts", "clinical")
    texts = [t for kind in kinds for t in gold_texts(kind, "train", candidates=settings.candidates)]
    if not texts:
        raise typer.BadParameter("--teaching: the texts of training/teaching are only in the source tree")
    return sample(texts, settings.teaching, settings.seed)[: settings.limit or None]


def _held_out(
    texts: list[GoldText], settings: Settings, labels: tuple[str, ...], lexicon: DrugLexicon | None
) -> Corpus:
    train, valid = hold_out(texts, 0.1, settings.seed)
    return Corpus(train[: settings.limit] if settings.limit else train, valid, labels, lexicon)


@dataclass(frozen=True, slots=True)
class Example:
    """Pieces of a sentence, their gold tags, and 1 for every piece that does not begin a word."""

    pieces: list[int]
    tags: list[int]
    flags: list[int]


def examples(
    texts: Sequence[GoldText],
    encoder: Encoder,
    tags: Sequence[str],
    lexicon: DrugLexicon | None,
    *,
    biox: bool = True,
    flag: bool = True,
) -> list[Example]:
    """One for each text, cut at the encoder's limit; `biox` and `flag` as in `Settings`."""
    spans = [words(t.text) for t in texts]
    surfaces = [[t.text[s.start : s.end] for s in ws] for t, ws in zip(texts, spans, strict=True)]
    made = []
    for text, ws, split in zip(texts, spans, encoder.split(surfaces), strict=True):
        example = _example(split, word_tags(text, ws, lexicon), tags, biox=biox, flag=flag)
        limit = encoder.max_pieces - 2
        made.append(Example(example.pieces[:limit], example.tags[:limit], example.flags[:limit]))
    return made


def _example(
    split: WordPieces, gold: Sequence[str], tags: Sequence[str], *, biox: bool, flag: bool
) -> Example:
    numbers, flags = [], []
    for tag, count in zip(gold, split.count, strict=True):
        inside = CONTINUATION if biox else tag.replace("B-", "I-")
        numbers += ([tags.index(tag)] + [tags.index(inside)] * (count - 1))[:count]
        flags += ([0] + [int(flag)] * (count - 1))[:count]
    return Example(split.pieces, numbers, flags)


def loss_of(encoder: Encoder, head: Head, batch: Sequence[Example]) -> Tensor:
    """Cross-entropy over every piece of the batch, X pieces included."""
    hidden = encoder.forward([e.pieces for e in batch])
    inside = torch.cat([hidden[row, 1 : 1 + len(e.pieces)] for row, e in enumerate(batch)])
    flags = torch.tensor([f for e in batch for f in e.flags], dtype=inside.dtype, device=inside.device)
    tags = torch.tensor([t for e in batch for t in e.tags], device=inside.device)
    return nn.functional.cross_entropy(head(inside, flags).float(), tags)
