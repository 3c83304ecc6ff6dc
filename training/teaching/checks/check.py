"""The checks of the teaching corpus: lines that must be corrected or removed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

from models import terminology
from models.drugs import DrugLexicon
from models.text import words
from training.common import long_forms
from training.teaching import batches
from training.teaching.batches import FOLDER, SUFFIX, AcronymContext, Idiom, Line, Phrase, Question
from training.teaching.checks import evaluation_texts
from training.teaching.checks.near_duplicates import LONG, PHRASE, SHORT, Index, Shingles, normalised
from training.teaching.checks.personal import personal_data
from training.teaching.markup import MarkedText, MarkupError


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with one line."""

    line: Line
    message: str

    def __str__(self) -> str:
        return f"{self.line.place}: {self.message}"


@dataclass(slots=True)
class Corpus:
    """All lines that could be read, and what could not."""

    marked: dict[Line, MarkedText] = field(default_factory=dict)
    questions: dict[Line, Question] = field(default_factory=dict)
    phrases: dict[Line, Phrase] = field(default_factory=dict)
    acronyms: dict[Line, AcronymContext] = field(default_factory=dict)
    idioms: dict[Line, Idiom] = field(default_factory=dict)
    unreadable: list[Finding] = field(default_factory=list)

    def texts(self) -> list[tuple[Line, str]]:
        """Posts, clinical sentences, questions, and sentences with an acronym or an idiom, without markup."""
        return [
            *((line, m.text) for line, m in self.marked.items()),
            *((line, q.question) for line, q in self.questions.items()),
            *((line, a.text) for line, a in self.acronyms.items()),
            *((line, text) for line, i in self.idioms.items() for text in i.texts()),
        ]


def read(folder: Path = FOLDER) -> Corpus:
    """The whole corpus."""
    corpus = Corpus()
    for line in chain.from_iterable(batches.lines(kind, None, folder) for kind in SUFFIX):
        try:
            if line.kind == "questions":
                corpus.questions[line] = batches.question(line)
            elif line.kind == "phrases":
                corpus.phrases[line] = batches.phrase(line)
            elif line.kind == "acronyms":
                corpus.acronyms[line] = batches.acronym_context(line)
            elif line.kind == "idioms":
                corpus.idioms[line] = batches.idiom(line)
            else:
                corpus.marked[line] = batches.marked(line)
        except MarkupError as error:
            corpus.unreadable.append(Finding(line, str(error).removeprefix(f"{line.place}: ")))
    return corpus


def findings(corpus: Corpus, data: Path | None = None) -> list[Finding]:
    """Everything that is wrong; with `data` also what the corpus shares with the evaluation files there. The
    evaluation texts of the source tree are compared in any case.
    """
    terms = terminology.load()
    folders = [f for f in (*evaluation_texts.IN_TREE, data) if f is not None and f.exists()]
    return [
        *corpus.unreadable,
        *_unknown_terms(corpus, {t.pt for t in terms}),
        *_cut_words(corpus),
        *_personal(corpus),
        *_duplicates(corpus.texts(), folders),
        *_phrases(corpus.phrases, folders),
        *_acronyms(corpus.acronyms),
        *_idioms(corpus.idioms),
    ]


def _unknown_terms(corpus: Corpus, pts: set[str]) -> Iterator[Finding]:
    for line, marked in corpus.marked.items():
        for term in {m.term for m in marked.marks if m.term} - pts:
            yield Finding(line, f"no preferred term {term!r} in the terminology")


def _cut_words(corpus: Corpus) -> Iterator[Finding]:
    """Marks that begin or end inside a word, which a tagger cannot learn."""
    for line, marked in corpus.marked.items():
        spans = words(marked.text)
        starts, ends = {s.start for s in spans}, {s.end for s in spans}
        for m in marked.marks:
            if m.start not in starts or m.end not in ends:
                yield Finding(line, f"a mark that cuts a word: {marked.text[m.start : m.end]!r}")


def _personal(corpus: Corpus) -> Iterator[Finding]:
    lexicon = DrugLexicon.load()
    short_forms = [(line, q.summary) for line, q in corpus.questions.items()]
    for line, text in (*corpus.texts(), *short_forms, *((x, p.phrase) for x, p in corpus.phrases.items())):
        for what in personal_data(text, lexicon):
            yield Finding(line, what)


def _duplicates(texts: Sequence[tuple[Line, str]], folders: Sequence[Path]) -> Iterator[Finding]:
    lines, contents = [line for line, _ in texts], [content for _, content in texts]
    first: dict[str, Line] = {}
    for line, content in texts:
        earlier = first.setdefault(normalised(content), line)
        if earlier is not line:
            yield Finding(line, f"the same words as {earlier.place}")
    evaluated = list(chain.from_iterable(evaluation_texts.texts(folder) for folder in folders))
    found: dict[tuple[Line, str], str] = {}
    for shingles in (SHORT, LONG):
        index = Index(contents, shingles)
        for i, j, jaccard in index.inside():
            if normalised(contents[i]) != normalised(contents[j]):
                found.setdefault((lines[i], lines[j].place), _similarity(shingles, jaccard))
        for name, i, jaccard in index.near(evaluated):
            found.setdefault((lines[i], name), _similarity(shingles, jaccard))
    for (line, place), similarity in found.items():
        yield Finding(line, f"a near-duplicate of {place} {similarity}")


def _similarity(shingles: Shingles, jaccard: float) -> str:
    unit = "words" if shingles.of_words else "characters"
    return f"(Jaccard {jaccard:.2f} of {shingles.n} {unit})"


@cache
def _terms_by_name() -> dict[str, set[str]]:
    """The preferred terms of each name of the terminology."""
    named = defaultdict(set)
    for t in terminology.load():
        named[normalised(t.llt)].add(t.pt)
    return dict(named)


def _phrases(phrases: dict[Line, Phrase], folders: Sequence[Path]) -> Iterator[Finding]:
    named = _terms_by_name()
    pts = set(chain.from_iterable(named.values()))
    mentioned = {normalised(m): place for folder in folders for place, m in evaluation_texts.mentions(folder)}
    first: dict[str, Line] = {}
    for line, p in phrases.items():
        key = normalised(p.phrase)
        earlier = first.setdefault(key, line)
        if p.pt not in pts:
            yield Finding(line, f"no preferred term {p.pt!r} in the terminology")
        if earlier is not line:
            other = phrases[earlier].pt
            yield Finding(
                line, f"the phrase of {earlier.place}" + (f", for {other!r}" if other != p.pt else "")
            )
        elif key in named:
            own = p.pt in named[key]
            yield Finding(line, "a name of its own term" if own else f"a name of {min(named[key])!r}")
        elif key in mentioned:
            yield Finding(line, f"a mention in {mentioned[key]}")
    yield from _like_phrases(phrases)


def _like_phrases(phrases: dict[Line, Phrase]) -> Iterator[Finding]:
    """Phrases of one term that hardly differ: those of different terms may differ in a syllable."""
    of_term: dict[str, list[Line]] = defaultdict(list)
    for line, p in phrases.items():
        of_term[p.pt].append(line)
    for lines in of_term.values():
        for i, j, jaccard in Index([phrases[line].phrase for line in lines], PHRASE).inside():
            if normalised(phrases[lines[i]].phrase) != normalised(phrases[lines[j]].phrase):
                alike = f"nearly the phrase of {lines[j].place} {_similarity(PHRASE, jaccard)}"
                yield Finding(lines[i], alike)


def _acronyms(contexts: dict[Line, AcronymContext]) -> Iterator[Finding]:
    """Acronyms that are not once in their sentence or written out there, and two spellings of a long form."""
    first: dict[tuple[str, str], Line] = {}
    for line, c in contexts.items():
        occurrences = len(re.findall(rf"(?<![^\W_]){re.escape(c.short_form)}(?![^\W_])", c.text))
        if occurrences != 1:
            yield Finding(line, f"{c.short_form!r} is {occurrences} times in its sentence, not once")
        if normalised(c.long_form) in normalised(c.text):
            yield Finding(line, f"the sentence writes out {c.long_form!r}")
        earlier = first.setdefault((c.short_form, long_forms.key(c.long_form)), line)
        if contexts[earlier].long_form != c.long_form:
            yield Finding(line, f"another spelling of {contexts[earlier].long_form!r} of {earlier.place}")


def _idioms(idioms: dict[Line, Idiom]) -> Iterator[Finding]:
    """Expressions that occur twice, glosses that repeat them, and meanings that do not replace them."""
    first: dict[str, Line] = {}
    for line, i in idioms.items():
        earlier = first.setdefault(normalised(i.expression), line)
        if earlier is not line:
            yield Finding(line, f"the idiom of {earlier.place}")
        if normalised(i.expression) in normalised(i.gloss):
            yield Finding(line, f"a gloss that repeats {i.expression!r}")
        for use, meaning in i.figurative:
            if normalised(use.words) == normalised(meaning):
                yield Finding(line, f"a meaning that repeats {use.words!r}")
