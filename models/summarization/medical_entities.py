"""The medical entities of a question or a summary, by the project's own recogniser or by Stanza's.

ECL takes the entities of a reference summary as the focus of its question (section 3.6.1) and finds them with
Stanza's biomedical and clinical models. Those are used where they are installed; otherwise the project's own
tagger, terminology and drug lexicon are. Scores name the recogniser that they were computed with.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from models import drugs, terminology
from models.drugs import DrugLexicon
from models.lexicon import NameLexicon, shared
from models.releases.manifest import Release, ReleaseError
from models.tables import read_tsv
from models.text import words
from models.types import DRUG, Span

if TYPE_CHECKING:
    from models.ner.model import NerModel

log = logging.getLogger(__name__)
#: Older versions unpickle whole objects where the file of a model does not hold plain tensors.
MIN_STANZA = (1, 12, 2)
#: Clinical problems, tests and treatments; chemicals and diseases.
STANZA_MODELS = ("i2b2", "bc5cdr")
#: Words that a tagger wrongly includes at the edges of an entity.
_EDGES = re.compile(
    r"an?|and|any|are|be|by|can|do|does|for|from|has|have|how|if|in|is|its?|me|my|of|on|or|s|same|some|such|t|"
    r"than|that|the|their|these|this|those|to|too|what|when|which|who|with|your"
)
#: Terms and mentions that are too general to be what a question is about.
GENERAL = re.compile(
    r"causes?|complications?|conditions?|contact|cure|death|diseases?|disorders?|drugs?|(?:side )?effects?|"
    r"infections?|injury|normal|problems?|procedure|research|results?|side|surgery|symptoms?|syndrome|tests?|"
    r"therapy|treatments?|unknown|use"
)
#: Minimum number of letters of a word whose plural s is removed.
_MIN_PLURAL = 4
TERMS, DRUGS = "focus_terms.tsv", "focus_drugs.tsv"


class Entity(NamedTuple):
    """A drug or another medical entity; offsets are code points of its text."""

    start: int
    end: int
    text: str
    drug: bool
    """whether it is a drug"""


class Recogniser(Protocol):
    """Finds the medical entities of texts, in text order and without overlap."""

    @property
    def name(self) -> str:
        """The name in the definitions of scores."""

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text."""


class OwnRecogniser:
    """The tagger's mentions, the terminology's terms and the lexicon's drugs, merged where they overlap."""

    def __init__(
        self, tagger: NerModel | None, terms: Iterable[str] | NameLexicon, lexicon: DrugLexicon
    ) -> None:
        """`terms`: names, or the lexicon that `term_lexicon` makes of them."""
        self.tagger = tagger
        self.drugs = lexicon
        self.terms = terms if isinstance(terms, NameLexicon) else term_lexicon(terms)
        self.name = f"{'tagger, ' if tagger else ''}terminology and drug lexicon"

    @classmethod
    def load(cls, release: Release) -> OwnRecogniser:
        """The recogniser of a summarization release, without a tagger."""
        lexicon = DrugLexicon.load(release.file(DRUGS))
        return cls(None, shared(release.file(TERMS), _read_terms), lexicon)

    @classmethod
    def bundled(cls, tagger: NerModel | None) -> OwnRecogniser:
        """With the lexicons that are part of the code."""
        return cls(tagger, *_bundled())

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        tagged = self.tagger.predict(texts) if self.tagger else [[] for _ in texts]
        entities = []
        for text, mentions in zip(texts, tagged, strict=True):
            spans = [(m.start, m.end, m.label == DRUG) for m in mentions]
            spans += [(s.start, s.end, True) for s, _ in self.drugs.find(text)]
            spans += [(s.start, s.end, False) for s, _ in self.terms.find(text)]
            entities.append(merge_spans(text, spans))
        return entities


class StanzaRecogniser:
    """Stanza's biomedical and clinical entities (Zhang et al. 2021)."""

    def __init__(self, pipeline: Any, models: Sequence[str]) -> None:
        self._pipeline = pipeline
        self.name = f"Stanza ({', '.join(models)})"

    @classmethod
    def load(cls, folder: Path, models: Sequence[str] = STANZA_MODELS) -> StanzaRecogniser | None:
        """None where the package is not installed or a model is not in the folder, and a line of the log says
        what is needed; nothing is downloaded.

        Raises ReleaseError for a version of Stanza that would unpickle the models.
        """
        try:
            installed = version("stanza")
        except PackageNotFoundError:
            installed = ""
        if installed and tuple(int(n) for n in re.findall(r"\d+", installed)[:3]) < MIN_STANZA:
            required = ".".join(map(str, MIN_STANZA))
            raise ReleaseError(f"stanza {installed} unpickles the models it loads: {required} is required")
        if not installed or not all((folder / "en/ner" / f"{model}.pt").is_file() for model in models):
            log.warning(
                "entities are found without Stanza, which needs pip install -e '.[focus]' and in %s its "
                "English models tokenize/craft and ner/%s",
                folder,
                " and ner/".join(models),
            )
            return None
        import stanza  # noqa: PLC0415  optional

        pipeline = stanza.Pipeline(
            "en",
            dir=str(folder),
            package=None,
            processors={"tokenize": "craft", "ner": list(models)},
            download_method=None,
            use_gpu=torch.cuda.is_available(),
            verbose=False,
        )
        return cls(pipeline, models)

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        entities = []
        for text in texts:
            marked = self._pipeline(text).ents if text.strip() else []
            spans = [(e.start_char, e.end_char, e.type == "CHEMICAL") for e in marked]
            entities.append(merge_spans(text, spans))
        return entities


def merge_spans(text: str, spans: Iterable[tuple[int, int, bool]]) -> list[Entity]:
    """The entities of spans (start, end, drug), in text order: function words at the edges are cut off,
    general terms are dropped, overlapping spans become one entity, which is a drug if all of them are.
    """
    entities: list[Entity] = []
    for start, end, drug in sorted(kept for span in spans for kept in _trimmed(text, *span)):
        overlaps = bool(entities) and start < entities[-1].end
        last = entities.pop() if overlaps else Entity(start, end, "", drug)
        first, after = last.start, max(end, last.end)
        entities.append(Entity(first, after, text[first:after], drug and last.drug))
    return entities


def named_in(entity: str, text: str, lexicon: DrugLexicon | None = None) -> bool:
    """Whether a text names an entity: its words in sequence, compared as `word_keys`, or, with a lexicon,
    another name of the same drug.
    """
    entity_keys, text_keys = word_keys(entity), word_keys(text)
    n = len(entity_keys)
    if any(text_keys[i : i + n] == entity_keys for i in range(len(text_keys) - n + 1)):
        return True
    generic = lexicon.generic(entity) if lexicon else None
    return generic is not None and any(g == generic for _, g in lexicon.find(text))  # type: ignore[union-attr]


@lru_cache(maxsize=2048)
def word_keys(text: str) -> tuple[str, ...]:
    """The words as they are compared: small, without punctuation, plural and possessive s. Cached, because
    the parts of a message are compared with each other.
    """
    without_possessives = re.sub(r"['\u2019]s\b", "", text.lower())
    return tuple(map(_singular, re.findall(r"[^\W_]+", without_possessives)))


def _singular(word: str) -> str:
    plural = len(word) >= _MIN_PLURAL and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word


def recogniser(tagger: NerModel | None, stanza_models: Path | None = None) -> Recogniser:
    """Stanza's where its models are in the folder `stanza_models`, the project's own otherwise."""
    stanza = StanzaRecogniser.load(stanza_models) if stanza_models else None
    return stanza or OwnRecogniser.bundled(tagger)


def write_lexicons(folder: Path) -> None:
    """Writes both lexicons into the folder of a release."""
    (folder / TERMS).write_text("\n".join(["term", *_terms()]) + "\n", encoding="utf-8")
    (folder / DRUGS).write_bytes(drugs.BUNDLED.read_bytes())


def term_lexicon(terms: Iterable[str]) -> NameLexicon:
    """The terms that are not too general to be an entity."""
    return NameLexicon.of(t for t in terms if not GENERAL.fullmatch(t.lower()))


def _read_terms(path: Path) -> NameLexicon:
    """The lexicon of the terms in the file of a release."""
    return term_lexicon(row[0] for row in read_tsv(path, ("term",)))


@cache
def _bundled() -> tuple[NameLexicon, DrugLexicon]:
    """The bundled terms and drugs; nothing changes a lexicon."""
    return term_lexicon(_terms()), DrugLexicon.load()


def _terms() -> list[str]:
    return sorted({name for t in terminology.load() for name in (t.llt, t.pt)})


def _trimmed(text: str, start: int, end: int, drug: bool) -> Iterable[tuple[int, int, bool]]:
    """The span without function words at its edges; nothing where that leaves no entity."""
    inside = [Span(start + s.start, start + s.end) for s in words(text[start:end])]
    inside = [s for s in inside if text[s.start].isalnum()]
    while inside and _is_edge(text, inside[0]):
        inside.pop(0)
    while inside and _is_edge(text, inside[-1]):
        inside.pop()
    if inside:
        first, last = inside[0].start, inside[-1].end
        if last - first > 1 and not GENERAL.fullmatch(text[first:last].lower()):
            yield first, last, drug


def _is_edge(text: str, word: Span) -> bool:
    return _EDGES.fullmatch(text[word.start : word.end].lower()) is not None
