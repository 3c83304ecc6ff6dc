"""Prototypes of long forms, made of example sentences of all corpora."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from models.acronym import cues, frequencies
from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.m_network import MNetwork
from models.acronym.prototypes import COLUMNS, TABLE, VECTORS, WRITTEN, Mixture, PrototypeEntry, Prototypes
from training.acronym import data
from training.acronym.data import questions, sample_rows, sense_of
from training.acronym.written_out import WrittenOut, read_texts, rows_of_texts
from training.common.batching import by_length
from training.common.long_forms import key
from training.evaluation.acronym import Row, casi_parts

#: Questions of one forward pass.
BATCH = 64
#: Rows of one long form that make a prototype, of the sentences that do not define the acronym.
ROWS_PER_LONG_FORM = 8


class EncodedRows(NamedTuple):
    """Rows of a source with the outputs of the network: logits of their long forms, and the mean vector near
    the acronym, (rows, dimension).
    """

    source: str
    rows: list[Row]
    logits: list[list[float]]
    near: Tensor

    def part(self, indices: Sequence[int]) -> EncodedRows:
        """The rows of these indices."""
        rows = [self.rows[i] for i in indices]
        return EncodedRows(self.source, rows, [self.logits[i] for i in indices], self.near[list(indices)])

    def of(self, senses: Set[tuple[str, str]], *, others: bool = False) -> EncodedRows:
        """The rows of some senses, each a short form with a long form, or of the others."""
        return self.part([i for i, row in enumerate(self.rows) if (sense_of(row) in senses) != others])


def encode_rows(network: MNetwork, source: str, rows: Sequence[Row], with_logits: bool = True) -> EncodedRows:
    """Runs the network on rows; without logits only the anchors are encoded, and every logit is 0."""
    asked = questions(rows)
    logits: list[list[float]] = [[0.0] * len(q.long_forms) for q in asked]
    near = torch.zeros(len(asked), network.encoder.dimension)
    for batch in by_length([len(row.text) for row in rows], BATCH):
        part = [asked[i] for i in batch]
        if with_logits:
            answers, near[batch] = network.scores(part)
            for i, row in zip(batch, answers, strict=True):
                logits[i] = row
        else:
            near[batch] = network.near_vectors(part)
    return EncodedRows(source, list(rows), logits, near)


class Estimates(NamedTuple):
    """What is known of long forms without rows of a corpus; by default nothing."""

    frequencies: SenseFrequencies = SenseFrequencies()
    cue_words: CueWords = CueWords()

    @classmethod
    def clinical(cls) -> Estimates:
        """Tables that were written for this project."""
        return cls(SenseFrequencies.load(frequencies.CLINICAL), CueWords.load(cues.CLINICAL))


class Examples(NamedTuple):
    """The encoded rows of all sources."""

    casi: EncodedRows
    used: EncodedRows
    """texts in which an acronym takes the place of a long form"""
    defined: EncodedRows
    """texts that define the acronym; in no prototype, weights are chosen on them"""
    written: EncodedRows
    sentences: EncodedRows
    """written to choose weights; in no prototype"""

    def prototypes(
        self, mixture: Mixture, estimates: Estimates, dictionary: Mapping[str, Sequence[str]]
    ) -> Prototypes:
        """Those of a release."""
        sources = [self.casi, self.used, self.written]
        made = build_prototypes(sources, mixture, self.counted, estimates.frequencies)
        return with_dictionary_spellings(made, dictionary)

    @property
    def counted(self) -> dict[str, list[Row]]:
        """The rows that show how often a long form is meant, by source."""
        return {"casi": self.casi.rows, "ade": self.defined.rows}


def read_examples(
    network: MNetwork,
    folder: Path,
    corpora: Collection[str],
    dictionary: Mapping[str, Sequence[str]],
    seed: int,
    limit: int = 0,
) -> Examples:
    """The rows of the corpora, encoded; each row of CASI has the dictionary's further long forms to choose
    from. `limit`: rows of a source; 0: all.
    """
    known = casi_parts(folder / "acronyms")[0] if "casi" in corpora else []
    casi = data.with_dictionary_forms(known, dictionary)
    texts = WrittenOut([], [])
    if "ade" in corpora:
        texts = rows_of_texts(read_texts(folder, held_out=False), dictionary)
    shown = data.written_rows(data.contexts_of(corpora), dictionary, data.spellings(dictionary, casi))
    sentences = data.validation_sentences(dictionary)

    def encoded(source: str, rows: Sequence[Row], with_logits: bool = True) -> EncodedRows:
        chosen = sample_rows(rows, 0, seed, limit) if limit else rows
        return encode_rows(network, source, chosen, with_logits)

    return Examples(
        encoded("casi", casi),
        encoded("ade", sample_rows(texts.used, ROWS_PER_LONG_FORM, seed), with_logits=False),
        encoded("ade", texts.defined),
        encoded(WRITTEN, shown, with_logits=False),
        encoded("sentences", sentences),
    )


def build_prototypes(
    parts: Sequence[EncodedRows],
    mixture: Mixture,
    counted: Mapping[str, Sequence[Row]],
    estimated: SenseFrequencies,
) -> Prototypes:
    """One of each long form in each source: the mean of its rows' unit vectors. `counted`: the rows of a
    source that show how often a long form is meant; one that they lack has 0.
    """
    uses, vectors = [], []
    for part in parts:
        unit = torch.nn.functional.normalize(part.near, dim=-1)
        members: dict[tuple[str, str], list[int]] = {}
        for i, row in enumerate(part.rows):
            members.setdefault(sense_of(row), []).append(i)
        counts = Counter(sense_of(row) for row in counted.get(part.source, ()))
        for sense, indices in sorted(members.items()):
            uses.append(PrototypeEntry(*sense, part.source, counts[sense]))
            vectors.append(unit[indices].mean(0))
    return Prototypes(uses, torch.stack(vectors) if vectors else torch.zeros(0, 1), mixture, estimated)


def with_dictionary_spellings(prototypes: Prototypes, dictionary: Mapping[str, Sequence[str]]) -> Prototypes:
    """Adds each prototype of a corpus under the dictionary's spelling of its long form where that is another
    one ("intraarterial", "intra-arterial").
    """
    uses, vectors = list(prototypes.entries), list(prototypes.vectors)
    for use, vector in zip(prototypes.entries, prototypes.vectors, strict=True):
        for form in dictionary.get(use.short_form, ()) if use.source != WRITTEN else ():
            if form != use.long_form and key(form) == key(use.long_form):
                uses.append(use._replace(long_form=form))
                vectors.append(vector)
    stacked = torch.stack(vectors) if vectors else prototypes.vectors
    return Prototypes(uses, stacked, prototypes.mixture, prototypes.frequencies)


def write_prototypes(prototypes: Prototypes, estimates: Estimates, folder: Path) -> None:
    """Writes the tables and the vectors, in 16 bits, of a release."""
    estimates.frequencies.write(folder / frequencies.TABLE)
    estimates.cue_words.write(folder / cues.TABLE)
    lines = ["\t".join(COLUMNS), *("\t".join(map(str, use)) for use in prototypes.entries)]
    (folder / TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_file({"vectors": prototypes.vectors.half().contiguous()}, folder / VECTORS)
