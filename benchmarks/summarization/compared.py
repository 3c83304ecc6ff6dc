"""How much closer to the references are the short questions of one release than those of another?

Both releases answer the same questions of each split. The interval of the difference in ROUGE-1 is of paired
bootstrap over the questions. They answer in turns, CHUNK questions each, so that their processor time can be
compared too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.scores import paired_bootstrap, ratio
from models.types import ShortQuestion
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.summarization.measure import first_sentence, read, summary_counts

#: Questions that a release answers in its turn.
CHUNK = 32
SPLITS = ("meqsum_test", "mediqa_valid", "teaching_held_out")
DEFINITION = "ROUGE-1 F1 in percent, mean over questions, rouge-score with stemming"
#: The columns of `summary_counts` with ROUGE-1, and with 1 for each question.
ROUGE1 = ratio("rouge1", DEFINITION, (0, -1))


def in_turns(models: Sequence[Any], texts: Sequence[str]) -> tuple[list[list[ShortQuestion]], list[float]]:
    """The answers of each of two models, and for each chunk the processor seconds of the first model over
    those of the second. Which one begins changes with each chunk.
    """
    answers: list[list[ShortQuestion]] = [[], []]
    ratios = []
    for number, start in enumerate(range(0, len(texts), CHUNK)):
        seconds = [0.0, 0.0]
        for i in (0, 1) if number % 2 else (1, 0):
            begun = time.process_time()
            answers[i] += models[i].predict(texts[start : start + CHUNK])
            seconds[i] = time.process_time() - begun
        ratios.append(seconds[0] / seconds[1])
    return answers, ratios


def row(
    before: Sequence[ShortQuestion], after: Sequence[ShortQuestion], texts: Sequence[str], gold: Sequence[str]
) -> dict[str, Any]:
    """The scores of the answers of two releases to the same questions, and how many of the answers differ."""
    ours, theirs = (summary_counts([a.text for a in answers], gold) for answers in (after, before))
    gain = paired_bootstrap(ours, theirs, (ROUGE1,))[ROUGE1.name]
    return {
        "records": len(texts),
        "first_sentence": round(ROUGE1.of(summary_counts([first_sentence(t) for t in texts], gold)), 2),
        "before": round(ROUGE1.of(theirs), 2),
        "after": round(ROUGE1.of(ours), 2),
        "gain": round(gain.difference, 2),
        "95 % interval": f"{gain.low:.2f} to {gain.high:.2f}",
        "answers_that_differ": sum(a.text != b.text for a, b in zip(after, before, strict=True)),
    }


def main(
    data: Annotated[Path, typer.Option(help="folder with questions/")],
    before: Annotated[Path, typer.Option(help="folder of a release")],
    after: Annotated[Path | None, typer.Option(help="the other release; by default the bundled one")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    releases = [load_release("summarization", path, Settings(dtype="float32")) for path in (before, after)]
    rows: dict[str, Any] = {}
    ratios: list[float] = []
    for split in SPLITS:
        corpus = read(data, split, 0)
        texts, gold = [q.text for q in corpus.records], [q.summary for q in corpus.records]
        (earlier, later), own = in_turns([release.model for release in releases], texts)
        rows[corpus.data] = row(earlier, later, texts, gold)
        ratios += own
    names = dict(zip(("before", "after"), (release.version for release in releases), strict=True))
    print_and_write(
        {"releases": names, "definition": DEFINITION, "baseline": "first sentence of the question"}
        | provenance("summarization.compared")
        | {"rows": rows, "seconds_before_over_after": round(median(ratios), 3)},
        result,
    )


if __name__ == "__main__":
    run_program(main)
