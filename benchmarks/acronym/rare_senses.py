"""How much should senses without a corpus count where the weights of a release are chosen?

The network and the prototypes are those of the bundled release. With each weight of the rows that are scored
as if only written sentences had their senses, the mixture is chosen anew and measured: on the validation
rows, on the test rows of CASI, on definitions in held-out abstracts, and on the sentences of sentences.tsv.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.acronym.model import AcronymModel
from models.releases.store import bundled, open_release
from models.tables import read_tsv
from training.acronym.prototypes import SOURCE_WEIGHTS, Estimates, accuracy, best_mixture
from training.acronym.usage_examples import (
    CachedOutputs,
    score_on_definitions,
    usage_examples,
    validation_scores,
    with_dictionary_spellings,
)
from training.common.program_help import run_program
from training.evaluation.evaluate import manifest_scores
from training.teaching.readers import acronym_contexts

WEIGHTS = (1.0, 0.5, 0.25, 0.1)
SENTENCES = Path(__file__).with_name("sentences.tsv")
SEED = 0


def main(
    data: Annotated[Path, typer.Option(help="folder with acronyms/ and ade/")],
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    release = open_release(bundled("acronym"))
    model: Any = AcronymModel.load(release)
    outputs = CachedOutputs(model.scorer.network, None, {})
    estimated = Estimates.clinical()
    examples = usage_examples(outputs, data, model.dictionary, acronym_contexts("train"), estimated, SEED)
    validation = validation_scores(examples, SEED)
    rows = {}
    baselines = {}
    for weight in WEIGHTS:
        mixture = best_mixture(validation, {"unseen": weight})
        made = with_dictionary_spellings(examples.prototypes(mixture), model.dictionary)
        model.scorer.prototypes = made
        tests = {
            "CASI, test": manifest_scores("acronym", model, data, ["casi"])[0],
            "definitions, held-out abstracts": score_on_definitions(model, data, model.dictionary),
        }
        baselines = {f"{name}: {score.baseline_definition}": score.baseline for name, score in tests.items()}
        expanded, right = read_sentences(model)
        rows[str(weight)] = {
            **{f"{name}, validation": round(accuracy(part, mixture), 4) for name, part in validation.items()},
            **{name: score.value for name, score in tests.items()},
            "sentences, expanded": expanded,
            "sentences, right": right,
            "mixture": ", ".join(f"{name} {value}" for name, value in mixture._asdict().items()),
        }
    figures = {
        "what": "accuracy by the weight of the rows of senses without a corpus (unseen)",
        "release": release.version,
        "its weight": SOURCE_WEIGHTS["unseen"],
        **baselines,
        "sentences": len(sentences_of(SENTENCES)),
    }
    print_and_write(figures | provenance("acronym.rare_senses") | {"rows": rows}, result)


def read_sentences(model: AcronymModel, table: Path = SENTENCES) -> tuple[int, int]:
    """How many of the short forms of a table of sentences are expanded, and how many of them rightly."""
    asked = sentences_of(table)
    expanded = right = 0
    for (_, short_form, forms), found in zip(asked, model.predict([a[0] for a in asked]), strict=True):
        long_forms = [e.long_form.lower() for e in found if e.short_form == short_form and not e.candidates]
        expanded += bool(long_forms)
        right += bool(long_forms) and long_forms[0] in forms.lower().split("|")
    return expanded, right


def sentences_of(table: Path) -> list[tuple[str, str, str]]:
    """Sentence, short form in it, and the right long forms in lower case with bars between them."""
    return [(r[0], r[1], r[2]) for r in read_tsv(table, ("sentence", "short_form", "long_forms"))]


if __name__ == "__main__":
    run_program(main)
