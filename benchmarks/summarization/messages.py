"""How close to their questions are the answers to the messages that were written for reading?

Each file beside this program has messages, the question that a librarian would write down, and the verdicts
of readers on the answers of the release of its time. ROUGE-1 is measured anew, with the first sentence as
baseline; the verdicts are counted as they are in the file, whatever release is measured.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.summarization.compared import DEFINITION, ROUGE1
from models.scores import bootstrap
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.summarization.measure import first_sentence, summary_counts

FILES = ("messages_2.jsonl", "messages_3.jsonl")


def read_messages(name: str) -> list[dict[str, str]]:
    """The lines of a file beside this program."""
    return [orjson.loads(line) for line in Path(__file__).with_name(name).read_bytes().splitlines()]


def figures(model: Any, rows: list[dict[str, str]]) -> dict[str, Any]:
    """ROUGE-1 of a model's answers, of the answers in the file and of the first sentence; the verdicts on the
    answers in the file.
    """
    references, texts = [row["question"] for row in rows], [row["text"] for row in rows]
    counts = summary_counts([a.text for a in model.predict(texts)], references)
    interval = bootstrap(counts, [ROUGE1])["rouge1"]
    answered = {"first sentence": list(map(first_sentence, texts))}
    for column in ("answer", "answer_before"):
        answered[column] = [row[column] for row in rows]
    means = {
        f"{name}, ROUGE-1": round(ROUGE1.of(summary_counts(given, references)), 1)
        for name, given in answered.items()
    }
    verdicts = {
        f"{column}, {verdict}": n
        for column in ("verdict", "verdict_before")
        for verdict, n in sorted(Counter(row[column] for row in rows).items())
    }
    limits = f"{interval.low:.1f} to {interval.high:.1f}"
    return {"ROUGE-1": round(ROUGE1.of(counts), 1), "95 % interval": limits, **means, **verdicts}


def main(
    release: Annotated[Path | None, typer.Option(help="a directory; by default the bundled one")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    loaded = load_release("summarization", release, Settings(dtype="float32"))
    rows = {name: figures(loaded.model, read_messages(name)) for name in FILES}
    about = {"release": loaded.version, "what is counted": DEFINITION}
    print_and_write(about | {"rows": rows} | provenance("summarization.messages"), result)


if __name__ == "__main__":
    run_program(main)
