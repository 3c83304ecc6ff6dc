"""Makes a normalization release: a terminology, its vectors, and unless --zero-shot CONORM-EN trained on
PsyTAR's mentions in their sentences.

Below the NIL threshold a code was more often wrong than right on validation mentions; without --data it keeps
its default. Scores are of held-out drugs and preferred terms (split.py).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from models import terminology
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS, base_digest
from models.normalization import patient_phrases
from models.normalization.model import DCR, ISOLATED, PHRASE_VECTORS, PHRASES, NormalizationModel
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, Score, TrainingData
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from models.types import Query
from training.common.coding_split import Split, heldout_split, listed, pts_by_term
from training.common.corpora import read_psytar_codes
from training.common.precision import HELP, Precision, resolved
from training.common.publish import OFFERED, offer, print_scores, publish_release
from training.evaluation.evaluate import manifest_scores
from training.evaluation.normalization import SIDER
from training.normalization.context_refining import Settings
from training.normalization.nil_threshold import calibrated
from training.normalization.patient_phrases import effects, phrases_of, threshold
from training.normalization.refinement import release_files, train
from training.normalization.trainer import Trainer

console = Console()
MAX_PIECES = 64
LICENCE = "CC BY 4.0"
CALIBRATION = TrainingData(
    name="PsyTAR (Zolnoori et al. 2019), validation mentions, for the NIL threshold only", licence=LICENCE
)
TRAINED = TrainingData(
    name="PsyTAR (Zolnoori et al. 2019), mentions without the held-out drugs and preferred terms",
    licence=LICENCE,
)


def _alone(mention: str) -> Query:
    return Query(mention, 0, len(mention), mention)


def _inside(text: str, mention: str, surface: str = "") -> Query:
    start = text.index(mention)
    return Query(text, start, start + len(mention), surface or mention)


CANARY = [
    *map(
        _alone,
        (
            "couldn't sleep a wink",
            "head is killing me",
            "raised liver enzymes",
            "Stevens-Johnson syndrome",
            "purple bicycle",
        ),
    ),
    _inside("Zoloft gave me awful insomnia and night sweats, no nausea though.", "night sweats"),
    _inside("I feel like a zombie all day since I take it, cannot think.", "like a zombie"),
    _inside("HA every evening since the dose was raised.", "HA", "headache"),
]


def scores(model: NormalizationModel, data: Path) -> list[Score]:
    """Held out: the shipped terms and, where they are there, SIDER's names; then with the bundled tagger."""
    wanted = {
        "heldout": "psytar/normalization.csv",
        "heldout_sider": SIDER,
        "sider": SIDER,
        "end_to_end": "psytar/ner_train.conll",
    }
    splits = [split for split, file in wanted.items() if (data / file).exists()]
    return manifest_scores("normalization", model, data, splits)


def write(
    folder: Path,
    table: Sequence[terminology.Term],
    vectors: Tensor,
    said: Phrases | None,
    parts: Mapping[str, dict[str, Tensor]],
) -> None:
    rows = "".join(f"{t.llt}\t{t.pt}\t{t.soc or '-'}\n" for t in table)
    (folder / "terminology.tsv").write_text("llt\tpt\tsoc\n" + rows, encoding="utf-8")
    save_file(NormalizationModel.pack(vectors), folder / "vectors.safetensors")
    if said is not None and said.texts:
        patient_phrases.write(folder / PHRASES, said.texts, said.pts)
        save_file(NormalizationModel.pack(said.vectors), folder / PHRASE_VECTORS)
    for name, tensors in parts.items():
        save_file(tensors, folder / name)


def _start(path: Path | None) -> dict[str, Tensor]:
    """The adapter of another release's encoder; nothing without one."""
    return read_tensors(open_release(path).file(ADAPTER)) if path else {}


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with psytar/ and terminology/; needed unless --zero-shot")
    ] = None,
    terms: Annotated[
        Path, typer.Option(help="a .tsv with llt, pt, soc, or a folder with MedDRA's .asc files")
    ] = terminology.BUNDLED,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    context_base: Annotated[str | None, typer.Option(help="base of S_context; without it, --base")] = None,
    k: Annotated[int, typer.Option(help="candidates kept with each event")] = 5,
    nil_below: Annotated[float | None, typer.Option(help="NIL threshold; without it, by --data")] = None,
    zero_shot: Annotated[bool, typer.Option("--zero-shot", help="train nothing")] = False,
    like: Annotated[
        Path | None, typer.Option(help="train nothing: a release whose everything but the terms is taken")
    ] = None,
    epochs: int = Settings.epochs,
    rank: Annotated[int, typer.Option(help="of S_context's adapter; 0: all is trained")] = Settings.rank,
    lr: Annotated[float, typer.Option(help="peak of the one-cycle schedule")] = Settings.lr,
    batch: int = Settings.batch,
    seed: int = Settings.seed,
    window: Annotated[int, typer.Option(help="pieces of a sentence")] = Settings.window,
    hard_negatives: Annotated[bool, typer.Option(help="mined before each epoch")] = False,
    in_batch: Annotated[bool, typer.Option(help="softmax over the terms of a batch")] = False,
    all_terms: Annotated[bool, typer.Option(help="softmax over all terms")] = False,
    temperature: Annotated[float, typer.Option(help="of the softmax")] = Settings.temperature,
    synonyms: Annotated[bool, typer.Option(help="all terms of a right preferred term are positives")] = False,
    swap: Annotated[float, typer.Option(help="share of mentions replaced by terms")] = Settings.swap,
    isolated: Annotated[bool, typer.Option(help="train S_isolated too")] = False,
    learn_phrases: Annotated[
        bool, typer.Option("--phrases/--no-phrases", help="search training mentions beside the terms")
    ] = True,
    start: Annotated[Path | None, typer.Option(help="a release whose adapter S_context begins with")] = None,
    start_isolated: Annotated[Path | None, typer.Option(help="the same for S_isolated and the terms")] = None,
    precision: Annotated[Precision, typer.Option(help=HELP)] = "auto",
    run: Annotated[Path | None, typer.Option(help="folder of the checkpoint of a run to go on with")] = None,
    offered: OFFERED = False,
) -> None:
    table = terminology.load(terms)
    if like is not None:
        print_scores(console, over_terms(open_release(like), table, output))
        return
    golds = list(read_psytar_codes(data / "psytar/normalization.csv")) if data else []
    groups = pts_by_term(terminology.load())
    split = heldout_split(golds, groups) if golds else Split([], [], [])
    configuration: dict[str, Any] = {"max_pieces": MAX_PIECES, "k": k, "terms": len(table)}
    parts: dict[str, dict[str, Tensor]] = {}
    said: Phrases | None = None
    if zero_shot:
        encoder = Encoder.load(base, max_pieces=MAX_PIECES)
        vectors = encoder.embed([t.llt for t in table])
        model = NormalizationModel(encoder, table, vectors, k=k, nil_below=0.0)
    else:
        if not split.train:
            raise typer.BadParameter("training wants --data; --zero-shot and --like do without it")
        console.print(listed(split, groups))
        settings = Settings(
            epochs=epochs,
            rank=rank,
            lr=lr,
            batch=batch,
            seed=seed,
            window=window,
            in_batch=in_batch,
            all_terms=all_terms,
            temperature=temperature,
            hard_negatives=hard_negatives,
            synonyms=synonyms,
            swap=swap,
            isolated=isolated,
            precision=resolved(precision),
        )
        trainer = trainer_of(base, context_base or base, table, settings, start, start_isolated)
        train(trainer, split.train, split.valid, run, partial(console.print, soft_wrap=True))
        if learn_phrases:
            effect = effects(trainer.isolated, table, trainer.vectors, split.train, seed)
            configuration |= {"phrases_at_least": threshold(effect), "phrases": [e._asdict() for e in effect]}
            said = phrases_of(trainer.isolated, table, split.train, configuration["phrases_at_least"])
        model, vectors = trainer.model(k, phrases=said), trainer.vectors
        parts = release_files(trainer, _start(start), _start(start_isolated))
        configuration |= {"window": window, "training": asdict(settings)}
        configuration |= {"training_seconds": round(trainer.seconds)}
        if context_base and context_base != base:
            configuration |= {"context_base": context_base, "context_base_sha256": base_digest(context_base)}
    configuration |= calibrated(model, split.valid, nil_below)
    sources = [TRAINED if parts else CALIBRATION] if data else []
    release = _publish(table, vectors, said, parts, configuration, base, sources, data, output)
    print_scores(console, release)
    if offered:
        offer(release, data)
    console.print(f"{len(table)} terms, NIL below {configuration['nil_below']}")


def over_terms(release: Release, table: Sequence[terminology.Term], output: Path) -> Release:
    """A release over other terms with the encoders and the threshold of this one. Term vectors come from
    S_isolated, so nothing of what was trained depends on the terms.
    """
    manifest = release.manifest
    model = NormalizationModel.load(release)
    vectors = model.encoder.embed([t.llt for t in table])
    said = model.phrases.within(table) if model.phrases else None
    names = {ADAPTER, WEIGHTS, ISOLATED, DCR} & manifest.files.keys()
    parts = {name: read_tensors(release.file(name)) for name in names}
    # The curves are of the release's own terms.
    curves = {"risk_coverage", "phrases"}
    configuration = {k: v for k, v in manifest.configuration.items() if k not in curves}
    configuration |= {"terms": len(table), "like": release.version}
    sources = manifest.training_data
    return _publish(table, vectors, said, parts, configuration, manifest.base, sources, None, output)


def trainer_of(
    base: str,
    context_base: str,
    table: Sequence[terminology.Term],
    settings: Settings,
    start: Path | None,
    start_isolated: Path | None,
) -> Trainer:
    """Both encoders as they begin."""
    one, other = (
        Encoder.load(b, max_pieces=MAX_PIECES, adapter=open_release(p).file(ADAPTER) if p else None)
        for b, p in ((base, start_isolated), (context_base, start))
    )
    return Trainer(one, other, table, settings)


def _publish(
    table: Sequence[terminology.Term],
    vectors: Tensor,
    said: Phrases | None,
    parts: Mapping[str, dict[str, Tensor]],
    configuration: dict[str, Any],
    base: str,
    sources: Sequence[TrainingData],
    data: Path | None,
    output: Path,
) -> Release:
    folder = Path(tempfile.mkdtemp(prefix="normalization-"))
    write(folder, table, vectors, said, parts)
    release = publish_release(
        folder,
        task="normalization",
        kind="CONORM-EN over a terminology" if parts else "zero-shot sentence encoder over a terminology",
        base=base,
        base_sha256=base_digest(base),
        configuration=configuration,
        training_data=sources,
        canary=CANARY,
        scores=lambda m: scores(m, data) if data else [],
        root=output,
    )
    shutil.rmtree(folder)
    return release
