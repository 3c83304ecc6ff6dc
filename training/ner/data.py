"""Training sentences of CONORM-NER: the corpora, and pieces with their tags and sub-word flags."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import typer

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.encoder.word_pieces import WordPieces
from models.ner.decoding import CONTINUATION
from models.ner.status_head import Pieces, piece_range
from models.text import PlacedWords, words
from models.types import CODED_LABELS, LABELS, Span, Stated
from training.common.corpora import CorpusError, GoldMention, GoldText, hold_out, read_psytar
from training.common.marked_reviews import DRUGLIB, VAERS
from training.common.tagging.word_tags import word_tags
from training.evaluation.ner import ADE_TAGS, PSYTAR_TAGS
from training.evaluation.relation import split_negatives, split_texts
from training.ner.settings import Settings
from training.ner.statuses import StatusTarget, corpus_targets, drugs_of, marked_targets
from training.teaching.batches import ID, MARKED
from training.teaching.markup import MarkedText
from training.teaching.readers import gold_text, marked_texts, own_event, sample
from training.teaching.reviewed import read_reviewed, reviewed_texts
from training.teaching.reviews import recipe_reviews
from training.teaching.stated import stated_texts, with_stated

NEGATIVES, TEACHING, REVIEWED = "negatives", "teaching", "reviewed"
MARKED_REVIEWS, MARKED_REPORTS = "reviews", "reports"
#: PsyTAR annotates the symptoms of a withdrawal, but not the word, which names an event of its own.
WITHDRAWAL_WORD = re.compile(r"\bwithdraw[ae]?ls?\b", re.IGNORECASE)
#: Draws the same validation parts in every run, so that one which goes on with another's weights does not
#: validate with sentences that those have learned.
VALIDATION_SEED = 42
#: Share of PsyTAR's sentences that are joined to texts of two where a tagger reads several together.
JOINED = 0.2
#: The tag of a piece that is not trained on.
UNKNOWN = -100


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
    marked: Mapping[str, MarkedText] = field(default_factory=dict)
    """of the teaching corpus: id to the text with all of its marks"""
    unsettled: re.Pattern[str] | None = None
    """other words that the corpus does not annotate, which are not trained on either"""


def read(data: Path, settings: Settings, reviews: Path | None = None) -> dict[str, Corpus]:
    """Sentences to train on and validate, none of a test part, with reviews. Raises CorpusError."""
    corpora, held_out = {}, set()
    if settings.corpora != "psytar":
        train, test = split_texts(data / "ade", settings.split)
        tested = {t.text for t in test}
        held_out |= tested
        corpora["clinical"] = _held_out([t for t in train if t.text not in tested], settings, ADE_TAGS, None)
    if settings.corpora != "ade":
        tested = {t.text for part in ("dev", "test") for t in read_psytar(data / f"psytar/ner_{part}.conll")}
        held_out |= tested
        train = [t for t in read_psytar(data / "psytar/ner_train.conll") if t.text not in tested]
        posts = _held_out(train, settings, PSYTAR_TAGS, DrugLexicon.load())
        train = joined(posts.train, JOINED if settings.window else 0.0, settings.seed)
        corpora["posts"] = replace(posts, train=train, unsettled=WITHDRAWAL_WORD)
    if settings.negatives:
        texts, _ = split_negatives(data / "ade", settings.split)
        if not texts:
            raise CorpusError(f"{data / 'ade/negatives.txt'} has no sentence to train on")
        chosen = hold_out(texts, min(1.0, settings.negatives / len(texts)), settings.seed)[1]
        corpora[NEGATIVES] = Corpus(chosen[: settings.limit or None], [], (), None, DrugLexicon.load())
    if settings.teaching or settings.whole:
        corpora[TEACHING] = _teaching(settings)
    if settings.reviews:
        corpora[MARKED_REVIEWS] = _marked(*recipe_reviews(data, DRUGLIB), settings, DrugLexicon.load())
    if settings.reports:
        reports = _marked(*recipe_reviews(data, VAERS), settings, DrugLexicon.load())
        corpora[MARKED_REPORTS] = replace(reports, train=reports.train * settings.reports)
    if reviews is not None:
        marked = read_reviewed(reviews)
        texts = reviewed_texts(marked, candidates=settings.heads, without=held_out)
        corpora[REVIEWED] = Corpus(texts, [], LABELS, None, DrugLexicon.load(), marked)
    return corpora


def _teaching(settings: Settings) -> Corpus:
    """A share of the texts of the teaching corpus that are not held out, all of the batches that are read
    whole; posts alone without the ADE corpus.

    Raises typer.BadParameter where there are none, as in an installed wheel.
    """
    kinds = MARKED if settings.corpora != "psytar" else ("posts",)
    marked = {id_: text for kind in kinds for id_, text in marked_texts(kind, "train")}
    if not marked:
        raise typer.BadParameter("--teaching: the texts of training/teaching are only in the source tree")
    batches = {ID + name for name in settings.whole.split(",")}
    whole = [id_ for id_ in marked if id_.rpartition("-")[0] in batches]
    drawn = sample([id_ for id_ in marked if id_ not in whole], settings.teaching, settings.seed)
    chosen = {id_: marked[id_] for id_ in (*drawn, *whole)}
    return _marked(chosen, stated_texts(), settings, None)


def _marked(
    marked: Mapping[str, MarkedText],
    stated: Mapping[str, Stated],
    settings: Settings,
    lexicon: DrugLexicon | None,
) -> Corpus:
    """Marked texts, a share of those of which something is stated with that before them."""
    draw, made = random.Random(settings.seed), dict[str, MarkedText]()
    for id_, text in marked.items():
        is_stated = id_ in stated and draw.random() < settings.stated
        made[id_] = with_stated(text, stated[id_]) if is_stated else text
    texts = [gold_text(id_, text, settings.heads, LABELS) for id_, text in made.items()]
    return Corpus(texts[: settings.limit or None], [], LABELS, lexicon, marked=made)


def _held_out(
    texts: list[GoldText], settings: Settings, labels: tuple[str, ...], lexicon: DrugLexicon | None
) -> Corpus:
    train, valid = hold_out(texts, 0.1, VALIDATION_SEED)
    train = train[: settings.limit] if settings.limit else train
    return Corpus(train, valid, labels, lexicon)


def joined(texts: Sequence[GoldText], share: float, seed: int) -> list[GoldText]:
    """The texts, a share of them joined with the next one, so that texts of several sentences occur."""
    made: list[GoldText] = []
    rng, previous = random.Random(seed), None
    for text in texts:
        if previous is not None:
            made.append(_join(previous, text))
            previous = None
        elif rng.random() < share:
            previous = text
        else:
            made.append(text)
    return [*made, previous] if previous else made


def _join(one: GoldText, other: GoldText) -> GoldText:
    shift, n = len(one.text) + 1, len(one.mentions)
    moved = tuple(GoldMention(m.start + shift, m.end + shift, m.label) for m in other.mentions)
    relations = (*one.relations, *((d + n, e + n) for d, e in other.relations))
    return GoldText(one.id, f"{one.text} {other.text}", one.mentions + moved, relations)


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence in pieces."""

    pieces: list[int]
    tags: list[int]
    """gold tags, or UNKNOWN"""
    flags: list[int]
    """1 for every piece that does not begin a word"""
    event: bool | None
    """whether the text reports an adverse event of its writer or patient; None: not known"""
    effects: tuple[Effect, ...] = ()
    """what the status head learns from"""
    drugs: tuple[Pieces, ...] = ()
    """the drugs of the text, those that effects are due to first"""


@dataclass(frozen=True, slots=True)
class Effect:
    """A target of the status head in pieces."""

    pieces: Pieces
    target: StatusTarget


def examples(corpus: Corpus, encoder: Encoder, tags: Sequence[str]) -> list[Example]:
    """An example for each training text, cut at the encoder's limit."""
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
        for i in _unsettled(corpus, text, ws):
            numbers[i] = UNKNOWN
        piece_tags, flags = _pieces(split, numbers, tags)
        effects, drugs = _effects(corpus, text, split, limit)
        made.append(
            Example(
                split.pieces[:limit], piece_tags[:limit], flags[:limit], _event(corpus, text), effects, drugs
            )
        )
    return made


def _unsettled(corpus: Corpus, text: GoldText, spans: Sequence[Span]) -> list[int]:
    """Which of the spans hold a word that the corpus does not annotate, and no mention."""
    if corpus.unsettled is None:
        return []
    taken = text.mentions
    found = [m.span() for m in corpus.unsettled.finditer(text.text)]
    free = [(a, b) for a, b in found if not any(a < m.end and m.start < b for m in taken)]
    return [i for i, s in enumerate(spans) if any(s.start < b and a < s.end for a, b in free)]


def _event(corpus: Corpus, text: GoldText) -> bool | None:
    if marked := corpus.marked.get(text.id):
        return own_event(marked)
    if any(m.label in CODED_LABELS for m in text.mentions):
        return True
    return None if _unsettled(corpus, text, [Span(0, len(text.text))]) else False


def _effects(
    corpus: Corpus, text: GoldText, split: WordPieces, limit: int
) -> tuple[tuple[Effect, ...], tuple[Pieces, ...]]:
    """The effects and the drugs of a text that are not cut off."""
    marked = corpus.marked.get(text.id)
    targets = marked_targets(marked) if marked else corpus_targets(text)
    unsettled = set(_unsettled(corpus, text, [Span(t.start, t.end) for t in targets]))
    targets = [t for i, t in enumerate(targets) if i not in unsettled]
    lexicon = corpus.lexicon or corpus.unknown
    spans = drugs_of(text, [s for s, _ in lexicon.find(text.text)] if lexicon else [])
    ws = PlacedWords.of(text.text)
    drugs = [_within(piece_range(split, ws, s), limit) for s in spans]
    placed = [(_within(piece_range(split, ws, Span(t.start, t.end)), limit), t) for t in targets]
    if any(d is None for d in drugs):
        placed = [(p, t._replace(drugs=None)) for p, t in placed]
    return tuple(Effect(p, t) for p, t in placed if p), tuple(d for d in drugs if d)


def _within(pieces: Pieces | None, limit: int) -> Pieces | None:
    return pieces if pieces and pieces.last <= limit else None


def _pieces(split: WordPieces, gold: Sequence[int], tags: Sequence[str]) -> tuple[list[int], list[int]]:
    """Tags and sub-word flags of the pieces from the tags of the words: later pieces of a word are X."""
    numbers, flags = [], []
    for tag, count in zip(gold, split.count, strict=True):
        inside = UNKNOWN if tag == UNKNOWN else tags.index(CONTINUATION)
        numbers += ([tag] + [inside] * (count - 1))[:count]
        flags += ([0] + [1] * (count - 1))[:count]
    return numbers, flags
