"""Makes the extractive summarization release: a plain sentence encoder and a rule for what asks. Nothing is
trained.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rouge_score.rouge_scorer import RougeScorer

from models.encoder import base_digest
from models.release import Score
from models.summarization import SummarizationModel
from models.text import sentences
from training.publish import print_scores, publish_release

console = Console()
CANARY = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?",
    "tell me about gout",
]


def rouge(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Mean F1 in percent of ROUGE-1, 2 and L with stemming (package rouge-score)."""
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    rows = [scorer.score(r, p) for p, r in zip(predictions, references, strict=True)]
    return {
        name: 100 * sum(row[name].fmeasure for row in rows) / len(rows)
        for name in ("rouge1", "rouge2", "rougeL")
    }


def scores(model: SummarizationModel, path: Path) -> list[Score]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    test = [row for row in rows if row["split"] == "test"]
    questions, references = [row["question"] for row in test], [row["summary"] for row in test]
    ours = rouge([s.text for s in model.predict(questions)], references)
    first = rouge([q[sentences(q)[0].start : sentences(q)[0].end] for q in questions], references)
    return [
        Score(
            name=name,
            value=round(ours[name], 2),
            definition=f"{name} F1 in percent, mean over questions, rouge-score with stemming; extractive",
            data="MeQSum test part",
            records=len(test),
            baseline=round(first[name], 2),
            baseline_definition="first sentence",
        )
        for name in ours
    ]


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with questions/; without it nothing is scored")
    ] = None,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="summarization-"))
    release = publish_release(
        folder,
        task="summarization",
        kind="extractive: the asking sentence nearest to the whole question",
        base=base,
        base_sha256=base_digest(base),
        configuration={"max_pieces": 256},
        training_data=[],
        canary=CANARY,
        scores=lambda model: scores(model, data / "questions/meqsum.jsonl") if data else [],
        root=output,
    )
    shutil.rmtree(folder)
    print_scores(console, release)


if __name__ == "__main__":
    typer.run(main)
