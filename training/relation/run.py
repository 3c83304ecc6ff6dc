"""Trains the spaces of CLNER, CLDR and CLGS (Theodoropoulos et al. 2021) and writes a relation release: one
encoder in two halves, and training words and pairs as the support of nearest neighbours.

`clner`: the space of entities, Eq. 6. `cldr`: the space of relations, Eq. 5; `clgs`: the same from whole
graphs, Eq. 4. `all`: `clner`, then `cldr` on top of it, which is what the relation stage uses. What is not
trained is the encoder that training began with. The paper trains two encoders from the same start; here the
second starts from the first and shares its lower half, so that a sentence passes that half once.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer
from rich.console import Console
from safetensors.torch import save_file

from models.encoder.model import ADAPTER, Encoder, base_digest
from models.relation.model import RelationModel
from models.relation.neighbours import Vote
from models.relation.spaces import UPPER_ADAPTER
from models.releases.manifest import Release, TrainingData
from training.common.precision import HELP, Precision, resolved
from training.common.publish import OFFERED, offer, print_scores, publish_release
from training.evaluation.evaluate import manifest_scores
from training.relation.assemble import Encoders, Entities, assemble, find_entities, write_above
from training.relation.cldr import PairSpace, UpperSpace
from training.relation.clgs import GraphSpace
from training.relation.clner import EntitySpace
from training.relation.data import Corpus, examples, read
from training.relation.settings import Settings, fit
from training.relation.support_set import Sizes

console = Console()
Objective = Literal["cldr", "clgs", "clner", "all"]
CANARY = [
    "Intravenous azithromycin - induced ototoxicity .",
    "Two patients developed agranulocytosis after clozapine; neither had taken aspirin.",
    "No adverse events were seen.",
]


class Trained(NamedTuple):
    encoders: Encoders
    """as their adapters make them"""
    entities: Entities
    space: UpperSpace | None
    """of CLDR or CLGS, where one was trained"""


def train(
    objective: Objective, settings: Settings, sizes: Sizes, corpus: Corpus, folder: Path, run: Path | None
) -> Trained:
    """Trains what the objective names and writes its adapters into `folder`."""
    console.print(f"{len(corpus.train)} training sentences, {len(corpus.valid)} for validation")
    dense = None
    if objective in ("clner", "all"):
        space = EntitySpace(settings, corpus)
        fit(space, "clner", settings.epochs, settings, run)
        save_file(space.adapter(), folder / ADAPTER)
        dense = space.dense.weight.detach().T.contiguous()
        space.encoder = Encoder.load(settings.base, adapter=folder / ADAPTER)
        scores = ", ".join(f"{k} {v:.4f}" for k, v in space.validate().items())
        console.print(f"as an adapter of rank {settings.rank}: {scores}", highlight=False)
    first = Encoders.load(settings, folder, dense)
    entities = find_entities(first, corpus, settings, sizes)
    if objective == "clner":
        return Trained(first, entities, None)
    sentences = examples(corpus.train, first.encoder) + entities.alarms
    above: UpperSpace
    if objective == "clgs":
        above = GraphSpace(settings, first.encoder, sentences, examples(corpus.valid, first.encoder))
    else:
        above = PairSpace(settings, first.encoder, sentences, entities.valid)
    fit(above, "clgs" if objective == "clgs" else "cldr", settings.pair_epochs, settings, run)
    write_above(settings, above.upper, folder)
    return Trained(Encoders.load(settings, folder, dense), entities, above)


def published(
    settings: Settings,
    sizes: Sizes,
    model: RelationModel,
    folder: Path,
    objective: str,
    data: Path,
    root: Path,
) -> Release:
    kinds = {
        "all": "entities by CLNER, relations by CLDR over them",
        "clner": "entities and relations in CLNER's space",
        "cldr": "relations by CLDR, entities in the plain encoder's space",
        "clgs": "relations by CLGS, entities in the plain encoder's space",
    }
    name = settings.split.removeprefix("ade_").replace("_", " ")
    upper = {"below": settings.lower(model.spaces.encoder.model)} if (folder / UPPER_ADAPTER).exists() else {}
    return publish_release(
        folder,
        task="relation",
        kind="nearest training words and pairs: " + kinds[objective],
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration=upper
        | {
            "max_pieces": model.spaces.encoder.max_pieces,
            "k_words": model.voting.k_words,
            "k_pairs": model.voting.k_pairs,
            "vote": model.voting.vote,
            "training": asdict(settings),
            "support": asdict(sizes),
        },
        training_data=[
            TrainingData(
                name=f"ADE corpus v2 (Gurulingappa et al. 2012), {name} training part",
                licence="none stated, citation asked",
            ),
            TrainingData(
                name="ADE corpus v2, sentences without an adverse event, of four fifths of the abstracts",
                licence="none stated, citation asked",
            ),
        ],
        canary=CANARY,
        scores=lambda m: manifest_scores("relation", m, data, (settings.split,)),
        root=root,
    )


def make(
    objective: Objective, settings: Settings, sizes: Sizes, data: Path, root: Path, run: Path | None = None
) -> Release:
    """Trains, and publishes under `root`."""
    corpus = read(data, settings.split, settings.seed, settings.limit)
    folder = Path(tempfile.mkdtemp(prefix="relation-"))
    encoders, entities, _ = train(objective, settings, sizes, corpus, folder, run)
    model = assemble(encoders, corpus, entities, settings, sizes, folder)
    release = published(settings, sizes, model, folder, objective, data, root)
    shutil.rmtree(folder)
    print_scores(console, release)
    return release


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    objective: Annotated[Objective, typer.Option(help="what is trained")] = "all",
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    run: Annotated[Path | None, typer.Option(help="folder in which a killed run goes on")] = None,
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    split: Annotated[str, typer.Option(help="ade_fold_1 to _10, or ade_group_1 to _10")] = "ade_fold_1",
    epochs: Annotated[int, typer.Option(help="of CLNER at most")] = 8,
    patience: Annotated[int, typer.Option(help="epochs without a better validation")] = 3,
    lr: Annotated[float, typer.Option(help="of CLNER; 1e-5 in the paper, for a larger encoder")] = 3e-4,
    batch: Annotated[int, typer.Option(help="of CLNER, sentences with an event; 16 in the paper")] = 32,
    width: Annotated[int, typer.Option(help="of the dense layer")] = 128,
    samples: Annotated[int, typer.Option(help="for each word of a batch")] = 80,
    temperature: float = 0.1,
    negatives: Annotated[int, typer.Option(help="sentences without an event in each epoch; paper: 0")] = 1500,
    ignore_drugs: Annotated[bool, typer.Option(help="their drugs are not learnt as words of none")] = True,
    cross_entropy: Annotated[float, typer.Option(help="weight beside the contrast; paper: 0")] = 1.0,
    contrast: Annotated[float, typer.Option(help="weight of Eq. 6")] = 1.0,
    vote: Annotated[Vote, typer.Option(help="majority as in the paper, or weighted")] = "majority",
    rank: Annotated[int, typer.Option(help="of the adapter that is stored")] = 96,
    below: Annotated[int, typer.Option(help="frozen layers of CLDR and CLGS; 0: half")] = 0,
    pair_rank: int = 64,
    pair_lr: Annotated[float, typer.Option(help="of CLDR and CLGS; 1e-5 in the paper")] = 2e-4,
    pair_batch: int = 8,
    pair_epochs: int = 3,
    hard: Annotated[int, typer.Option(help="negative graphs of each positive one")] = 8,
    pair_contrast: Annotated[float, typer.Option(help="related against unrelated pairs; paper: 0")] = 1.0,
    self_loop: Annotated[float, typer.Option(help="lambda of the two-node graph")] = 0.8,
    paired: Annotated[bool, typer.Option(help="published code: text_z against graph_z, not Eq. 5")] = False,
    text_relu: Annotated[bool, typer.Option(help="published code: ReLU on the text side too")] = False,
    inside: Annotated[bool, typer.Option(help="published code: negatives from the same phrase")] = False,
    dimension: Annotated[int, typer.Option(help="of the stored words")] = Sizes().dimension,
    pair_dimension: Annotated[
        int, typer.Option(help="of each word of a stored pair")
    ] = Sizes().pair_dimension,
    words: Annotated[int, typer.Option(help="in the support")] = Sizes().words,
    seed: int = 42,
    limit: Annotated[int, typer.Option(help="sentences of each part at most; 0: all")] = 0,
    precision: Annotated[Precision, typer.Option(help=HELP)] = "auto",
    offered: OFFERED = False,
) -> None:
    settings = Settings(
        *(base, split, seed, limit, resolved(precision), epochs, patience, rank, lr, batch, width, samples),
        *(temperature, negatives, ignore_drugs, cross_entropy, contrast, vote, below, pair_rank, pair_lr),
        *(pair_batch, pair_epochs, hard, pair_contrast, self_loop, paired, text_relu, inside),
    )
    sizes = Sizes(dimension=dimension, pair_dimension=pair_dimension, words=words)
    release = make(objective, settings, sizes, data, output, run)
    if offered:
        offer(release, data)
