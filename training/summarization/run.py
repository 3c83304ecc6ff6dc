"""Trains entity-driven contrastive summarization (ECL, Lu et al. 2024) and writes a release.

First stage: long questions and their short forms from the entailed pairs of RQE and MEDIQA, most of them told
in messages of PsyTAR's sentences (`--told`), and sentences with gaps. Second: MeQSum, with the contrastive
losses, and some pairs of the first stage (`--replay`). `--backbone` is an encoder (`mini`), which gets a
small decoder with copying, or an encoder-decoder of the hub (facebook/bart-large), which is taken as it is.
`--extractive` makes the release that only picks sentences; nothing is trained for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.console import Console

from models import drugs
from models.encoder.weights import MINI, resolve_base
from models.ner.model import NerModel
from models.releases.store import open_release
from models.summarization import medical_entities
from models.summarization.beam_search import Search
from models.summarization.medical_entities import Recogniser
from models.tables import read_tsv
from training.common.precision import HELP, Precision, resolved
from training.common.publish import OFFERED, offer, print_scores
from training.evaluation.summarization import bundled_tagger, summary_counts
from training.summarization.assemble import Choose, best_search, forms_of, publish, publish_extractive
from training.summarization.data import Corpora, Pair, read
from training.summarization.messages import fillers
from training.summarization.negatives import EntityDictionary, shared_entities
from training.summarization.network import HubNetwork, Network, PointerNetwork
from training.summarization.trainer import Epoch, Settings, Stage, Task, Trainer

console = Console()
#: Of a question, the pieces that open and close it included.
MAX_PIECES = 256


def is_encoder_decoder(backbone: str) -> bool:
    from transformers import AutoConfig  # noqa: PLC0415  seconds to import

    return bool(AutoConfig.from_pretrained(resolve_base(backbone)).is_encoder_decoder)


class Sizes(NamedTuple):
    """Of the `mini` architecture."""

    layers: int = 3
    rank: int = 32
    trained_layers: int = 3


def network_of(backbone: str, corpora: Corpora, sizes: Sizes, seed: int) -> tuple[Network, dict[str, Any]]:
    """An untrained network, the same for the same seed, and what it was made with."""
    torch.manual_seed(seed)
    if is_encoder_decoder(backbone):
        return HubNetwork(backbone, max_pieces=MAX_PIECES), {"backbone": backbone}
    made = sizes._asdict()
    targets = [p.summary for p in (*corpora.pretraining, *corpora.training)]
    network = PointerNetwork(backbone, **made, targets=targets, max_pieces=MAX_PIECES)
    return network, {"backbone": backbone} | made


def task_of(
    corpora: Corpora, recogniser: Recogniser, trained: bool = True, sentences: Sequence[str] = ()
) -> Task:
    """The entities of all summaries, the dictionary D of MeQSum's, names to ask about instead, and
    `sentences` of patients; what the first stage asks about is not looked for where nothing is trained.
    """
    pairs = [*(corpora.pretraining if trained else []), *corpora.training]
    asked = [p for p in pairs if not p.id.startswith("denoise-")]
    found = dict(zip((p.id for p in asked), recogniser.entities([p.summary for p in asked]), strict=True))
    dictionary = EntityDictionary(e.text for p in corpora.training for e in found[p.id])
    every = [e for entities in found.values() for e in entities]
    names = {
        True: sorted(
            {e.text for e in every if e.drug} | {row[0] for row in read_tsv(drugs.BUNDLED, ("name",))}
        ),
        False: sorted({e.text for e in every if not e.drug}),
    }
    stages = {"pairs": corpora.pretraining, "meqsum": corpora.training}
    return Task(stages, found, dictionary, shared_entities(asked, found), names, sentences)


def report(corpora: Corpora, recogniser: Recogniser, task: Task) -> None:
    """Prints what was removed, and how many summaries have an entity (the focus identification rate)."""
    for name in ("meqsum", "rqe"):
        console.print(f"{name}: {corpora.report[name]}", highlight=False)
    first, then, valid = (len(p) for p in (corpora.pretraining, corpora.training, corpora.validation))
    share = sum(bool(task.entities[p.id]) for p in corpora.training) / max(1, then)
    console.print(
        f"{first} pairs first, {then} of MeQSum, {valid} for validation; focus identification rate "
        f"{share:.3f} by {recogniser.name}, {len(task.dictionary)} entities",
        highlight=False,
        soft_wrap=True,
    )


def line(epoch: Epoch) -> str:
    losses = ", ".join(f"{name} {value:.4f}" for name, value in epoch.losses.items())
    score = "" if epoch.score is None else f"  validation ROUGE-1, greedy: {epoch.score:.2f}"
    kept = "  kept" if epoch.kept else ""
    return f"epoch {epoch.number:2d} {epoch.stage}  {losses}{score}  {epoch.seconds:.0f} s{kept}"


def rouge1(network: Network, pairs: Sequence[Pair], search: Search) -> float:
    found = network.writer(search).write([p.question for p in pairs])
    return float(summary_counts([f[0].text for f in found], [p.summary for p in pairs])[:, 0].mean())


def train(
    network: Network, settings: Settings, corpora: Corpora, task: Task, run: Path | None, start: Path | None
) -> dict[str, Any]:
    """A whole run with its curve printed; the network ends with the kept weights, or with those that it
    started from. Gives the settings of both.
    """
    trainer = Trainer(network, settings, task, run)
    if start is not None:
        trainer.start_as(start)
    greedy = Search(beams=1)
    validate = (lambda: rouge1(network, corpora.validation, greedy)) if corpora.validation else None
    for epoch in trainer.fit(validate):
        console.print(line(epoch), highlight=False, soft_wrap=True)
    if trainer.best:
        trainer.keep_best()
    return {"training": asdict(settings)} | ({"start": trainer.start} if trainer.start else {})


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with questions/, ade/ and psytar/; stanza/ is used if there")
    ] = None,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    backbone: Annotated[
        str, typer.Option("--backbone", "--base", help="`mini`, a hub name or a path")
    ] = MINI,
    extractive: Annotated[bool, typer.Option(help="make the release that only picks sentences")] = False,
    tagger: Annotated[Path | None, typer.Option(help="NER release of the guard; the bundled one")] = None,
    layers: Annotated[int, typer.Option(help="of the pointer decoder")] = Sizes().layers,
    rank: Annotated[
        int, typer.Option(help="of the encoder's adapter; 0: its layers are trained")
    ] = Sizes().rank,
    trained_layers: Annotated[
        int, typer.Option(help="of the encoder, the last ones")
    ] = Sizes().trained_layers,
    denoise: Annotated[int, typer.Option(help="sentences with gaps in the first stage")] = 0,
    pretraining: Annotated[int, typer.Option(help="epochs of the first stage")] = 10,
    epochs: Annotated[int, typer.Option(help="of MeQSum")] = 6,
    pretraining_lr: float = 4e-4,
    lr: Annotated[float, typer.Option(help="1e-5 in the paper, for BART-large")] = 2e-4,
    batch: int = 16,
    smoothing: Annotated[float, typer.Option(help="lambda of Eq. 3")] = 0.1,
    simple: Annotated[float, typer.Option(help="weight of Eq. 5, 1 in the paper; 0: ECL-s")] = 0.3,
    hard: Annotated[float, typer.Option(help="weight of Eq. 6, 1 in the paper; 0: ECL-h")] = 0.3,
    negatives: Annotated[int, typer.Option(help="hard ones of a question; 128 in the paper")] = 8,
    queue: int = 4096,
    temperature: float = 0.07,
    momentum: float = 0.999,
    positive: Annotated[
        bool, typer.Option(help="the right summary in the denominator, as MoCo; Eq. 5 and 6 leave it out")
    ] = True,
    swap: Annotated[float, typer.Option(help="share of pairs asked about other entities")] = 0.5,
    told: Annotated[
        float, typer.Option(help="share of the first stage that stands in patients' messages")
    ] = 0.8,
    replay: Annotated[int, typer.Option(help="pairs of the first stage in each epoch of the second")] = 400,
    held_out: Annotated[int, typer.Option(help="questions for validation; 0: the last epoch is kept")] = 100,
    seed: int = 42,
    limit: Annotated[int, typer.Option(help="pairs of each corpus at most; 0: all")] = 0,
    beams: Annotated[
        int, typer.Option(help="of the search; 0: 1 or 4, whichever is better on the held-out part")
    ] = 4,
    length_penalty: float = 1.0,
    choose: Annotated[
        Choose, typer.Option(help="what writes; auto: what is best on the held-out part")
    ] = "pointer",
    precision: Annotated[Precision, typer.Option(help=HELP)] = "auto",
    run: Annotated[Path | None, typer.Option(help="folder in which a killed run goes on")] = None,
    start: Annotated[
        Path | None, typer.Option(help="folder of a run whose last weights are the first")
    ] = None,
    offered: OFFERED = False,
) -> None:
    if extractive:
        release = publish_extractive(data, output, backbone)
    elif data is None:
        raise typer.BadParameter("training wants --data")
    else:
        corpora = read(data, held_out=held_out, seed=seed, denoise=denoise, limit=limit)
        tagging = open_release(tagger) if tagger else bundled_tagger()
        recogniser = medical_entities.recogniser(NerModel.load(tagging), data / "stanza")
        sentences = fillers(data) if told and (pretraining or replay) else []
        task = task_of(corpora, recogniser, trained=pretraining + epochs > 0, sentences=sentences)
        report(corpora, recogniser, task)
        network, architecture = network_of(backbone, corpora, Sizes(layers, rank, trained_layers), seed)
        settings = Settings(
            (
                Stage("pairs", pretraining, pretraining_lr, False, told),
                Stage("meqsum", epochs, lr, True, 0.0, replay),
            ),
            *(batch, smoothing, simple, hard, negatives, queue, temperature, momentum, positive, swap, seed),
            precision=resolved(precision),
            architecture=architecture
            | {"data": corpora.report["training_sha256"], "pairs": corpora.report["pairs"]},
        )
        if run is not None:
            run.mkdir(parents=True, exist_ok=True)
            (run / "split.json").write_text(json.dumps(corpora.report, indent=1) + "\n", encoding="utf-8")
        made = train(network, settings, corpora, task, run, start)
        wanted = [Search(beams=b, length_penalty=length_penalty) for b in ((beams,) if beams else (4, 1))]
        search, searched = best_search(network, tagging, corpora, wanted)
        if searched:
            console.print(f"ROUGE-1 on the held-out part by beams: {searched}", highlight=False)
        configuration = {
            "max_pieces": MAX_PIECES,
            "search": asdict(search),
            "searched": searched,
            "data": corpora.report | {"entities_by": recogniser.name},
        } | made
        forms, choice = forms_of(network, tagging, corpora, task, search, choose)
        if choice:
            console.print(f"ROUGE-1 on the held-out part by what writes: {choice.scores}", highlight=False)
        release = publish(network, tagging, corpora, data, output, configuration, forms, choice)
    print_scores(console, release)
    if offered:
        offer(release, data)
