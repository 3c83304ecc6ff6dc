"""How much closer to the references are the short questions of one release than those of another?

Both releases answer the same questions of each split. The interval of the difference in ROUGE-1 is of paired
bootstrap over the questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.scores import paired_bootstrap, ratio
from models.types import ShortQuestion
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.summarization.measure import first_sentence, read, summary_counts

SPLITS = ("meqsum_test", "mediqa_valid", "teaching_held_out")
DEFINITION = "ROUGE-1 F1 in percent, mean over questions, rouge-score with stemming"
#: The columns of `summary_counts` with ROUGE-1, and with 1 for each question.
ROUGE1 = ratio("rouge1", DEFINITION, (0, -1))


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
    rows = {}
    for split in SPLITS:
        corpus = read(data, split, 0)
        texts, gold = [q.text for q in corpus.records], [q.summary for q in corpus.records]
        models: list[Any] = [release.model for release in releases]
        rows[corpus.data] = row(models[0].predict(texts), models[1].predict(texts), texts, gold)
    names = dict(zip(("before", "after"), (release.version for release in releases), strict=True))
    print_and_write(
        {"releases": names, "definition": DEFINITION, "baseline": "first sentence of the question"}
        | provenance("summarization.compared")
        | {"rows": rows},
        result,
    )


if __name__ == "__main__":
    run_program(main)
