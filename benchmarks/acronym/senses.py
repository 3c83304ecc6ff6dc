"""How often is a sense of CASI found that training has in no corpus, with none to two written sentences?

A seeded fifth of the senses that the teaching corpus covers is held out at a time: its rows are in no
prototype, no count and no choice of weights. All rows of all covered senses, written ones too, are left out
of the training of the network, so that one network serves every part and every number of sentences. Weights
are chosen anew for each part, on the other senses.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer

from benchmarks.machine import print_and_write, provenance
from models.acronym.m_network import MNetwork
from models.acronym.model import CLINICAL, load_dictionary
from training.acronym.assemble import write_network
from training.acronym.data import read_training, split_by_acronym
from training.acronym.prototypes import (
    EncodedRows,
    Estimates,
    RowScores,
    best_long_forms,
    best_mixture,
    encode_rows,
    scored_by,
    sense_of,
)
from training.acronym.settings import Settings
from training.acronym.trainer import AcronymTrainee
from training.acronym.usage_examples import CachedOutputs, UsageExamples, usage_examples, validation_scores
from training.acronym.written import extended_dictionary, sense_parts, with_dictionary_forms
from training.common.long_forms import key
from training.common.loop import TrainingLoop
from training.common.program_help import run_program
from training.evaluation.acronym import Row, casi_parts
from training.teaching.readers import acronym_contexts

Sense = tuple[str, str]
#: Which of the written sentences of a sense are used: a note's comes first, then one in an abstract's style.
SENTENCES = {"none": (), "note": (0,), "abstract": (1,), "both": (0, 1)}
SHIPPED = Settings(
    corpora="written,ade,phrases", validated="casi,ade_defined", distance=False, rows=2,
    lr=5e-4, epochs=2, max_pieces=96, validate=1500, precision="bfloat16",
)  # fmt: skip
SHARE = 0.5
DRAWS, SEED = 1000, 0


class Found(NamedTuple):
    """Whether each row of a held-out sense, and each held-out row of another sense, is right."""

    sense: list[Sense]
    n_own: list[int]
    """long forms that CASI gives the short form"""
    right: list[bool]
    in_dictionary: list[bool]
    """the same with the dictionary's further long forms to choose from"""
    seen_right: list[bool]


def rows_without(data: Path, settings: Settings, covered: Set[Sense]) -> tuple[list[Row], list[list[Row]]]:
    """The rows for training and validation without those of these senses' long forms, also under another
    short form.
    """
    hidden = {key(form) for _, form in covered}
    corpora, validated = (
        [[r for r in read_training(data, name) if key(r.gold) not in hidden] for name in names]
        for names in (settings.corpus_names, settings.validated_names)
    )
    return split_by_acronym(corpora, settings.held_out, settings.seed, validated)


def network_without(data: Path, settings: Settings, covered: Set[Sense], run: Path | None = None) -> MNetwork:
    """The network of a release, trained and validated on no row of these senses."""
    trainee = AcronymTrainee(settings, *rows_without(data, settings, covered))
    TrainingLoop(trainee, asdict(settings), run).run()
    with tempfile.TemporaryDirectory(prefix="acronym-") as folder:
        return write_network(trainee, Path(folder), SHARE)


def some_sentences(written: EncodedRows, chosen: Sequence[int]) -> EncodedRows:
    """The sentences of each sense whose place among them is one of `chosen`."""
    seen: Counter[Sense] = Counter()
    kept = []
    for i, row in enumerate(written.rows):
        if seen[sense_of(row)] in chosen:
            kept.append(i)
        seen[sense_of(row)] += 1
    return written.part(kept)


def narrowed(rows: EncodedRows, senses: Mapping[str, tuple[str, ...]]) -> EncodedRows:
    """The rows with only the data set's own long forms, which `with_dictionary_forms` puts first."""
    own = [row._replace(senses=senses[sense_of(row)[0]]) for row in rows.rows]
    logits = [x[: len(row.senses)] for row, x in zip(own, rows.logits, strict=True)]
    return rows._replace(rows=own, logits=logits)


def correct(scored: Sequence[RowScores], mixture: Any) -> list[bool]:
    return [b == s.row.gold for b, s in zip(best_long_forms(scored, mixture), scored, strict=True)]


def joined(one: EncodedRows, other: EncodedRows) -> EncodedRows:
    return EncodedRows(
        one.source, one.rows + other.rows, one.logits + other.logits, torch.cat([one.near, other.near])
    )


def measured(
    examples: UsageExamples,
    held_out: EncodedRows,
    part: Set[Sense],
    covered: Set[Sense],
    own: Mapping[str, Any],
) -> Found:
    """One part held out. `held_out`: the rows of CASI that no release is trained on; `own`: CASI's long forms
    of each short form.
    """
    rest = examples.without(part)
    mixture = best_mixture(validation_scores(rest, SEED, covered - part))
    sources, usage = [rest.casi, rest.used, rest.written], rest.usage
    every = joined(examples.casi, held_out)
    asked = every.part([i for i, row in enumerate(every.rows) if sense_of(row) in part])
    seen = held_out.without(part)
    return Found(
        [sense_of(row) for row in asked.rows],
        [len(own[sense_of(row)[0]]) for row in asked.rows],
        correct(scored_by(sources, narrowed(asked, own), usage), mixture),
        correct(scored_by(sources, asked, usage), mixture),
        correct(scored_by(sources, narrowed(seen, own), usage), mixture),
    )


def figures(found: Sequence[Found]) -> dict[str, Any]:
    """The scores over all parts; the interval is a bootstrap over senses, whose rows are similar."""
    right: dict[Sense, list[bool]] = {}
    for part in found:
        for sense, value in zip(part.sense, part.right, strict=True):
            right.setdefault(sense, []).append(value)
    groups, rng = list(right.values()), np.random.default_rng(SEED)
    draws = [[groups[i] for i in rng.integers(0, len(groups), len(groups))] for _ in range(DRAWS)]
    low, high = np.quantile([mean([v for group in draw for v in group]) for draw in draws], (0.025, 0.975))
    return {
        "accuracy": mean([v for p in found for v in p.right]),
        "95 % interval": f"{low:.3f} to {high:.3f}",
        "mean over senses": mean([mean(group) for group in groups]),
        "accuracy in the dictionary": mean([v for p in found for v in p.in_dictionary]),
        "accuracy of the other senses' held-out rows": mean([v for p in found for v in p.seen_right]),
    }


def mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


def main(
    data: Annotated[Path, typer.Option(help="folder with acronyms/ and ade/")],
    parts: Annotated[int, typer.Option(help="number of parts that are run, of five")] = 5,
    run: Annotated[
        Path | None, typer.Option(help="folder of checkpoints; a stopped training resumes")
    ] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    torch.set_num_threads(1)
    contexts = acronym_contexts("train")
    dictionary = extended_dictionary(load_dictionary(CLINICAL), contexts)
    training, rest = casi_parts(data / "acronyms")
    rows = training + rest
    known = {(c.short_form, key(c.long_form)) for c in contexts}
    every = {sense_of(row) for row in rows}
    covered = {(short, form) for short, form in every if (short, key(form)) in known}
    network = network_without(data, SHIPPED, covered, run)
    estimated = Estimates.clinical()
    examples = usage_examples(CachedOutputs(network, None, {}), data, dictionary, contexts, estimated, SEED)
    held_out = encode_rows(network, "casi", with_dictionary_forms(rest, dictionary))
    own = {sense_of(row)[0]: row.senses for row in rows}
    found: dict[str, list[Found]] = {name: [] for name in SENTENCES}
    for part in sense_parts(covered, SEED)[:parts]:
        for name, chosen in SENTENCES.items():
            some = examples._replace(written=some_sentences(examples.written, chosen))
            found[name].append(measured(some, held_out, part, covered, own))
    asked = [(sense, n) for part in found["both"] for sense, n in zip(part.sense, part.n_own, strict=True)]
    commonest = {s: Counter(r.gold for r in rows if sense_of(r)[0] == s).most_common(1)[0][0] for s in own}
    content = {
        "senses of CASI": len(every),
        "senses with written sentences": len(covered),
        "held-out senses": len({sense for sense, _ in asked}),
        "rows of held-out senses": len(asked),
        "random long form": mean([1 / n for _, n in asked]),
        "commonest sense of the short form, its own rows counted": mean(
            [commonest[short] == form for (short, form), _ in asked]
        ),
        "rows": {name: figures(parts_found) for name, parts_found in found.items()},
    }
    print_and_write(content | provenance("acronym.senses"), result)


if __name__ == "__main__":
    run_program(main)
