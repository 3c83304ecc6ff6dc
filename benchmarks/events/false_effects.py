"""How many adverse effects are found in clinical sentences that report none, and how many in those that do?

The sentences without an adverse event (ADE corpus, a fifth of their abstracts) were never trained on; those
with one are the test part of the split that the tagger was trained on. Counted are mentions labelled ADE or
WITHDRAWAL without a flag. The names of the terminology, each taken for an effect, are the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.types import ADE, Mention
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.corpora import GoldText
from training.common.program_help import run_program
from training.evaluation.alarms import alarms, named_terms
from training.evaluation.relation import split_negatives, split_texts

DEFINITIONS = {
    "false_per_1000": "unflagged effects found in sentences without an adverse event, for 1,000 sentences",
    "sentences_with_false": "share of the sentences without an adverse event in which one is found",
    "gold_found": "share of the effects of sentences with one that share a character with an unflagged "
    "effect found",
    "gold_flagged": "share of them that share a character with a found effect, but only with flagged ones",
    "baseline": "the same where every name of the terminology in a sentence is an effect",
}


def figures(
    negative: Sequence[str],
    found: Sequence[Sequence[Mention]],
    gold: Sequence[GoldText],
    effects: Sequence[Sequence[Mention]],
) -> dict[str, float]:
    """The shares of DEFINITIONS, from the mentions found in both kinds of sentences."""
    false = [alarms(text, mentions) for text, mentions in zip(negative, found, strict=True)]
    hit = flagged = total = 0
    for text, mentions in zip(gold, effects, strict=True):
        unflagged = alarms(text.text, mentions)
        spans = [(m.start, m.end) for m in mentions]
        for effect in (m for m in text.mentions if m.label == ADE):
            total += 1
            if _touched(effect.start, effect.end, unflagged):
                hit += 1
            else:
                flagged += _touched(effect.start, effect.end, spans)
    return {
        "false_per_1000": round(1000 * sum(map(len, false)) / len(negative), 1),
        "sentences_with_false": round(sum(map(bool, false)) / len(negative), 4),
        "gold_found": round(hit / max(1, total), 4),
        "gold_flagged": round(flagged / max(1, total), 4),
    }


def _touched(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first < end and start < last for first, last in spans)


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    release: Annotated[Path | None, typer.Option(help="a NER release; by default the bundled one")] = None,
    split: Annotated[str, typer.Option(help="split that the release was trained on")] = "ade_fold_1",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    loaded = load_release("ner", release, Settings(dtype="float32"))
    model: Any = loaded.model
    negative = [t.text for t in split_negatives(data / "ade", split)[1]]
    gold = split_texts(data / "ade", split)[1]
    texts = [t.text for t in gold]
    print_and_write(
        {
            "release": loaded.version,
            "negatives": len(negative),
            "sentences": len(gold),
            **figures(negative, model.predict(negative), gold, model.predict(texts)),
            "baseline": figures(
                negative, [named_terms(t) for t in negative], gold, [named_terms(t) for t in texts]
            ),
            "definitions": DEFINITIONS,
        }
        | provenance("events.false_effects"),
        result,
    )


if __name__ == "__main__":
    run_program(main)
