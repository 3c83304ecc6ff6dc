"""Tables 2 and 3 of Theodoropoulos et al. (2021), on the test part of a fold of the ADE corpus.

Table 2: the share of sentences to which, of their graph and eight with wrong words, their own is nearest, in
a space of CLGS that is trained here, and in the same before it is trained. Table 3: what a linear layer reads
from each encoder's words about relations; CLNER and CLDR are those of a release of that fold.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

from benchmarks.machine import described, write_whole
from models.encoder.weights import ADAPTER
from models.releases.store import bundled, open_release
from models.scores import F1
from training.common.corpora import GoldText
from training.common.precision import Precision, resolved
from training.evaluation.relation import split_texts
from training.relation.assemble import Encoders
from training.relation.clgs import GraphSpace
from training.relation.data import examples, read
from training.relation.linear_probe import probe
from training.relation.release import Trainer
from training.relation.settings import Settings, SupportSizes

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


def probed(encoders: Encoders, train: list[GoldText], test: list[GoldText]) -> F1:
    both = []
    for texts in (train, test):
        part = encoders.read([e for e in examples(texts, encoders.encoder) if len(e.tags)])
        both.append((part.examples, torch.from_numpy(np.concatenate(encoders.above(part)))))
    return probe(both[0], both[1])


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    result: Annotated[Path, typer.Option("--json", help="write the figures here")],
    release: Annotated[Path | None, typer.Option(help="of `--objective all`; the bundled one")] = None,
    run: Annotated[Path | None, typer.Option(help="folder in which a killed run of CLGS goes on")] = None,
    pair_epochs: Annotated[int, typer.Option(help="of CLGS")] = 3,
    limit: Annotated[int, typer.Option(help="sentences of each part at most; 0: all")] = 0,
    precision: Precision = "auto",
) -> None:
    opened = open_release(release or bundled("relation"))
    theirs = Settings(**opened.manifest.configuration["training"])
    settings = replace(theirs, pair_epochs=pair_epochs, limit=limit, precision=resolved(precision))
    corpus = read(data, settings.split, settings.seed, limit)
    _, test = split_texts(data / "ade", settings.split)
    test = test[: limit or None]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "clner").mkdir()
        (folder / "clgs").mkdir()
        shutil.copyfile(opened.file(ADAPTER), folder / "clner" / ADAPTER)
        plain, clner, cldr = (
            Encoders.load(settings, path, None) for path in (folder, folder / "clner", opened.path)
        )
        valid = examples(corpus.valid, plain.encoder)
        untrained = GraphSpace(settings, plain.encoder, valid, valid)
        found: dict[str, Any] = {"split": f"{settings.split}, test part", "sentences": len(test)}
        asked = examples(test, plain.encoder)
        found["similarity_check_untrained"] = untrained.similarity_check_of(asked, plain.encoder)
        trained = Trainer(settings, folder / "clgs", run).train("clgs", SupportSizes(), corpus)
        assert isinstance(trained.space, GraphSpace)
        found["similarity_check"] = trained.space.similarity_check_of(asked, plain.encoder)
        found["similarity_check_baseline"] = 1 / (1 + settings.hard)
        named = {"pretrained": plain, "CLNER": clner, "CLDR": cldr, "CLGS": trained.encoders}
        rows = {}
        for name, encoders in named.items():
            score = probed(encoders, list(corpus.train), test)
            rows[name] = {k: round(100 * v, 2) for k, v in score._asdict().items()}
            console.print(f"{name}: {rows[name]}", highlight=False)
    found = {k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}
    made = {"release": opened.version, "definitions": DEFINITIONS, "rows": rows | PUBLISHED}
    write_whole(result, found | described("relation_tables") | made)


if __name__ == "__main__":
    typer.run(main)
