"""What does a part of the teaching corpus bring on real texts?

A tagger that was trained on public corpora alone is trained further, once for each share of the teaching
corpus, always over the same number of texts: half of them from the public corpora and half from the share,
whose texts come again where it is small. Without the teaching corpus all are from the public corpora. The
figures so show what other texts bring, not what longer training does; they are lower than those of the
bundled release, which was trained longer.

Each share is written to the file before the next one begins: a run that was stopped resumes with the missing
ones. A file with other settings is refused. The tagger to start with is the first bundled one that had all
layers trained:

    git archive f06f04b models/pretrained/ner/c6a2b76855c4 | tar x -C FOLDER
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.console import Console

from benchmarks.events.alarms import TWEETS, posts
from benchmarks.events.false_effects import DEFINITIONS as EFFECTS
from benchmarks.events.false_effects import figures
from benchmarks.machine import provenance, write_atomically
from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.ner.model import NerModel
from models.types import LABELS
from training.common.loop import TrainingLoop
from training.common.precision import resolved
from training.common.program_help import run_program
from training.evaluation.alarms import DEFINITIONS as ALARMS
from training.evaluation.alarms import alarm_curve, named_terms
from training.evaluation.evaluate import manifest_scores
from training.evaluation.relation import split_negatives, split_texts
from training.ner.assemble import counted_transitions, tested, validation_scores
from training.ner.data import TEACHING, Corpus, Example, examples, read
from training.ner.event_options import held_out_posts
from training.ner.settings import Settings
from training.ner.trainer import TaggerTrainee

console = Console()
SHARES = (0.0, 0.25, 0.5, 1.0)
#: Weight of the log-odds of an event in decoding, the same for all shares; a release chooses its own.
EVENT_WEIGHT = 0.3
#: Sentences without an adverse event in which false effects are counted.
NEGATIVES = 1000
T = TypeVar("T")


class Score(NamedTuple):
    value: float
    baseline: float
    definition: str


def drawn(items: Sequence[T], number: int, rng: random.Random) -> list[T]:
    """`number` of the items in random order, each as often as any other or once more; none of no items."""
    made: list[T] = []
    while items and len(made) < number:
        made += rng.sample(items, min(len(items), number - len(made)))
    return made


def mixture(corpora: Mapping[str, Corpus], texts: int, seed: int) -> list[Example]:
    """Half of the examples from the public corpora and half from the teaching corpus, if it is there."""
    encoder, tags, rng = Encoder.load("mini"), tags_of(LABELS), random.Random(seed)
    taught = examples(corpora[TEACHING], encoder, tags) if TEACHING in corpora else []
    public = [e for n, c in corpora.items() if n != TEACHING for e in examples(c, encoder, tags)]
    return drawn(public, texts - texts // 2 if taught else texts, rng) + drawn(taught, texts // 2, rng)


def trained(settings: Settings, data: Path, texts: int) -> tuple[NerModel, int]:
    """The tagger as a release would hold it, and the number of texts of the teaching corpus."""
    corpora = read(data, settings)
    batch = mixture(corpora, texts, settings.seed)
    trainee = TaggerTrainee(
        settings, batch, partial(validation_scores, corpora), "cpu", counted_transitions(corpora)
    )
    TrainingLoop(trainee, asdict(settings)).run()
    return served(trainee), len(corpora[TEACHING].train) if TEACHING in corpora else 0


def served(trainee: TaggerTrainee) -> NerModel:
    """The tagger as a release would hold it, with the drugs' names and the same weight for all."""
    model = trainee.released()
    model.lexicon, model.decoding.event_weight = DrugLexicon.load(), EVENT_WEIGHT
    return model


def scores(model: NerModel, data: Path, split: str) -> dict[str, Score]:
    """Strict F1 on both corpora, false effects in sentences without any, and alarms of posts and tweets."""
    made = {
        f"{s.data}, {s.name}": Score(s.value, s.baseline or 0.0, s.definition)
        for s in manifest_scores("ner", model, data, tested("both", split))
    }
    negative = [t.text for t in split_negatives(data / "ade", split)[1]][:NEGATIVES]
    gold = split_texts(data / "ade", split)[1]
    texts = [t.text for t in gold]
    found = figures(negative, model.predict(negative), gold, model.predict(texts))
    named = figures(negative, [named_terms(t) for t in negative], gold, [named_terms(t) for t in texts])
    made |= {
        f"clinical sentences, {name}": Score(value, named[name], EFFECTS[name])
        for name, value in found.items()
    }
    tweets = posts((data / TWEETS).read_text(encoding="utf-8"))
    for kind, own in (("tweets", tweets), ("held-out posts, synthetic", held_out_posts())):
        curve = alarm_curve(model, own)
        rows = curve["curve"][0], curve["baseline"]
        made[f"{kind}, auc"] = Score(curve["auc"], 0.5, ALARMS["auc"])
        made |= {f"{kind}, {n}": Score(rows[0][n], rows[1][n], ALARMS[n]) for n in ("hit", "false")}
    return made


def point(settings: Settings, data: Path, texts: int) -> dict[str, Any]:
    """One share: its texts, and all scores."""
    model, taught = trained(settings, data, texts)
    return {"texts": taught} | described(scores(model, data, settings.split))


def described(found: Mapping[str, Score]) -> dict[str, dict[str, Any]]:
    """The scores, their baselines and their definitions, each by name."""
    return {
        "scores": {name: score.value for name, score in found.items()},
        "baselines": {name: score.baseline for name, score in found.items()},
        "definitions": {name: score.definition for name, score in found.items()},
    }


def stored(file: Path, settings: Mapping[str, Any], kind: str = "shares") -> dict[str, Any]:
    """What a result file has by the name `kind`; raises typer.BadParameter if it has other settings."""
    if not file.exists():
        return {}
    content = json.loads(file.read_bytes())
    if content["settings"] != settings:
        raise typer.BadParameter(f"{file} has {kind} with other settings: {content['settings']}")
    return dict(content[kind])


def rows(taggers: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float | str]]:
    """Each score of all taggers, beside its baseline and its definition."""
    (_, first), *_ = taggers.items()
    return {
        name: {tagger: round(own["scores"][name], 4) for tagger, own in taggers.items()}
        | {"baseline": first["baselines"][name], "definition": first["definitions"][name]}
        for name in first["scores"]
    }


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/, psytar/ and tweets/")],
    start: Annotated[Path, typer.Option(help="release of a tagger trained on public corpora alone")],
    result: Annotated[Path, typer.Option("--json", help="result file; a run resumes where it ends")],
    texts: Annotated[int, typer.Option(min=2, help="number of texts that each share is trained on")] = 9600,
    lr: Annotated[float, typer.Option(help="learning rate")] = 2e-4,
    seed: Annotated[int, typer.Option(help="seed of the texts and their order")] = 42,
) -> None:
    settings = Settings(
        start=str(start), rank=0, eight_bit=True, phases=1, epochs=1, lr=lr, batch=32, keep="last",
        candidates=True, negatives=3000, event_head=True, status_head=True, window=96, joined=0.2, seed=seed,
        precision=resolved("auto"),
    )  # fmt: skip
    plain = {k: v for k, v in asdict(settings).items() if k != "teaching"}
    plain |= {"start": start.name, "trained_over": texts}
    done = stored(result, plain)
    for share in SHARES:
        if str(share) in done:
            continue
        done[str(share)] = point(replace(settings, teaching=share), data, texts)
        console.print(f"{share:.0%}: {done[str(share)]['scores']}")
        content = {
            "settings": plain,
            "rows": rows({f"{float(s):.0%}": own for s, own in done.items()}),
            "shares": done,
        }
        write_atomically(result, provenance("ner.teaching_curve") | content)


if __name__ == "__main__":
    run_program(main)
