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
from models.ner.head import EventHead, Head
from models.text import words
from models.types import CODED_LABELS, LABELS
from training.common.corpora import GoldText, hold_out, read_psytar
from training.common.word_tags import word_tags
from training.evaluation.ner import ADE_TAGS, PSYTAR_TAGS
from training.evaluation.relation import split_negatives, split_texts
from training.ner.settings import Settings
from training.teaching.batches import Kind
from training.teaching.readers import gold_texts, sample

NEGATIVES, TEACHING = "negatives", "teaching"
#: The tag of a piece that is not trained on.
UNKNOWN = -100
#: Weight of the loss of the event head.
EVENT_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one corpus contributes to a run."""

    train: list[GoldText]
    valid: list[GoldText]
    """empty: no epoch is chosen on this corpus"""
    labels: tuple[str, ...]
    lexicon: DrugLexicon | None
    """tags the drugs of a corpus that does not annotate them"""
    unknown: DrugLexicon | None = None
    """drugs that the corpus does not annotate and that are not trained on"""


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
    if settings.negatives:
        texts, _ = split_negatives(data / "ade", settings.split)
        chosen = hold_out(texts, min(1.0, settings.negatives / len(texts)), settings.seed)[1]
        corpora[NEGATIVES] = Corpus(chosen[: settings.limit or None], [], (), None, DrugLexicon.load())
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
    """A sentence in pieces."""

    pieces: list[int]
    tags: list[int]
    """gold tags, or UNKNOWN"""
    flags: list[int]
    """1 for every piece that does not begin a word"""
    event: bool
    """whether the sentence has a gold mention that is coded"""


def examples(
    corpus: Corpus, encoder: Encoder, tags: Sequence[str], *, biox: bool = True, flag: bool = True
) -> list[Example]:
    """One for each training text, cut at the encoder's limit; `biox` and `flag` as in `Settings`."""
    texts = corpus.train
    spans = [words(t.text) for t in texts]
    surfaces = [[t.text[s.start : s.end] for s in ws] for t, ws in zip(texts, spans, strict=True)]
    limit = encoder.max_pieces - 2
    made = []
    for text, ws, split in zip(texts, spans, encoder.split(surfaces), strict=True):
        numbers = [tags.index(tag) for tag in word_tags(text, ws, corpus.lexicon)]
        for drug, _ in corpus.unknown.find(text.text) if corpus.unknown else ():
            for i, word in enumerate(ws):
                if word.start < drug.end and drug.start < word.end:
                    numbers[i] = UNKNOWN
        piece_tags, flags = _pieces(split, numbers, tags, biox=biox, flag=flag)
        event = any(m.label in CODED_LABELS for m in text.mentions)
        made.append(Example(split.pieces[:limit], piece_tags[:limit], flags[:limit], event))
    return made


def _pieces(
    split: WordPieces, gold: Sequence[int], tags: Sequence[str], *, biox: bool, flag: bool
) -> tuple[list[int], list[int]]:
    """Tags and sub-word flags of the pieces from the tags of the words."""
    numbers, flags = [], []
    for tag, count in zip(gold, split.count, strict=True):
        if tag == UNKNOWN:
            inside = UNKNOWN
        else:
            inside = tags.index(CONTINUATION if biox else tags[tag].replace("B-", "I-"))
        numbers += ([tag] + [inside] * (count - 1))[:count]
        flags += ([0] + [int(flag)] * (count - 1))[:count]
    return numbers, flags


def losses_of(
    encoder: Encoder, head: Head, batch: Sequence[Example], event_head: EventHead | None = None
) -> dict[str, Tensor]:
    """`tags`: cross-entropy over every known piece of the batch, X pieces included; with an event head
    `event`: its binary cross-entropy over the sentences, weighted.
    """
    hidden = encoder.forward([e.pieces for e in batch])
    inside = torch.zeros(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    for row, e in enumerate(batch):
        inside[row, 1 : 1 + len(e.pieces)] = True
    flags = torch.tensor([f for e in batch for f in e.flags], dtype=hidden.dtype, device=hidden.device)
    tags = torch.tensor([t for e in batch for t in e.tags], device=hidden.device)
    losses = {
        "tags": nn.functional.cross_entropy(head(hidden[inside], flags).float(), tags, ignore_index=UNKNOWN)
    }
    if event_head is not None:
        events = torch.tensor([float(e.event) for e in batch], device=hidden.device)
        logits = event_head(hidden, inside).float()
        losses["event"] = EVENT_WEIGHT * nn.functional.binary_cross_entropy_with_logits(logits, events)
    return losses
