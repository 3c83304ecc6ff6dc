"""Makes the references of the bundled releases anew, which show when a stream differs from their own texts.

    python -m training.evaluation.reference
    python -m training.evaluation.reference --release runs/ner/VERSION --texts posts.jsonl

They must be made anew when a bundled release is replaced, from the training part of the teaching corpus. Each
is a file beside its release, so that the release is not changed; a release that holds a reference of its own
has none there. With --release and --texts a copy of the release is written whose reference is made from these
texts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from models.drift import REFERENCE, beside
from models.loading import model_class
from models.releases.store import bundled, open_release
from models.types import TASKS
from training.common.corpora import own_texts
from training.common.program_help import run_program
from training.common.reference import MOST, TextsOf, reference_of, with_reference
from training.teaching.readers import marked_texts, questions

POSTS = "posts of the teaching corpus, training part"
SENTENCES = "clinical sentences of the teaching corpus, training part"
QUESTIONS = "questions of the teaching corpus, training part"


def _posts() -> list[str]:
    return [marked.text for _, marked in marked_texts("posts", "train")]


def _sentences() -> list[str]:
    return [marked.text for _, marked in marked_texts("clinical", "train")]


def _questions() -> list[str]:
    return [asked.question for _, asked in questions("train")]


#: The texts that arrive at the stage of each task.
TEXTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "ner": (POSTS, _posts),
    "normalization": (f"{POSTS}, tagged by the bundled release", _posts),
    "acronym": (SENTENCES, _sentences),
    "relation": (SENTENCES, _sentences),
    "summarization": (QUESTIONS, _questions),
}


def make(task: str, most: int = MOST) -> Path:
    """Writes the reference of a task's bundled release in place of the last one; returns its path."""
    release = open_release(bundled(task))
    made_from, read = TEXTS[task]
    texts = TextsOf.some(made_from, read(), most)
    reference = reference_of(task, model_class(task).load(release), *texts)
    path = beside(release)
    for old in path.parent.glob(f"*.{REFERENCE}"):
        old.unlink()
    path.write_text(reference.model_dump_json() + "\n", encoding="utf-8")
    return path


def read_texts(path: Path) -> list[str]:
    """The field `text` of each line of a JSON Lines file; blank ones are left out, as no stage gets them.
    Raises typer.BadParameter for a line without one, and where there is no text at all.
    """
    texts = [text for text in own_texts(path) if text.strip()]
    if not texts:
        raise typer.BadParameter(f"{path} has no text")
    return texts


def main(
    release: Annotated[
        Path | None, typer.Option(exists=True, help="a release; by default the bundled ones")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(exists=True, help="with --release: JSON Lines with `text`")
    ] = None,
    output: Annotated[Path, typer.Option(help="with --release: folder for the copy")] = Path("runs"),
) -> None:
    if (release is None) != (texts is None):
        raise typer.BadParameter("--release and --texts belong together")
    if release is None or texts is None:
        for task in TASKS:
            if REFERENCE in open_release(bundled(task)).manifest.files:
                print(f"{task}: the bundled release holds its own")
            else:
                print(make(task))
    else:
        chosen = TextsOf.some(f"{texts.name}, as given", read_texts(texts))
        print(with_reference(release, chosen, output).path)


if __name__ == "__main__":
    run_program(main)
