"""Tables 2 and 3 of Theodoropoulos et al. (2021), on the test part of a fold of the ADE corpus.

Table 2: the share of sentences whose own graph is nearest to them among it and eight graphs with wrong words,
in a CLGS space before and after its training here. Table 3: how well a linear layer predicts relations from
the word vectors of each encoder; CLNER and CLDR are those of a release of that fold.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

from benchmarks.machine import provenance, write_atomically
from models.encoder.weights import ADAPTER
from models.releases.manifest import Release
from models.releases.store import bundled, open_release
from models.scores import F1
from training.common.corpora import GoldText
from training.common.precision import PrecisionOption, resolved
from training.common.program_help import run_program
from training.evaluation.relation import split_texts
from training.relation.assemble import Encoders
from training.relation.data import examples, read
from training.relation.linear_probe import probe
from training.relation.release import Trainer
from training.relation.settings import Settings, SupportSizes
from training.relation.spaces.clgs import GraphSpace

console = Console()
DEFINITIONS = {
    "similarity_check": "share of test sentences nearest, by cosine, to their own graph of 1 + `hard` graphs",
    "similarity_check_baseline": "chance",
    "rows": "per cent of the related among all ordered pairs of words, by a linear layer over two words that "
    "is trained on the training part; the encoder is not trained with it",
}
#: Table 3 of the paper, with CharacterBERT (110 M parameters, medical texts).
PUBLISHED = {
    "pretrained, paper": {"precision": 69.96, "recall": 64.39, "f1": 66.79},
    "CLDR, paper": {"precision": 79.51, "recall": 84.39, "f1": 81.73},
    "CLGS, paper": {"precision": 56.82, "recall": 59.42, "f1": 58.09},
}


def probe_score(encoders: Encoders, train: list[GoldText], test: list[GoldText]) -> F1:
    """Score on `test` of a linear layer that is trained on the word vectors of `train`."""
    both = []
    for texts in (train, test):
        part = encoders.read([e for e in examples(texts, encoders.encoder) if len(e.tags)])
        both.append((part.examples, torch.from_numpy(np.concatenate(encoders.above(part)))))
    return probe(both[0], both[1])


def probe_rows(
    all_encoders: Mapping[str, Encoders], train: list[GoldText], test: list[GoldText]
) -> dict[str, dict[str, float]]:
    """Table 3: precision, recall and F1 of each encoder, in per cent."""
    rows = {}
    for name, encoders in all_encoders.items():
        score = probe_score(encoders, train, test)
        rows[name] = {k: round(100 * v, 2) for k, v in score._asdict().items()}
        console.print(f"{name}: {rows[name]}", highlight=False)
    return rows


def load_encoders(release: Release, settings: Settings, folder: Path) -> dict[str, Encoders]:
    """The base model, the release's encoder with only the adapter of CLNER, and its whole encoder (CLDR)."""
    clner = folder / "clner"
    clner.mkdir()
    shutil.copyfile(release.file(ADAPTER), clner / ADAPTER)
    paths = {"pretrained": folder, "CLNER": clner, "CLDR": release.path}
    return {name: Encoders.load(settings, path, None) for name, path in paths.items()}


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    result: Annotated[Path, typer.Option("--json", help="write the figures here")],
    release: Annotated[
        Path | None, typer.Option(help="release trained with `--objective all`; by default the bundled one")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="folder of checkpoints, from which a killed training of CLGS resumes")
    ] = None,
    pair_epochs: Annotated[int, typer.Option(help="epochs of CLGS")] = 3,
    limit: Annotated[int, typer.Option(help="maximum number of sentences of each part; 0: all")] = 0,
    precision: PrecisionOption = "auto",
) -> None:
    opened = open_release(release or bundled("relation"))
    trained_with = Settings(**opened.manifest.configuration["training"])
    settings = replace(
        trained_with, start="", pair_epochs=pair_epochs, limit=limit, precision=resolved(precision)
    )
    corpus = read(data, settings.split, settings.seed, limit)
    _, test = split_texts(data / "ade", settings.split)
    test = test[: limit or None]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "clgs").mkdir()
        all_encoders = load_encoders(opened, settings, folder)
        plain = all_encoders["pretrained"]
        valid = examples(corpus.valid, plain.encoder)
        untrained = GraphSpace(settings, plain.encoder, valid, valid)
        figures: dict[str, Any] = {"split": f"{settings.split}, test part", "sentences": len(test)}
        test_examples = examples(test, plain.encoder)
        figures["similarity_check_untrained"] = untrained.similarity_check_of(test_examples, plain.encoder)
        trained = Trainer(settings, folder / "clgs", run).train("clgs", SupportSizes(), corpus)
        assert isinstance(trained.space, GraphSpace)
        figures["similarity_check"] = trained.space.similarity_check_of(test_examples, plain.encoder)
        figures["similarity_check_baseline"] = 1 / (1 + settings.hard)
        rows = probe_rows(all_encoders | {"CLGS": trained.encoders}, list(corpus.train), test)
    figures = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
    tables = {"release": opened.version, "definitions": DEFINITIONS, "rows": rows | PUBLISHED}
    write_atomically(result, figures | provenance("relation.tables") | tables)


if __name__ == "__main__":
    run_program(main)
