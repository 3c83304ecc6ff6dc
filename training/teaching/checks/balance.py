"""The composition of the teaching corpus: counts of texts, labels, flags, styles, drugs and organ classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from models import drugs, terminology
from models.drugs import DrugLexicon
from models.tables import read_tsv
from models.types import ADE, DRUG, WITHDRAWAL
from training.teaching.batches import SUFFIX, Line, held_out
from training.teaching.checks.check import Corpus
from training.teaching.checks.near_duplicates import normalised
from training.teaching.markup import MarkedText
from training.teaching.readers import own_event

#: Phrases of a preferred term that are enough of it.
PHRASES = 5
#: Lines of a kind, and files, from which on its balance is judged.
MANY, FILES = 200, 5
#: Share of texts without an event, and of lines that are held out.
WITHOUT_EVENT, HELD_OUT = (0.4, 0.7), (0.02, 0.25)
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
#: How a post is written; one post may have several styles.
STYLES: dict[str, Callable[[str], bool]] = {
    "all capitals": str.isupper,
    "no capitals": lambda t: t == t.lower(),
    "no punctuation": lambda t: not re.search(r"[.,!?;:]", t),
    "emoji": lambda t: bool(_EMOJI.search(t)),
    "hashtag": lambda t: "#" in t,
    "handle": lambda t: "@" in t,
    "question": lambda t: "?" in t,
    "at most 3 words": lambda t: len(t.split()) <= 3,  # noqa: PLR2004
    "at most 12 words": lambda t: len(t.split()) <= 12,  # noqa: PLR2004
    "more than 40 words": lambda t: len(t.split()) > 40,  # noqa: PLR2004
}


def report(corpus: Corpus) -> Iterator[str]:
    """Lines to be printed."""
    yield from _sizes(corpus)
    for kind in ("posts", "clinical"):
        texts = [m for line, m in corpus.marked.items() if line.kind == kind]
        if texts:
            yield from _texts(kind, texts)
    posts = [m for line, m in corpus.marked.items() if line.kind == "posts"]
    yield "styles of posts: " + _counts(
        {name: sum(is_so(m.text) for m in posts) for name, is_so in STYLES.items()}
    )
    yield f"kinds of questions: {_counts(Counter(q.kind for q in corpus.questions.values()))}"
    yield from _coverage(corpus)


def unbalanced(corpus: Corpus) -> Iterator[str]:
    """What is out of proportion in the corpus as a whole."""
    for kind in SUFFIX:
        lines = _lines(corpus, kind)
        texts = [corpus.marked[x] for x in lines if x in corpus.marked]
        share = sum(not own_event(t) for t in texts) / max(1, len(texts))
        if len(texts) >= MANY and not WITHOUT_EVENT[0] <= share <= WITHOUT_EVENT[1]:
            yield f"{kind}: {share:.0%} have no event, not {_bounds(WITHOUT_EVENT)}"
        kept = sum(held_out(x.file) for x in lines) / max(1, len(lines))
        enough = len(lines) >= MANY and len({x.file for x in lines}) >= FILES
        if enough and not HELD_OUT[0] <= kept <= HELD_OUT[1]:
            wanted = f"not {_bounds(HELD_OUT)} (another file name may change that)"
            yield f"{kind}: {kept:.0%} are held out, {wanted}"


def _bounds(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:.0%} to {bounds[1]:.0%}"


def _lines(corpus: Corpus, kind: str) -> list[Line]:
    tables = (corpus.marked, corpus.questions, corpus.phrases, corpus.acronyms, corpus.idioms)
    return [line for table in tables for line in table if line.kind == kind]


def _sizes(corpus: Corpus) -> Iterator[str]:
    for kind in SUFFIX:
        lines = _lines(corpus, kind)
        kept = [x for x in lines if held_out(x.file)]
        files = ", ".join(sorted({x.file for x in kept})) or "no file"
        yield (
            f"{kind}: {len(lines)} lines of {len({x.file for x in lines})} files; held out {len(kept)} "
            f"({_percent(len(kept), len(lines))}: {files})"
        )


def _texts(kind: str, texts: Sequence[MarkedText]) -> Iterator[str]:
    without = sum(not own_event(m) for m in texts)
    labels = Counter(m.label for t in texts for m in t.marks)
    flags = Counter(m.flag for t in texts for m in t.marks if m.flag)
    events = [m for t in texts for m in t.marks if m.label in (ADE, WITHDRAWAL) and not m.flag]
    coded = sum(m.term is not None for m in events)
    yield f"{kind} without an event of the writer or patient: {without} ({_percent(without, len(texts))})"
    yield f"{kind}, marks: {_counts(labels)}; flags: {_counts(flags)}"
    yield (
        f"{kind}, events with a preferred term: {coded} of {len(events)}; in words that are no term: "
        + _percent(_in_lay_words(texts), coded)
    )


def _in_lay_words(texts: Sequence[MarkedText]) -> int:
    names = {normalised(t.llt) for t in terminology.load()}
    return sum(
        normalised(t.text[m.start : m.end]) not in names
        for t in texts
        for m in t.marks
        if m.label in (ADE, WITHDRAWAL) and not m.flag and m.term
    )


def _coverage(corpus: Corpus) -> Iterator[str]:
    terms = terminology.load()
    soc = {t.pt: t.soc for t in terms}
    events = {
        m.term for t in corpus.marked.values() for m in t.marks if m.label == ADE and not m.flag and m.term
    }
    missing = sorted(set(soc.values()) - {soc[t] for t in events if t in soc})
    yield f"organ classes of events: {len(set(soc.values())) - len(missing)} of {len(set(soc.values()))}" + (
        f"; without: {', '.join(missing)}" if missing else ""
    )
    yield f"preferred terms of events: {len(events & set(soc))} of {len(soc)}"
    known, unknown = drugs_of(corpus)
    yield f"different drugs: {len(known)} of the lexicon; {len(unknown)} other names (--drugs lists them)"
    phrases = _phrases_of_terms(corpus)
    enough, some = (sum(n >= least for n in phrases.values()) for least in (PHRASES, 1))
    coverage = f"{enough} of {len(soc)}; with any: {some}"
    yield f"preferred terms with {PHRASES} phrases: {coverage} (--terms lists the others)"


def _phrases_of_terms(corpus: Corpus) -> dict[str, int]:
    counts = Counter(p.pt for p in corpus.phrases.values())
    return {pt: counts[pt] for pt in sorted({t.pt for t in terminology.load()})}


def terms_without(corpus: Corpus) -> Iterator[str]:
    """Preferred terms with too few phrases."""
    yield from (f"{pt}: {n} phrases" for pt, n in _phrases_of_terms(corpus).items() if n < PHRASES)


def drugs_of(corpus: Corpus) -> tuple[set[str], Counter[str]]:
    """Generic names of the marked drugs that the lexicon knows, and the other names with their counts."""
    lexicon = DrugLexicon.load()
    known, unknown = set[str](), Counter[str]()
    for t in corpus.marked.values():
        for m in t.marks:
            if m.label == DRUG:
                name = t.text[m.start : m.end].lower()
                found = lexicon.generic(name)
                if found is None:
                    unknown[name] += 1
                else:
                    known.add(found)
    return known, unknown


def unknown_drugs(corpus: Corpus) -> Iterator[str]:
    """Names that the lexicon does not know, each with the most similar one that it knows."""
    names = {row[0].lower() for row in read_tsv(drugs.BUNDLED, ("name",))}
    pairs = {name: _pairs(name) for name in names}
    for name, count in sorted(drugs_of(corpus)[1].items()):
        own = _pairs(name)
        near = max(pairs, key=lambda n: (len(own & pairs[n]) / len(own | pairs[n]), n))
        yield f"{name} ({count}), most like {near}"


def _pairs(name: str) -> set[str]:
    padded = f" {name} "
    return {padded[i : i + 2] for i in range(len(padded) - 1)}


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda x: -x[1])) or "none"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"
