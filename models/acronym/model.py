"""What an acronym stands for: its definition in the text, else the dictionary's long form that fits its
sentence best.

Definitions: Schwartz and Hearst (2003). Dictionary: by a trained m-network and by prototypes of the long
forms (m_network.py, prototypes.py), or, in a release that nothing was trained for, by the cosine of
the sentence and the same with each long form in the acronym's place. Unknown short forms stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from models.acronym import prototypes
from models.acronym.m_network import Head, MNetwork, Question, Shape
from models.acronym.prototypes import Mixture, Prototypes
from models.encoder.model import Encoder, encoder_of
from models.releases.manifest import Release
from models.releases.tensors import read_tensors
from models.tables import read_tsv
from models.text import sentences, words
from models.types import Expansion, Span

#: Clinical short forms with their long forms, written for this project.
CLINICAL = Path(__file__).with_name("clinical.tsv")
HEAD = "head.safetensors"
#: Words kept to each side of the acronym (m-networks, section 4).
CONTEXT = 60
# "5-FU" and "IL-2" are one short form; "MTX-induced" and "anti-TNF" hold one.
_SHORT_FORM = re.compile(
    r"(?<!\w)(?:[A-Z0-9][^\W_]{0,9}|[a-z]{1,2}[A-Z][^\W_]{0,7})(?:-[A-Z0-9]{1,4})*(?!\w)"
)
_BRACKET = re.compile(r"\(([^()]{2,120})\)")
_MAX_SHORT_FORM = 10
#: In a sentence of capitals every short word looks like an acronym.
_SHOUTED = 0.7


class _Place(NamedTuple):
    """An acronym that waits for the dictionary: its report, where it stands, its sentence."""

    report: int
    span: Span
    sentence: Span
    short_form: str


class Scorer(Protocol):
    """Says how well each long form of a question fits; higher is better."""

    def scores(self, questions: Sequence[Question]) -> list[list[float]]: ...


class ZeroShot:
    """Cosine of the sentence and the same with each long form, by an encoder as it is."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        texts = [q.replaced(form).text for q in questions for form in (q.short_form, *q.long_forms)]
        vectors = self.encoder.embed(texts)
        out, at = [], 0
        for q in questions:
            n = len(q.long_forms)
            out.append((vectors[at + 1 : at + 1 + n] @ vectors[at]).tolist())
            at += 1 + n
        return out


class Trained:
    """Share of each long form by the m-network, mixed with the prototypes of those that have one. A single
    long form has no rival and is not weighed: 1.
    """

    def __init__(self, network: MNetwork, uses: Prototypes | None) -> None:
        self.network = network
        self.uses = uses

    @classmethod
    def load(cls, release: Release, encoder: Encoder) -> Trained:
        """Raises ValueError or RuntimeError where files and configuration do not fit."""
        configuration = release.manifest.configuration
        head = Head(encoder.dimension, Shape(**configuration["network"]))
        head.load_state_dict(read_tensors(release.file(HEAD)))
        uses = None
        if prototypes.TABLE in release.manifest.files:
            uses = Prototypes.load(
                release.file(prototypes.TABLE),
                release.file(prototypes.VECTORS),
                Mixture(**configuration["mixture"]),
            )
        return cls(MNetwork(encoder, head), uses)

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        found = [[1.0] * len(q.long_forms) for q in questions]
        rivals = [i for i, q in enumerate(questions) if len(q.long_forms) > 1]
        # Where there are prototypes and the network has no say beside them, only anchors are encoded.
        by_uses = [i for i in rivals if self._uses_suffice(questions[i])]
        for i, near in zip(by_uses, self.network.near([questions[i] for i in by_uses]), strict=True):
            found[i] = self._shares(questions[i], [0.0] * len(questions[i].long_forms), near)
        rest = [i for i in rivals if not self._uses_suffice(questions[i])]
        fits, vectors = self.network.answers([questions[i] for i in rest])
        for i, fit, near in zip(rest, fits, vectors, strict=True):
            found[i] = self._shares(questions[i], fit, near)
        return found

    def _uses_suffice(self, question: Question) -> bool:
        if self.uses is None or self.uses.mixture.network:
            return False
        return self.uses.knows(question.short_form, question.long_forms) > 0

    def _shares(self, question: Question, fit: Sequence[float], near: Tensor) -> list[float]:
        scores = fit
        if self.uses is not None:
            scores = self.uses.mixed(question.short_form, question.long_forms, fit, near)
        shares: list[float] = torch.tensor(scores).softmax(0).tolist()
        return shares


class AcronymModel:
    """Expands by definition first and by dictionary second."""

    task = "acronym"

    def __init__(
        self, encoder: Encoder, dictionary: Mapping[str, Sequence[str]], scorer: Scorer | None = None
    ) -> None:
        self.scorer = scorer or ZeroShot(encoder)
        self.dictionary = {short: tuple(long) for short, long in dictionary.items()}

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> AcronymModel:
        encoder = encoder_of(release, device=device, dtype=dtype)
        scorer = Trained.load(release, encoder) if HEAD in release.manifest.files else ZeroShot(encoder)
        return cls(encoder, load_dictionary(release.file("dictionary.tsv")), scorer)

    def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
        """Expansions of each text in text order."""
        found: list[list[Expansion]] = [[] for _ in batch]
        open_places: list[_Place] = []
        for i, text in enumerate(batch):
            defined = definitions(text)
            for sentence in sentences(text):
                for place in _places(text, sentence, i):
                    if place.short_form in defined:
                        long_form = defined[place.short_form]
                        found[i].append(
                            Expansion(*_range(place.span), place.short_form, long_form, 1.0, "text")
                        )
                    elif place.short_form in self.dictionary and not _shouted(text, sentence):
                        open_places.append(place)
        for place, (long_form, score) in zip(open_places, self._nearest(batch, open_places), strict=True):
            found[place.report].append(
                Expansion(*_range(place.span), place.short_form, long_form, score, "dictionary")
            )
        return [sorted(expansions, key=lambda e: e.start) for expansions in found]

    def choose(self, text: str, span: Span, long_forms: Sequence[str]) -> list[float]:
        """How well each long form fits at `span`; higher is better."""
        return self.choose_many([(text, span, long_forms)])[0]

    def choose_many(self, rows: Sequence[tuple[str, Span, Sequence[str]]]) -> list[list[float]]:
        """`choose` for many rows in one batch."""
        return self.scorer.scores([question(t, span, Span(0, len(t)), long) for t, span, long in rows])

    def _nearest(self, batch: Sequence[str], places: Sequence[_Place]) -> list[tuple[str, float]]:
        questions = [
            question(batch[p.report], p.span, p.sentence, self.dictionary[p.short_form]) for p in places
        ]
        nearest = []
        for q, scores in zip(questions, self.scorer.scores(questions), strict=True):
            best = max(range(len(scores)), key=scores.__getitem__)
            nearest.append((q.long_forms[best], round(scores[best], 4)))
        return nearest


def question(text: str, span: Span, sentence: Span, long_forms: Sequence[str]) -> Question:
    """The acronym at `span` in as much of its sentence as counts."""
    left, right = _context(text, span, sentence)
    return Question(left, text[span.start : span.end], right, tuple(long_forms))


def load_dictionary(path: Path) -> dict[str, list[str]]:
    """Tab-separated short_form, long_form with a header; several rows a short form."""
    dictionary: dict[str, list[str]] = {}
    for row in read_tsv(path, ("short_form", "long_form")):
        dictionary.setdefault(row[0], []).append(row[1])
    return dictionary


def definitions(text: str) -> dict[str, str]:
    """Short forms that the text itself defines, as `long form (SF)` or `SF (long form)`; the first definition
    counts.
    """
    found: dict[str, str] = {}
    for bracket in _BRACKET.finditer(text):
        inside, before = bracket.group(1).strip(), text[: bracket.start()].rstrip()
        inside = re.split(r"[;,]", inside)[0].strip()
        if _is_short_form(inside):
            long_form = best_long_form(inside, _last_words(before, min(len(inside) + 5, 2 * len(inside))))
            short_form = inside
        else:
            short_form = before.split()[-1] if before else ""
            long_form = best_long_form(short_form, inside) if _is_short_form(short_form) else None
        if long_form is not None:
            found.setdefault(short_form, long_form)
    return found


def best_long_form(short_form: str, text: str) -> str | None:
    """The end of `text` whose letters spell the short form from right to left, its first letter at the start
    of a word.

    Schwartz and Hearst (2003), figure 1. None where the letters are not there.
    """
    at = len(text)
    for i in range(len(short_form) - 1, -1, -1):
        letter = short_form[i].lower()
        if not letter.isalnum():
            continue
        at -= 1
        while at >= 0 and (text[at].lower() != letter or (i == 0 and at > 0 and text[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return None
    start = text.rfind(" ", 0, at + 1) + 1
    long_form = text[start:].strip()
    too_long = len(long_form.split()) > min(len(short_form) + 5, 2 * len(short_form))
    if len(long_form) <= len(short_form) or too_long or short_form in long_form.split():
        return None
    return long_form


def _is_short_form(text: str) -> bool:
    one_or_two_words = 0 < len(text.split()) <= 2  # noqa: PLR2004
    return (
        one_or_two_words
        and 2 <= len(text) <= _MAX_SHORT_FORM  # noqa: PLR2004
        and text[0].isalnum()
        and any(c.isupper() for c in text)
    )


def _last_words(text: str, n: int) -> str:
    return " ".join(text.split()[-n:])


def _places(text: str, sentence: Span, report: int) -> list[_Place]:
    return [
        _Place(report, Span(*m.span()), sentence, m.group())
        for m in _SHORT_FORM.finditer(text, sentence.start, sentence.end)
        if 2 <= len(m.group()) <= _MAX_SHORT_FORM and any(c.isupper() for c in m.group())  # noqa: PLR2004
    ]


def _shouted(text: str, sentence: Span) -> bool:
    letters = [c for c in text[sentence.start : sentence.end] if c.isalpha()]
    return sum(c.isupper() for c in letters) > _SHOUTED * len(letters)


def _context(text: str, span: Span, sentence: Span) -> tuple[str, str]:
    """The sentence before and after the acronym, CONTEXT words of each at most."""
    left, right = text[sentence.start : span.start], text[span.end : sentence.end]
    left_words, right_words = words(left), words(right)
    if len(left_words) > CONTEXT:
        left = left[left_words[-CONTEXT].start :]
    if len(right_words) > CONTEXT:
        right = right[: right_words[CONTEXT - 1].end]
    return left, right


def _range(span: Span) -> tuple[int, int]:
    return span.start, span.end
