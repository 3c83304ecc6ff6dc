"""The uses of known long forms that a release brings along: CASI's training rows, and sentences of clinical
abstracts in which a long form of the dictionary is written out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.acronym import prototypes as stored
from models.acronym.m_network import MNetwork
from models.acronym.prototypes import Mixture, PrototypeEntry, Prototypes
from models.releases.manifest import Score
from training.acronym.data import at_most, read_training, read_written
from training.acronym.prototypes import (
    Known,
    Validated,
    best_mixture,
    folds,
    look,
    parts,
    prototypes,
    table,
    validate,
)
from training.common.checkpoint import Checkpoint
from training.evaluation.acronym import Row, choices, majority, scores

console = Console()
#: Rows of one long form that make a prototype, of those that only use it.
USED = 8
DEFINED = "sentences of held-out ADE corpus abstracts that define an ambiguous acronym, definition taken out"


class Uses(NamedTuple):
    made: Prototypes

    def write(self, folder: Path) -> None:
        """Vectors in 16 bits; a use without rows counts nothing but has a place."""
        lines = ["\t".join(stored.COLUMNS), *("\t".join(map(str, use)) for use in self.made.entries)]
        (folder / stored.TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        save_file({"vectors": self.made.vectors.half().contiguous()}, folder / stored.VECTORS)


class Looks:
    """Asks a network about rows; what it said stays in the folder of the run, if there is one."""

    def __init__(self, network: MNetwork, run: Path | None, settings: Mapping[str, Any]) -> None:
        self.network = network
        self.run = run
        self.settings = settings

    def __call__(self, name: str, source: str, rows: Sequence[Row], with_network: bool = True) -> Known:
        kept = Checkpoint(self.run / name if self.run else None, {**self.settings, "rows": len(rows)})
        stored = kept.load()
        if stored is None:
            found = look(self.network, source, rows, with_network)
            kept.save({"network": found.network, "near": found.near})
            return found
        return Known(source, list(rows), stored["network"], stored["near"])


def find_uses(looks: Looks, data: Path, dictionary: Mapping[str, Sequence[str]], seed: int) -> Uses:
    """Prototypes of both sources, with the weights that do best on rows they were not made of."""
    started = time.monotonic()
    casi = looks("casi", "casi", read_training(data, "casi"))
    written = read_written(data, dictionary, held_out=False)
    used = looks("used", "ade", at_most(written.used, USED, seed), with_network=False)
    defined = looks("defined", "ade", written.defined)
    found = {
        "casi": validate(casi, seed),
        "ade": validate_defined(used, defined, seed),
    }
    mixture = best_mixture(list(found.values()))
    console.print(table(found, mixture))
    console.print(f"{mixture}, {time.monotonic() - started:.0f} s", highlight=False)
    made = prototypes([casi, used], mixture, {"casi": casi.rows, "ade": defined.rows})
    return Uses(with_aliases(made, dictionary))


def validate_defined(used: Known, defined: Known, seed: int) -> list[Validated]:
    """Each definition by the prototypes of mere uses, and the frequencies of the other folds."""
    out = []
    for held in folds(defined.rows, seed):
        inside = set(held)
        counted = [row for i, row in enumerate(defined.rows) if i not in inside]
        made = prototypes([used], Mixture(unseen=float("nan")), {"ade": counted})
        out += [parts(made, defined.rows[i], defined.network[i], defined.near[i]) for i in held]
    return out


def with_aliases(made: Prototypes, dictionary: Mapping[str, Sequence[str]]) -> Prototypes:
    """Adds each prototype under the dictionary's spelling of its long form where that is another
    ("intraarterial", "intra-arterial").
    """
    uses, vectors = list(made.entries), list(made.vectors)
    for use, vector in zip(made.entries, made.vectors, strict=True):
        for form in dictionary.get(use.short_form, ()):
            if form != use.long_form and _letters(form) == _letters(use.long_form):
                uses.append(PrototypeEntry(use.short_form, form, use.source, use.rows))
                vectors.append(vector)
    return Prototypes(uses, torch.stack(vectors) if vectors else made.vectors, made.mixture)


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


def held_out_score(model: Any, data: Path, dictionary: Mapping[str, Sequence[str]]) -> Score:
    """Accuracy where the text itself says what is right, in abstracts that nothing was learned from."""
    rows: list[Row] = read_written(data, dictionary, held_out=True).defined
    commonest = majority(read_written(data, dictionary, held_out=False).defined)
    plain = [commonest.get(row.short_form, row.senses[0]) for row in rows]
    return Score(
        name="accuracy_defined",
        value=round(scores(rows, choices(model, rows))["accuracy"], 4),
        definition="share of rows whose defined long form scores highest of the dictionary's",
        data=DEFINED,
        records=len(rows),
        baseline=round(scores(rows, plain)["accuracy"], 4),
        baseline_definition="what other abstracts define most often, else the dictionary's first",
    )
