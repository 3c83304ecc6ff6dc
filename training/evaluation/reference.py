"""The references of the bundled releases, to see when a stream differs from what they were made for.

python -m training.evaluation.reference
python -m training.evaluation.reference --release runs/ner/VERSION --texts posts.jsonl

Those of the bundled releases are made from the training part of the teaching corpus, which is in the source
tree. They lie beside the releases, under their versions, so that these stay as they are; a release that holds
a reference of its own has none there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from models.drift import REFERENCE, beside
from models.releases.loading import model_class
from models.releases.store import bundled, open_release
from models.types import TASKS
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
    """Writes the reference of the bundled release of a task, and removes that of the one before; returns its
    path.
    """
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
    """The field `text` of each line of a JSON Lines file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["text"]) for line in lines if line.strip()]


def main(
    release: Annotated[Path | None, typer.Option(help="a release; by default the bundled ones")] = None,
    texts: Annotated[Path | None, typer.Option(help="JSON Lines with `text`, for --release")] = None,
    output: Annotated[Path, typer.Option(help="folder of releases, for --release")] = Path("runs"),
) -> None:
    """Makes the references of the bundled releases anew, which is needed when one is replaced; or from a
    release another one, with a reference made from texts of your own.
    """
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
    typer.run(main)
