"""Prototypes of a release, made of example sentences of known long forms: CASI's training rows, and sentences
of clinical abstracts in which a long form of the dictionary is written out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.acronym.m_network import MNetwork
from models.acronym.prototypes import COLUMNS, TABLE, VECTORS, Mixture, PrototypeEntry, Prototypes
from models.releases.manifest import Score
from training.acronym.data import read_training, read_written_out, sample_rows
from training.acronym.prototypes import (
    EncodedRows,
    RowScores,
    ablation_table,
    best_mixture,
    build_prototypes,
    cross_validated,
    encode_rows,
    folds,
    row_scores,
)
from training.common.checkpoint import Checkpoint
from training.evaluation.acronym import Row, choices, majority, scores

console = Console()
#: Rows of one long form that make a prototype, of the sentences that do not define the acronym.
ROWS_PER_LONG_FORM = 8
DEFINED = "sentences of held-out ADE corpus abstracts that define an ambiguous acronym, definition taken out"


class CachedOutputs:
    """Runs a network on rows and keeps the outputs in the folder of the run, where there is one."""

    def __init__(self, network: MNetwork, run: Path | None, settings: Mapping[str, Any]) -> None:
        """`settings`: of the training of the network."""
        self.network = network
        self.run = run
        self.settings = settings

    def __call__(self, name: str, source: str, rows: Sequence[Row], with_logits: bool = True) -> EncodedRows:
        """`name`: of the folder of these outputs. Raises CheckpointError where they are of other settings."""
        cache = Checkpoint(self.run / name if self.run else None, {**self.settings, "rows": len(rows)})
        outputs = cache.load()
        if outputs is None:
            encoded = encode_rows(self.network, source, rows, with_logits)
            cache.save({"logits": encoded.logits, "near": encoded.near})
            return encoded
        return EncodedRows(source, list(rows), outputs["logits"], outputs["near"])


def release_prototypes(
    outputs: CachedOutputs, data: Path, dictionary: Mapping[str, Sequence[str]], seed: int
) -> Prototypes:
    """Prototypes of both sources, with the mixture that is best on rows that are in no prototype."""
    started = time.monotonic()
    casi = outputs("casi", "casi", read_training(data, "casi"))
    written = read_written_out(data, dictionary, held_out=False)
    used = outputs("used", "ade", sample_rows(written.used, ROWS_PER_LONG_FORM, seed), with_logits=False)
    defined = outputs("defined", "ade", written.defined)
    scored = {"casi": cross_validated(casi, seed), "ade": scored_definitions(used, defined, seed)}
    mixture = best_mixture(list(scored.values()))
    console.print(ablation_table(scored, mixture))
    console.print(f"{mixture}, {time.monotonic() - started:.0f} s", highlight=False)
    prototypes = build_prototypes([casi, used], mixture, {"casi": casi.rows, "ade": defined.rows})
    return with_dictionary_spellings(prototypes, dictionary)


def write_prototypes(prototypes: Prototypes, folder: Path) -> None:
    """Writes the table and the vectors, in 16 bits, of a release."""
    lines = ["\t".join(COLUMNS), *("\t".join(map(str, use)) for use in prototypes.entries)]
    (folder / TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_file({"vectors": prototypes.vectors.half().contiguous()}, folder / VECTORS)


def scored_definitions(used: EncodedRows, defined: EncodedRows, seed: int) -> list[RowScores]:
    """Each definition scored by the prototypes of `used`, with the sense priors of the other folds of
    definitions.
    """
    scored = []
    for held in folds(defined.rows, seed):
        inside = set(held)
        counted = [row for i, row in enumerate(defined.rows) if i not in inside]
        prototypes = build_prototypes([used], Mixture(unseen=float("nan")), {"ade": counted})
        scored += [row_scores(prototypes, defined.rows[i], defined.logits[i], defined.near[i]) for i in held]
    return scored


def with_dictionary_spellings(prototypes: Prototypes, dictionary: Mapping[str, Sequence[str]]) -> Prototypes:
    """Adds each prototype under the dictionary's spelling of its long form where that is another one
    ("intraarterial", "intra-arterial").
    """
    uses, vectors = list(prototypes.entries), list(prototypes.vectors)
    for use, vector in zip(prototypes.entries, prototypes.vectors, strict=True):
        for form in dictionary.get(use.short_form, ()):
            if form != use.long_form and _letters(form) == _letters(use.long_form):
                uses.append(PrototypeEntry(use.short_form, form, use.source, use.rows))
                vectors.append(vector)
    return Prototypes(uses, torch.stack(vectors) if vectors else prototypes.vectors, prototypes.mixture)


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


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
