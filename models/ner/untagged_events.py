"""Events that the tagger did not tag, as further mentions: names of adverse events, which the status head
judges; deaths and hospital stays of others that a post blames on a drug ("my mother died after her second
dose of Taxol"); and the withdrawal from a drug that is named as such ("paxil withdrawal").

Public corpora annotate what a person has and seldom that somebody died of it, the symptoms of a withdrawal
and never the word. A tagger that learns from them leaves these out, and a report of the most serious kind
would be silence.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from models.drugs.uses import bundled_uses
from models.lexicon import NameLexicon, shared
from models.ner.mention_rules import Cover, barred_words, is_whole_tag
from models.rules.notation import patterns
from models.tables import read_tsv
from models.terminology import term_named
from models.text import PlacedWords, has_one, lower_words, plain
from models.types import ADE, DRUG, OTHER, WITHDRAWAL, Mention, Span

#: The file of a release with its names.
NAMES = "event_names.tsv"
#: Characters between a drug and the person that it harmed.
REACH = 90
#: One of them is in every text, with single blanks, that tells of such an outcome, or one of these words.
STEMS = (
    "died", "passed", "hospi", "admitted", "ambulance", "coma", "intubated", "life support", "ventilator",
    "e.r", "emergency", "a&e", "a & e", "intensive", "psych", "killed", "murdered",
)  # fmt: skip
WORDS = frozenset({"er", "icu", "ccu"})
_FATES = patterns("outcomes")
#: Characters before the word in which a word that decides is looked for.
REACH_BEFORE = 120
_WITHDRAWALS = patterns("withdrawals")


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


def named_outcomes(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The outcomes that `text` names and that overlap none of its mentions, labelled ADE, with score 1 and
    the status of another experiencer; none where no mention is a drug.
    """
    drugs = sorted((m.start, m.end) for m in mentions if m.label == DRUG)
    if not drugs or not _may_tell(text):
        return []
    taken, end, made = Cover(mentions), 0, []
    for span in sorted({*_of_people(text, drugs), *_of_takers(text, drugs), *_by_drugs(text, drugs)}):
        if span[0] >= end and not taken.overlaps(Span(*span)):
            made.append(Mention(*span, text[slice(*span)], ADE, 1.0, status=OTHER))
            end = span[1]
    return made


def _may_tell(text: str) -> bool:
    return has_one(plain(text), STEMS) or not WORDS.isdisjoint(lower_words(text))


def _of_people(text: str, drugs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What happened to somebody in front of a drug or behind it. `drugs`: starts and ends, in text order."""
    starts = [start for start, _ in drugs]
    for match in (*_FATES["outcome"].finditer(text), *_FATES["carried"].finditer(text)):
        start, end = match.span("fate")
        if _FATES["none"].search(text, match.start(), start):
            continue
        first, place = (bisect_left(starts, at) for at in (match.start() - REACH, end))
        in_front = [e for _, e in drugs[first:place] if e < match.start()]
        behind = [s for s, _ in drugs[place : bisect_left(starts, end + REACH)]]
        if any(_links(text, "after", end, s) for s in behind) or any(
            _FATES["timed"].search(text[max(0, e - REACH) : e]) and _links(text, "before", e, match.start())
            for e in in_front
        ):
            yield start, end


def _of_takers(text: str, drugs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What happened to somebody behind the drug that was taken: "my father got digoxin and died"."""
    for start, end in drugs:
        match = _FATES["then"].match(text, end, end + REACH)
        if match is None or _FATES["none"].search(text, end, match.start("fate")):
            continue
        sentence = _FATES["end"].split(text[max(0, start - REACH) : start])[-1]
        if _FATES["who"].search(sentence) and not _FATES["never"].search(sentence):
            yield match.span("fate")


def _by_drugs(text: str, drugs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What a drug did to somebody: "Vioxx killed my dad"."""
    for _, end in drugs:
        match = _FATES["by"].match(text, end, end + REACH)
        if match is not None:
            yield match.span("fate")


def _links(text: str, kind: str, start: int, end: int) -> bool:
    between = text[start:end]
    return bool(_FATES[kind].fullmatch(between)) and not any(
        _FATES[name].search(between) for name in ("none", "end")
    )


def named_withdrawals(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The withdrawals that `text` names and that overlap none of its mentions, labelled WITHDRAWAL, with
    score 1 and no status, so that the rules flag them; none where no mention is a drug.
    """
    drugs = sorted((m.start, m.end) for m in mentions if m.label == DRUG)
    if not drugs or "withdraw" not in text.lower():
        return []
    taken = bytearray(len(text))
    for m in mentions:
        taken[m.start : m.end] = b"1" * (m.end - m.start)
    withdrawals = []
    for match in _WITHDRAWALS["word"].finditer(text):
        start, end = match.span()
        if not any(taken[start:end]) and _is_event(text, start, end, drugs):
            withdrawals.append(Mention(start, end, match.group(), WITHDRAWAL, 1.0))
    return withdrawals


def _is_event(text: str, start: int, end: int, drugs: Sequence[tuple[int, int]]) -> bool:
    """`drugs`: starts and ends, in text order."""
    behind = text[max(0, start - REACH_BEFORE) : start]
    if _WITHDRAWALS["none"].search(behind):
        return False
    place = bisect(drugs, (start, end))
    if place and _WITHDRAWALS["behind"].fullmatch(text, drugs[place - 1][1], start):
        return True
    if place < len(drugs):
        next_start = drugs[place][0]
        of_drug = " " in text[start:end] and _WITHDRAWALS["of"].fullmatch(text, end, next_start)
        if of_drug or _WITHDRAWALS["from"].fullmatch(text, end, next_start):
            return True
    return bool(_WITHDRAWALS["had"].search(behind) or _WITHDRAWALS["sets_in"].match(text, end))
