"""What an acronym stands for: its definition in the text, else the long form of a dictionary that the words
behind it decide, or that fits its sentence best. Unknown short forms are not expanded.

Definitions: Schwartz and Hearst (2003), see definitions.py. Dictionary: two tables score the long forms
(tables.py), or the m-network of Seneviratne et al. (2022) in a release that has one (m_network.py).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from models.acronym.definitions import definitions, long_form_by_next, short_forms
from models.acronym.questions import Scorer, question
from models.acronym.tables import TableScorer
from models.releases.manifest import NO_BASE, Release
from models.rules.sentences import whole_sentences
from models.tables import DATA, read_tsv
from models.types import Expansion, LongForm, Span

#: Clinical short forms with their long forms, written for this project.
CLINICAL = DATA / "acronyms.tsv"
#: Share of capital letters from which on a sentence is in capitals: every short word then looks like an
#: acronym.
_CAPITALS = 0.7
#: Words, other than short forms, of a sentence that can be in capitals.
_SENTENCE = 3
#: Ambiguous acronyms of a text that the scorer is asked about: each is encoded with its sentence.
MOST_ASKED = 1_000


class _Occurrence(NamedTuple):
    """A short form in a text of the batch."""

    report: int
    """position of its text in the batch"""
    span: Span
    sentence: Span
    short_form: str
    entry: str
    """what is looked up: the short form, its singular where it is a plural, or "pt" for "Pt" """

    def expansion(
        self, best: LongForm, source: Literal["text", "dictionary"], candidates: tuple[LongForm, ...] = ()
    ) -> Expansion:
        best, *others = (self._in_number(form) for form in (best, *candidates))
        start, end = self.span.start, self.span.end
        return Expansion(start, end, self.short_form, best.long_form, best.score, source, tuple(others))

    def _in_number(self, form: LongForm) -> LongForm:
        is_plural = len(self.entry) < len(self.short_form)
        return LongForm(plural(form.long_form), form.score) if is_plural else form


class AcronymModel:
    """Expands acronyms by definitions in the text first and by the dictionary second."""

    task = "acronym"

    def __init__(self, dictionary: Mapping[str, Sequence[str]], scorer: Scorer) -> None:
        """`dictionary`: short form to long forms."""
        self.scorer = scorer
        self.encoder = getattr(scorer, "encoder", None)
        self.dictionary = {short: tuple(long) for short, long in dictionary.items()}

    @classmethod
    def load(cls, release: Release, **options: Any) -> AcronymModel:
        """`options`: those of a network's encoder. Raises ReleaseError, ValueError, KeyError, TypeError or
        RuntimeError where files and configuration do not fit.
        """
        scorer: Scorer
        if release.manifest.base == NO_BASE:
            scorer = TableScorer.load(release)
        else:
            # Importing it takes seconds, and a few hundred megabytes.
            from models.acronym.m_network import MNetwork  # noqa: PLC0415

            scorer = MNetwork.load(release, **options)
        return cls(load_dictionary(release.file("dictionary.tsv")), scorer)

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[list[Expansion]]:
        """Expansions from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[list[Expansion]]).validate_python(stored)

    def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
        """Expansions of each text in text order. Ambiguous acronyms behind the first MOST_ASKED of a text are
        undecided, with a score of 0.
        """
        expansions: list[list[Expansion]] = [[] for _ in batch]
        undefined: list[_Occurrence] = []
        for report, text in enumerate(batch):
            n_asked = 0
            defined = definitions(text, self.dictionary)
            in_capitals = cache(partial(self._in_capitals, text))
            for occurrence in _occurrences(text, report, (defined, self.dictionary)):
                if occurrence.entry in defined:
                    long_form = LongForm(defined[occurrence.entry], 1.0)
                    expansions[report].append(occurrence.expansion(long_form, "text"))
                elif occurrence.entry not in self.dictionary or in_capitals(occurrence.sentence):
                    continue
                elif by_next := long_form_by_next(
                    text, occurrence.span, occurrence.entry, self.dictionary[occurrence.entry]
                ):
                    expansions[report].append(occurrence.expansion(LongForm(by_next, 1.0), "dictionary"))
                else:
                    n_asked += len(self.dictionary[occurrence.entry]) > 1
                    if n_asked <= MOST_ASKED or len(self.dictionary[occurrence.entry]) == 1:
                        undefined.append(occurrence)
                    else:
                        expansions[report].append(self._unasked(occurrence))
        for occurrence, best in zip(undefined, self._best(batch, undefined), strict=True):
            # Where it stands for itself, it is a word in capitals or a name here.
            if best.long_form != occurrence.entry:
                expansions[occurrence.report].append(occurrence.expansion(best, "dictionary"))
        return [sorted(own, key=lambda e: e.start) for own in expansions]

    def choose(self, text: str, span: Span, long_forms: Sequence[str]) -> list[float]:
        """How well each long form fits at `span`; higher is better."""
        return self.choose_many([(text, span, long_forms)])[0]

    def choose_many(self, rows: Sequence[tuple[str, Span, Sequence[str]]]) -> list[list[float]]:
        """`choose` for many rows in one batch; the whole text is the context."""
        return self.scorer.scores([question(t, span, Span(0, len(t)), long) for t, span, long in rows])

    def _in_capitals(self, text: str, sentence: Span) -> bool:
        """Whether a sentence is in capitals, by its words other than short forms; a heading before short
        forms ("LUNGS: CTA.") is none.
        """
        found = re.findall(r"[^\W\d_]{2,}", text[sentence.start : sentence.end])
        words = [word for word in found if word not in self.dictionary]
        letters = "".join(words)
        shouted = sum(c.isupper() for c in letters) > _CAPITALS * len(letters)
        return shouted and len(words) >= _SENTENCE

    def _unasked(self, occurrence: _Occurrence) -> Expansion:
        """An undecided expansion with the first long form."""
        forms = (form for form in self.dictionary[occurrence.entry] if form != occurrence.entry)
        first = LongForm(next(forms), 0.0)
        return occurrence.expansion(first, "dictionary", (first,))

    def _best(self, batch: Sequence[str], occurrences: Sequence[_Occurrence]) -> list[LongForm]:
        """The dictionary's best long form of each occurrence."""
        questions = [
            question(batch[o.report], _of_entry(o), o.sentence, self.dictionary[o.entry]) for o in occurrences
        ]
        best = []
        for asked, scores in zip(questions, self.scorer.scores(questions), strict=True):
            i = max(range(len(scores)), key=scores.__getitem__)
            best.append(LongForm(asked.long_forms[i], round(scores[i], 4)))
        return best


def load_dictionary(path: Path) -> dict[str, list[str]]:
    """Short form to its long forms in file order, from a table with the columns short_form and long_form and
    one row for each long form.
    """
    dictionary: dict[str, list[str]] = {}
    for row in read_tsv(path, ("short_form", "long_form")):
        dictionary.setdefault(row[0], []).append(row[1])
    return dictionary


def plural(long_form: str) -> str:
    """The plural of a noun phrase in English; one in -s is taken for a plural, but for -ss and -sis."""
    for ending, replaced in (
        ("ss", "sses"), ("sis", "ses"), ("s", "s"), ("x", "xes"), ("ch", "ches"), ("sh", "shes"),
    ):  # fmt: skip
        if long_form.endswith(ending):
            return long_form.removesuffix(ending) + replaced
    if re.search("[^aeiou]y$", long_form):
        return long_form.removesuffix("y") + "ies"
    return long_form + "s"


def _occurrences(text: str, report: int, known: Sequence[Container[str]]) -> Iterator[_Occurrence]:
    """The occurrences of all short forms. `known`: where an entry is looked up, as it stands first."""
    for sentence in whole_sentences(text):
        for span in short_forms(text, sentence):
            short_form = text[span.start : span.end]
            # "H/o" and "Pt" begin a sentence.
            forms = (short_form, _singular(short_form), short_form[:1].lower() + short_form[1:])
            entry = next((form for form in forms if any(form in where for where in known)), short_form)
            yield _Occurrence(report, span, sentence, short_form, entry)


def _singular(short_form: str) -> str:
    """Without the s of a plural: LFT for LFTs."""
    stem = short_form.removesuffix("s")
    return stem if len(stem) > 1 and stem.isupper() else short_form


def _of_entry(occurrence: _Occurrence) -> Span:
    """The span without the s of a plural."""
    start = occurrence.span.start
    return Span(start, start + len(occurrence.entry))
