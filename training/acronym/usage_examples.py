"""Prototypes of a release, made of example sentences of known long forms: CASI's training rows, sentences of
clinical abstracts in which a long form of the dictionary is written out, and sentences of the teaching
corpus.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.acronym import cues, frequencies
from models.acronym.m_network import MNetwork
from models.acronym.prototypes import (
    COLUMNS,
    TABLE,
    VECTORS,
    WRITTEN,
    Mixture,
    PrototypeEntry,
    Prototypes,
)
from models.releases.manifest import Score
from training.acronym.data import WrittenOut, read_training, read_written_out, sample_rows
from training.acronym.prototypes import (
    EncodedRows,
    Estimates,
    RowScores,
    Usage,
    ablation_table,
    best_mixture,
    build_prototypes,
    cross_validated,
    encode_rows,
    folds,
    scored_by,
    sense_of,
)
from training.acronym.written import (
    scored_as_unseen,
    spellings,
    validation_sentences,
    with_dictionary_forms,
    written_rows,
)
from training.common.checkpoint import Checkpoint, digest_of
from training.common.corpora import CorpusError
from training.common.long_forms import key
from training.evaluation.acronym import Row, choices, majority, scores
from training.teaching.batches import AcronymContext

console = Console()
#: Rows of one long form that make a prototype, of the sentences that do not define the acronym.
ROWS_PER_LONG_FORM = 8
DEFINED = "sentences of held-out ADE corpus abstracts that define an ambiguous acronym, definition taken out"


class CachedOutputs:
    """Runs a network on rows and keeps the outputs in the folder of the run, where there is one."""

    def __init__(self, network: MNetwork, run: Path | None, settings: Mapping[str, Any]) -> None:
        """`settings`: what makes the network what it is."""
        self.network = network
        self.run = run
        self.settings = settings

    def __call__(self, name: str, source: str, rows: Sequence[Row], with_logits: bool = True) -> EncodedRows:
        """`name`: of the folder of these outputs. Raises CheckpointError where they are of other settings or
        rows: the same sentences have other long forms to choose from by another dictionary.
        """
        identity = {**self.settings, "rows": len(rows), "data": digest_of(rows)}
        cache = Checkpoint(self.run / name if self.run else None, identity)
        outputs = cache.load()
        if outputs is None:
            encoded = encode_rows(self.network, source, rows, with_logits)
            cache.save({"logits": encoded.logits, "near": encoded.near})
            return encoded
        return EncodedRows(source, list(rows), outputs["logits"], outputs["near"])


class UsageExamples(NamedTuple):
    """The encoded rows that make prototypes, and those of definitions, on which weights are chosen too."""

    casi: EncodedRows
    used: EncodedRows
    defined: EncodedRows
    written: EncodedRows
    sentences: EncodedRows
    """written to validate; in no prototype"""
    estimated: Estimates

    def without(self, senses: Set[tuple[str, str]]) -> UsageExamples:
        """Without these senses, but for the written sentences."""
        return self._replace(
            casi=self.casi.without(senses),
            used=self.used.without(senses),
            defined=self.defined.without(senses),
            sentences=self.sentences.without(senses),
        )

    @property
    def usage(self) -> Usage:
        """What a release knows of how often senses are meant."""
        return Usage({"casi": self.casi.rows, "ade": self.defined.rows}, self.estimated)

    def prototypes(self, mixture: Mixture) -> Prototypes:
        """Those of a release."""
        return build_prototypes([self.casi, self.used, self.written], mixture, self.usage)


def usage_examples(
    outputs: CachedOutputs,
    data: Path,
    dictionary: Mapping[str, Sequence[str]],
    contexts: Sequence[AcronymContext],
    estimated: Estimates,
    seed: int,
    without: Sequence[str] = (),
) -> UsageExamples:
    """All sources, encoded; each row of CASI has the dictionary's further long forms to choose from. Nothing
    is read of the corpora `without` (casi, ade), whose rows are then none.
    """
    known = [] if "casi" in without else read_training(data, "casi")
    casi = with_dictionary_forms(known, dictionary)
    none = WrittenOut([], [])
    texts = none if "ade" in without else read_written_out(data, dictionary, held_out=False)
    shown = written_rows(contexts, dictionary, spellings(dictionary, casi))
    return UsageExamples(
        casi=outputs("casi", "casi", casi),
        used=outputs("used", "ade", sample_rows(texts.used, ROWS_PER_LONG_FORM, seed), with_logits=False),
        defined=outputs("defined", "ade", texts.defined),
        written=outputs("written", WRITTEN, shown, with_logits=False),
        sentences=outputs("sentences", "sentences", validation_sentences(dictionary)),
        estimated=estimated,
    )


def validation_scores(
    examples: UsageExamples, seed: int, covered: Set[tuple[str, str]] | None = None
) -> dict[str, list[RowScores]]:
    """Rows scored by prototypes that they are not in: rows of known senses, definitions, rows of senses as if
    only written sentences showed them (of `covered`, by default of all with such sentences), and sentences
    that were written to validate.
    """
    casi, used, defined, written, sentences, estimated = examples
    if covered is None:
        covered = {sense_of(row) for row in written.rows}
    found = {
        "casi": cross_validated(casi, seed, [written], estimated),
        "ade": scored_definitions([used, written], defined, estimated, seed),
        "unseen": scored_as_unseen(casi, [used, written], covered, estimated, seed),
        "sentences": scored_by([casi, used, written], sentences, examples.usage),
    }
    return {name: rows for name, rows in found.items() if rows}


def mixed_prototypes(examples: UsageExamples, seed: int) -> Prototypes:
    """Prototypes of all sources, with the mixture that is best on rows that are in no prototype. Raises
    CorpusError where there are none.
    """
    started = time.monotonic()
    scored = validation_scores(examples, seed)
    if not scored:
        raise CorpusError("no row to choose weights on: the dictionary has no acronym of a source")
    mixture = best_mixture(scored)
    console.print(ablation_table(scored, mixture))
    console.print(f"{mixture}, {time.monotonic() - started:.0f} s", highlight=False)
    return examples.prototypes(mixture)


def write_prototypes(prototypes: Prototypes, estimated: Estimates, folder: Path) -> None:
    """Writes the tables and the vectors, in 16 bits, of a release."""
    if estimated.frequencies.words:
        estimated.frequencies.write(folder / frequencies.TABLE)
    if estimated.cue_words.cues:
        estimated.cue_words.write(folder / cues.TABLE)
    lines = ["\t".join(COLUMNS), *("\t".join(map(str, use)) for use in prototypes.entries)]
    (folder / TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_file({"vectors": prototypes.vectors.half().contiguous()}, folder / VECTORS)


def scored_definitions(
    sources: Sequence[EncodedRows], defined: EncodedRows, estimated: Estimates, seed: int
) -> list[RowScores]:
    """Each definition scored by the prototypes of `sources`, with the sense priors of the other folds of
    definitions.
    """
    scored = []
    for held in folds(defined.rows, seed):
        inside = set(held)
        counted = [row for i, row in enumerate(defined.rows) if i not in inside]
        scored += scored_by(sources, defined.part(held), Usage({defined.source: counted}, estimated))
    return scored


def with_dictionary_spellings(prototypes: Prototypes, dictionary: Mapping[str, Sequence[str]]) -> Prototypes:
    """Adds each prototype of a corpus under the dictionary's spelling of its long form where that is another
    one ("intraarterial", "intra-arterial").
    """
    uses, vectors = list(prototypes.entries), list(prototypes.vectors)
    for use, vector in zip(prototypes.entries, prototypes.vectors, strict=True):
        for form in dictionary.get(use.short_form, ()) if use.source != WRITTEN else ():
            if form != use.long_form and key(form) == key(use.long_form):
                uses.append(PrototypeEntry(use.short_form, form, use.source, use.rows))
                vectors.append(vector)
    stacked = torch.stack(vectors) if vectors else prototypes.vectors
    return Prototypes(uses, stacked, prototypes.mixture, prototypes.frequencies)


def score_on_definitions(model: Any, data: Path, dictionary: Mapping[str, Sequence[str]]) -> Score:
    """Accuracy on held-out abstracts where the text itself defines the acronym, so that gold is known."""
    rows = read_written_out(data, dictionary, held_out=True).defined
    commonest = majority(read_written_out(data, dictionary, held_out=False).defined)
    baseline = [commonest.get(row.short_form, row.senses[0]) for row in rows]
    return Score(
        name="accuracy_defined",
        value=round(scores(rows, choices(model, rows))["accuracy"], 4),
        definition="share of rows whose defined long form scores highest of the dictionary's",
        data=DEFINED,
        records=len(rows),
        baseline=round(scores(rows, baseline)["accuracy"], 4),
        baseline_definition="what other abstracts define most often, else the dictionary's first",
    )
