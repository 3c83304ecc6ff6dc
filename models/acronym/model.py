"""What an acronym stands for: its definition in the text, else the long form of a dictionary that fits its
sentence best. Unknown short forms are not expanded.

Definitions: Schwartz and Hearst (2003), see definitions.py. Dictionary: a trained release scores the long
forms by a head and by prototypes; the head uses surface features and the encoder, and the m-network of
Seneviratne et al. (2022) is an optional part of it (m_network.py, surface_features.py, prototypes.py). A
zero-shot release uses cosines of sentence vectors (scorers.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from models.acronym.definitions import definitions, short_forms
from models.acronym.questions import question
from models.acronym.scorers import HEAD, Scorer, TrainedScorer, ZeroShotScorer
from models.encoder.model import Encoder, encoder_of
from models.releases.manifest import Release
from models.tables import read_tsv
from models.text import sentences
from models.types import Expansion, Span

#: Clinical short forms with their long forms, written for this project.
CLINICAL = Path(__file__).with_name("clinical.tsv")
#: Share of capital letters from which on a sentence is in capitals: every short word then looks like an
#: acronym.
_CAPITALS = 0.7


class _Occurrence(NamedTuple):
    """A short form in a text of the batch."""

    report: int
    """position of its text in the batch"""
    span: Span
    sentence: Span
    short_form: str

    def expansion(self, long_form: str, score: float, source: Literal["text", "dictionary"]) -> Expansion:
        return Expansion(self.span.start, self.span.end, self.short_form, long_form, score, source)


class AcronymModel:
    """Expands acronyms by definitions in the text first and by the dictionary second."""

    task = "acronym"

    def __init__(
        self, encoder: Encoder, dictionary: Mapping[str, Sequence[str]], scorer: Scorer | None = None
    ) -> None:
        """`dictionary`: short form to long forms. Without a `scorer` the encoder scores zero-shot."""
        self.encoder = encoder
        self.scorer = scorer or ZeroShotScorer(encoder)
        self.dictionary = {short: tuple(long) for short, long in dictionary.items()}

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> AcronymModel:
        """Raises ReleaseError, ValueError or RuntimeError where files and configuration do not fit."""
        encoder = encoder_of(release, device=device, dtype=dtype)
        is_trained = HEAD in release.manifest.files
        scorer = TrainedScorer.load(release, encoder) if is_trained else ZeroShotScorer(encoder)
        return cls(encoder, load_dictionary(release.file("dictionary.tsv")), scorer)

    def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
        """Expansions of each text in text order."""
        expansions: list[list[Expansion]] = [[] for _ in batch]
        undefined: list[_Occurrence] = []
        for report, text in enumerate(batch):
            defined = definitions(text)
            for occurrence in _occurrences(text, report):
                short_form = occurrence.short_form
                if short_form in defined:
                    expansions[report].append(occurrence.expansion(defined[short_form], 1.0, "text"))
                elif short_form in self.dictionary and not _in_capitals(text, occurrence.sentence):
                    undefined.append(occurrence)
        for occurrence, (long_form, score) in zip(undefined, self._best(batch, undefined), strict=True):
            expansions[occurrence.report].append(occurrence.expansion(long_form, score, "dictionary"))
        return [sorted(own, key=lambda e: e.start) for own in expansions]

    def choose(self, text: str, span: Span, long_forms: Sequence[str]) -> list[float]:
        """How well each long form fits at `span`; higher is better."""
        return self.choose_many([(text, span, long_forms)])[0]

    def choose_many(self, rows: Sequence[tuple[str, Span, Sequence[str]]]) -> list[list[float]]:
        """`choose` for many rows in one batch; the whole text is the context."""
        return self.scorer.scores([question(t, span, Span(0, len(t)), long) for t, span, long in rows])

    def _best(self, batch: Sequence[str], occurrences: Sequence[_Occurrence]) -> list[tuple[str, float]]:
        """The dictionary's best long form of each occurrence and its score."""
        questions = [
            question(batch[o.report], o.span, o.sentence, self.dictionary[o.short_form]) for o in occurrences
        ]
        best = []
        for asked, scores in zip(questions, self.scorer.scores(questions), strict=True):
            position = max(range(len(scores)), key=scores.__getitem__)
            best.append((asked.long_forms[position], round(scores[position], 4)))
        return best


def load_dictionary(path: Path) -> dict[str, list[str]]:
    """Short form to its long forms in file order, from a table with the columns short_form and long_form and
    one row for each long form.
    """
    dictionary: dict[str, list[str]] = {}
    for row in read_tsv(path, ("short_form", "long_form")):
        dictionary.setdefault(row[0], []).append(row[1])
    return dictionary


def _occurrences(text: str, report: int) -> Iterator[_Occurrence]:
    for sentence in sentences(text):
        for span in short_forms(text, sentence):
            yield _Occurrence(report, span, sentence, text[span.start : span.end])


def _in_capitals(text: str, sentence: Span) -> bool:
    letters = [c for c in text[sentence.start : sentence.end] if c.isalpha()]
    return sum(c.isupper() for c in letters) > _CAPITALS * len(letters)
