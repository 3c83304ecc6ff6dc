"""Names of adverse events that the tagger did not tag, as further mentions for the status head to judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from models.drugs.uses import bundled_uses
from models.lexicon import NameLexicon, shared
from models.ner.mention_rules import Cover, barred_words, is_whole_tag
from models.tables import read_tsv
from models.terminology import term_named
from models.text import PlacedWords
from models.types import ADE, DRUG, Mention, Span

#: The file of a release with its names.
NAMES = "event_names.tsv"


def read_names(path: Path) -> NameLexicon:
    """The names of a file whose header begins with name; else ValueError."""
    return shared(path, _read)


def _read(path: Path) -> NameLexicon:
    return NameLexicon.of(row[0] for row in read_tsv(path, ("name",)))


def write_names(path: Path, names: Iterable[str]) -> None:
    """Each name once, without case, in alphabetical order."""
    lines = ["name", *sorted({name.lower() for name in names})]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def candidates(
    names: NameLexicon, text: str, words: PlacedWords, mentions: Sequence[Mention], score: float
) -> list[Mention]:
    """The names among the words of a sentence that overlap no mention, hashtag or handle, as mentions
    labelled ADE. A hashtag that is a name is one ("#hives"), unless a drug of the sentence is taken for it.
    """
    named = [span for span, _ in names.among(words)]
    if not named:
        return []
    drugs = [m.generic for m in mentions if m.label == DRUG and m.generic]
    tagged = [words.span(i, i + 1) for i, _ in barred_words(text, words)]
    taken = Cover([*mentions, *(word for word in tagged if not _may_happen(text, word, drugs))])
    return [
        Mention(s.start, s.end, text[s.start : s.end], ADE, round(score, 4))
        for s in named
        if not taken.overlaps(s)
    ]


def _may_happen(text: str, word: Span, drugs: Sequence[str]) -> bool:
    """Whether a word is a whole hashtag and names nothing that one of the drugs is taken for."""
    if not is_whole_tag(text, word):
        return False
    term = term_named(text[word.start : word.end])
    return term is None or not any(bundled_uses().treats(drug, term.pt) for drug in drugs)
