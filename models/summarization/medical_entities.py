"""What a question is about: the medical entities in it, by the project's own recogniser or by Stanza's.

ECL takes the entities of a reference summary as the focus of its question (section 3.6.1) and finds them with
Stanza's biomedical and clinical models. Those are used where somebody has put them; the project's own tagger,
terminology and drug lexicon answer otherwise. Scores name the one that they were made with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from models import drugs, terminology
from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.ner.head import Head
from models.ner.model import NerModel
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.tables import read_tsv
from models.text import words
from models.types import DRUG, LABELS, Span

#: Releases before this one fall back to unpickling whole objects when a model's file is not plain tensors.
STANZA = (1, 12, 2)
#: Clinical problems, tests and treatments; chemicals and diseases.
STANZA_MODELS = ("i2b2", "bc5cdr")
#: Found in front of and behind what a tagger takes for an entity, and never entities alone.
_EDGES = re.compile(
    r"an?|and|any|are|be|by|can|do|does|for|from|has|have|how|if|in|is|its?|me|my|of|on|or|s|same|some|such|t|"
    r"than|that|the|their|these|this|those|to|too|what|when|which|who|with|your"
)
#: Of the terminology and of the tagger: words by which people ask, not what they ask about.
_GENERAL = re.compile(
    r"causes?|complications?|conditions?|contact|cure|death|diseases?|disorders?|drugs?|(?:side )?effects?|"
    r"infections?|injury|normal|problems?|procedure|research|results?|side|surgery|symptoms?|syndrome|tests?|"
    r"therapy|treatments?|unknown|use"
)
ADAPTER, HEAD, TERMS, DRUGS = (
    "focus_adapter.safetensors",
    "focus_head.safetensors",
    "focus_terms.tsv",
    "focus_drugs.tsv",
)


class Entity(NamedTuple):
    """A drug or something else of medicine; offsets are code points of its text."""

    start: int
    end: int
    text: str
    drug: bool


class Recogniser(Protocol):
    """Finds the medical entities of texts, in text order and without overlap."""

    @property
    def name(self) -> str:
        """For the definitions of scores."""

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]: ...


class OwnRecogniser:
    """The tagger's mentions, the terminology's terms and the lexicon's drugs, joined where they overlap."""

    def __init__(self, tagger: NerModel | None, terms: Iterable[str], lexicon: DrugLexicon) -> None:
        self.tagger = tagger
        self.drugs = lexicon
        self.terms = DrugLexicon({t: t for t in terms if not _GENERAL.fullmatch(t.lower())})
        self.name = f"{'tagger, ' if tagger else ''}terminology and drug lexicon"

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> OwnRecogniser:
        """The recogniser that a release of summaries holds."""
        adapter = release.file(ADAPTER) if ADAPTER in release.manifest.files else None
        tagger = None
        lexicon = DrugLexicon.load(release.file(DRUGS))
        if adapter is not None:
            base = release.manifest.configuration["focus_base"]
            encoder = Encoder.load(base, device=device, dtype=dtype, adapter=adapter)
            head = Head(encoder.dimension, len(tags_of(LABELS)))
            stored = read_tensors(release.file(HEAD))
            head.load_state_dict({k: v.float() for k, v in stored.items()})
            tagger = NerModel(encoder, head.to(device), LABELS, lexicon)
        return cls(tagger, (row[0] for row in read_tsv(release.file(TERMS), ("term",))), lexicon)

    @classmethod
    def bundled(cls, tagger: NerModel | None) -> OwnRecogniser:
        """With the lexicons that come with the code."""
        return cls(tagger, _names(), DrugLexicon.load())

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        tagged = self.tagger.predict(texts) if self.tagger else [[] for _ in texts]
        found = []
        for text, mentions in zip(texts, tagged, strict=True):
            spans = [(m.start, m.end, m.label == DRUG) for m in mentions]
            spans += [(s.start, s.end, True) for s, _ in self.drugs.find(text)]
            spans += [(s.start, s.end, False) for s, _ in self.terms.find(text)]
            found.append(joined(text, spans))
        return found


class StanzaRecogniser:
    """Stanza's biomedical and clinical entities (Zhang et al. 2021)."""

    def __init__(self, pipeline: Any, models: Sequence[str]) -> None:
        self._pipeline = pipeline
        self.name = f"Stanza ({', '.join(models)})"

    @classmethod
    def load(cls, folder: Path, models: Sequence[str] = STANZA_MODELS) -> StanzaRecogniser | None:
        """None where the package is not installed or a model is not in the folder; nothing is downloaded.

        Raises ReleaseError for a version of Stanza that would unpickle what it is given.
        """
        try:
            installed = version("stanza")
        except PackageNotFoundError:
            return None
        if tuple(int(n) for n in re.findall(r"\d+", installed)[:3]) < STANZA:
            wanted = ".".join(map(str, STANZA))
            raise ReleaseError(f"stanza {installed} unpickles what it loads: {wanted} is wanted")
        if not all((folder / "en/ner" / f"{model}.pt").is_file() for model in models):
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
        found = []
        for text in texts:
            marked = self._pipeline(text).ents if text.strip() else []
            spans = [(e.start_char, e.end_char, e.type == "CHEMICAL") for e in marked]
            found.append(joined(text, spans))
        return found


def joined(text: str, spans: Iterable[tuple[int, int, bool]]) -> list[Entity]:
    """Spans (start, end, drug) without words that are no entity at their edges; those that overlap become
    one.
    """
    out: list[Entity] = []
    for start, end, drug in sorted(kept for s in spans for kept in _trimmed(text, *s)):
        last = out.pop() if out and start < out[-1].end else Entity(start, end, "", drug)
        first, after = last.start, max(end, last.end)
        out.append(Entity(first, after, text[first:after], drug and last.drug))
    return out


def named_in(entity: str, text: str, lexicon: DrugLexicon | None = None) -> bool:
    """Whether a text names an entity: its words in a row, plural or not, or another name of the same drug."""
    wanted, have = normal(entity), normal(text)
    n = len(wanted)
    if any(have[i : i + n] == wanted for i in range(len(have) - n + 1)):
        return True
    generic = lexicon.generic(entity) if lexicon else None
    return generic is not None and any(g == generic for _, g in lexicon.find(text))  # type: ignore[union-attr]


def normal(text: str) -> list[str]:
    """Words in lower case without marks, accents aside, and without the s of a plural or a possessor."""
    found = re.findall(r"[^\W_]+", re.sub(r"['\u2019]s\b", "", text.lower()))
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in found]  # noqa: PLR2004


def recogniser(tagger: NerModel | None, stanza_models: Path | None = None) -> Recogniser:
    """Stanza's where its models are present, the project's own otherwise."""
    found = StanzaRecogniser.load(stanza_models) if stanza_models else None
    return found or OwnRecogniser.bundled(tagger)


def write(folder: Path, tagger: Release) -> None:
    """Puts the project's own recogniser into the folder of a release: the tagger's files, both lexicons."""
    for name, own in (("adapter.safetensors", ADAPTER), ("head.safetensors", HEAD)):
        (folder / own).write_bytes(tagger.file(name).read_bytes())
    (folder / TERMS).write_text("\n".join(["term", *_names()]) + "\n", encoding="utf-8")
    (folder / DRUGS).write_bytes(drugs.BUNDLED.read_bytes())


def _names() -> list[str]:
    return sorted({name for t in terminology.load() for name in (t.llt, t.pt)})


def _trimmed(text: str, start: int, end: int, drug: bool) -> Iterable[tuple[int, int, bool]]:
    inside = [Span(start + s.start, start + s.end) for s in words(text[start:end])]
    inside = [s for s in inside if text[s.start].isalnum()]
    while inside and _is_edge(text, inside[0]):
        inside.pop(0)
    while inside and _is_edge(text, inside[-1]):
        inside.pop()
    if inside:
        first, last = inside[0].start, inside[-1].end
        if last - first > 1 and not _GENERAL.fullmatch(text[first:last].lower()):
            yield first, last, drug


def _is_edge(text: str, word: Span) -> bool:
    return _EDGES.fullmatch(text[word.start : word.end].lower()) is not None
