"""How well are drugs, effects and their relations recognised over the folds of the ADE corpus, or over ten
parts that share no abstract?

Each fold is trained and scored separately and written to the file before the next one begins: a run that was
stopped resumes with the missing folds if settings and code are those of the file. The comparison is plain
fine-tuning: CONORM-NER's head over the same backbone, with every drug linked to every effect.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.folds import summary as over_folds
from benchmarks.machine import provenance, write_atomically
from models.loading import load
from models.types import ADE, DRUG, Mention, Relation, TaggedText
from training.common.precision import resolved
from training.common.program import Device, Run, device_of
from training.common.program_help import run_program
from training.evaluation.evaluate import Evaluation, evaluate
from training.evaluation.relation import BASELINES, FOLDS, GROUPS, MEASURES
from training.ner import release as ner
from training.ner.settings import Settings as TaggerSettings
from training.recipes.recipe import Recipe, changes_of, read_recipe
from training.recipes.stages import Place, run_recipe
from training.relation.task import TASK

console = Console()
ROOT = Path(__file__).parents[2]
#: Files that the figures of a fold depend on, in addition to the settings and the libraries.
CODE = (
    "training/relation/*.py",
    "training/common/adapter.py",
    "training/common/loop.py",
    "training/common/batching.py",
    "training/evaluation/relation.py",
    "models/relation/*.py",
    "models/encoder/split/layer_split.py",
)
PUBLISHED = {
    "CLDR and CLNER (CharacterBERT): NER macro F1": 0.883,
    "CLDR and CLNER: RE strict F1, as the authors count": 0.7997,
    "CLDR: RE given the entities, F1": 0.865,
    "SpERT (BERT base): NER macro F1": 0.8925,
    "SpERT: RE strict F1": 0.7924,
}
COMPARABLE = (
    "the same folds; the published RE strict of CLDR is re_strict_f1_authors here; here a relation given the "
    "entities is one of the gold mentions' pairs, in the paper any two words of the sentence; here the tags "
    "of a sentence are decoded together, in the paper each word's by itself"
)
ALL = "1,2,3,4,5,6,7,8,9,10"
PLAIN = "plain fine-tuning: CONORM-NER's head, whole encoder, every pair of its mentions linked"


class EveryPair:
    """Links every drug in a text with every effect; the mentions come from a tagger or are given."""

    def __init__(self, tagger: Any) -> None:
        self.tagger = tagger

    def predict(self, batch: Sequence[str]) -> list[TaggedText]:
        return [TaggedText(tuple(m), tuple(_all_pairs(m))) for m in self.tagger.predict(batch)]

    def relate(self, _: Sequence[str], mentions: Sequence[Sequence[Mention]]) -> list[list[Relation]]:
        return [_all_pairs(own) for own in mentions]


def _all_pairs(mentions: Sequence[Mention]) -> list[Relation]:
    return [
        Relation(d, e, 1.0)
        for d, drug in enumerate(mentions)
        if drug.label == DRUG
        for e, effect in enumerate(mentions)
        if effect.label == ADE
    ]


def plain_scores(split: str, epochs: int, seed: int, data: Path) -> dict[str, float]:
    """Scores of plain fine-tuning on one split, without the lexicon, which the annotations do not follow."""
    settings = TaggerSettings(
        corpora="ade", split=split, epochs=epochs, lr=2e-4, batch=24, seed=seed, precision=resolved("auto")
    )
    with tempfile.TemporaryDirectory() as folder:
        tagger: Any = load(
            ner.make(settings, Place(data, Path(folder), device_of("auto"))), dtype="float32"
        ).model
        tagger.lexicon = None
        return _rounded(evaluate("relation", EveryPair(tagger), "", data, split))


def fold_row(recipe: Recipe, place: Place, run: Path | None) -> dict[str, Any]:
    """Trains on one fold; scores on its test part, each with its baseline, and costs."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        release = run_recipe(TASK, recipe, replace(place, output=Path(folder)), run)
        seconds = time.monotonic() - started
        scores = release.manifest.scores
        size = sum(f.size for f in release.manifest.files.values()) / 1e6
    return {
        "scores": {s.name: s.value for s in scores},
        "baselines": {s.name: s.baseline for s in scores},
        "records": {s.name: s.records for s in scores},
        "seconds": round(seconds),
        "megabytes": round(size, 1),
        "k": {k: release.manifest.configuration[k] for k in ("k_words", "k_pairs")},
    }


def summary(folds: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Means over the folds, and of plain fine-tuning over the folds that have it. If some do not, also our
    means over those that have it.
    """
    figures = over_folds(folds)
    both = [row for row in folds.values() if "plain" in row]
    for name in both[0]["plain"] if both else ():
        figures[f"{name}_plain_finetuning"] = round(statistics.mean(r["plain"][name] for r in both), 4)
        if len(both) < len(folds):
            figures[f"{name}_on_plain_folds"] = round(statistics.mean(r["scores"][name] for r in both), 4)
    return figures | {"plain_folds_done": len(both)}


def code_digest() -> str:
    """Digest of the files that the figures of a fold depend on."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in CODE for path in ROOT.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def origin_of(recipe: Recipe, grouped: bool) -> dict[str, Any]:
    """The settings and the code that folds in one file must have in common."""
    runs = [run for stage in recipe.described()["stages"] for run in stage["runs"]]
    return {
        "settings": [{k: v for k, v in run.items() if k != "split"} for run in runs],
        "kind": "parts that share no abstract" if grouped else "the papers' folds",
        "code": code_digest(),
    }


def stored_folds(file: Path, origin: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The folds in a result file; raises typer.BadParameter if they are of another origin: other settings or
    other code.
    """
    if not file.exists():
        return {}
    stored = json.loads(file.read_bytes())
    for name, value in origin.items():
        if stored[name] != value:
            raise typer.BadParameter(f"{file} has folds with other {name}: {stored[name]}")
    return dict(stored["folds"])


def write_results(file: Path, origin: Mapping[str, Any], folds: Mapping[str, dict[str, Any]]) -> None:
    content = summary(folds) | provenance("relation.folds")
    content |= {"definitions": {m.name: m.definition for m in MEASURES}, "baseline_definitions": BASELINES}
    content |= {"published": PUBLISHED, "comparable": COMPARABLE, "plain_finetuning": PLAIN}
    content |= {**origin, "folds": folds}
    write_atomically(file, content)


def _rounded(evaluation: Evaluation) -> dict[str, float]:
    scores: dict[str, float] = evaluation.as_dict()["scores"]
    return scores


def main(
    data: Annotated[Path, typer.Option(exists=True, help="folder with ade/")],
    result: Annotated[Path, typer.Option("--json", help="result file; a run resumes where it ends")],
    recipe: Annotated[Path | None, typer.Option(exists=True, help="file with what differs")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="a setting of every stage"),
    ] = None,
    folds: Annotated[str, typer.Option(help="their numbers, with commas")] = ALL,
    grouped: Annotated[
        bool, typer.Option(help="use parts that share no abstract instead of the papers' folds")
    ] = False,
    plain: Annotated[int, typer.Option(help="epochs of plain fine-tuning; 0: none")] = 8,
    run: Run = None,
    device: Device = "auto",
) -> None:
    if not set(folds.split(",")) <= set(ALL.split(",")):
        raise typer.BadParameter(f"--folds {folds}: numbers from 1 to 10 are wanted")
    place = Place(data, result.parent, device_of(device))

    def of_split(split: str) -> Recipe:
        given = {"precision": resolved("auto", place.device)} | changes_of(changes or [])
        return read_recipe("relation", TASK.settings, recipe, given | {"split": split})

    origin = origin_of(of_split(f"{FOLDS}1"), grouped)
    done = stored_folds(result, origin)
    for fold in folds.split(","):
        split = f"{GROUPS if grouped else FOLDS}{fold}"
        if fold not in done:
            done[fold] = row = fold_row(of_split(split), place, run / split if run else None)
            write_results(result, origin, done)
            console.print(f"fold {fold}: {row['scores']} after {row['seconds']} s")
        if plain and "plain" not in done[fold]:
            done[fold]["plain"] = plain_scores(split, plain, origin["settings"][0]["seed"], data)
            write_results(result, origin, done)
            console.print(f"fold {fold}, plain fine-tuning: {done[fold]['plain']}")
    console.print(summary(done))


if __name__ == "__main__":
    run_program(main)
