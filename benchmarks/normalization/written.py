"""Which codes do the mentions get that were written for this measurement?

`mentions.tsv` has sentences of patients and of clinicians, each with a mention and the preferred terms that a
coder would accept for it. Their writers knew neither the terminology nor the written phrases, and nothing is
chosen on them. A code is right if its preferred term is that of an accepted name in the release's
terminology; a mention none of whose accepted names the terminology has cannot be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.machine import print_and_write, provenance
from models.normalization.model import NormalizationModel
from models.releases.store import bundled, open_release
from models.scores import Measure, bootstrap
from models.tables import read_tsv
from models.terminology import Term
from training.common.codings.split import pts_by_term, query, right_terms
from training.common.corpora import GoldCoding
from training.common.program_help import run_program

MENTIONS = Path(__file__).with_name("mentions.tsv")
COLUMNS = ("style", "sentence", "mention", "terms")
SEPARATOR = "|"
DEFINITIONS = {
    "named": "share of the mentions with an accepted name in the terminology",
    "right": "share of the mentions whose code is a preferred term of an accepted name; NIL is no code",
    "nil": "share of the mentions that become NIL",
    "right, NIL ignored": "as right, the best candidate whether or not the rule for NIL left it out",
    "right among 5": "share of the mentions with a right preferred term among the five best candidates",
    "letters": "as right, of the name that is nearest by TF-IDF over character 3- and 4-grams, no model",
}
RIGHT = Measure("right", DEFINITIONS["right"], lambda sums: sums[:, 0] / sums[:, 1])


class Mention(NamedTuple):
    """A mention with the names that a coder would accept for it, and who writes so."""

    style: str
    gold: GoldCoding


def read_mentions(path: Path = MENTIONS) -> list[Mention]:
    """The rows of a table style, sentence, mention and terms with bars between them; ValueError where a
    mention is not in its sentence.
    """
    mentions = []
    for style, sentence, words, names, *_ in read_tsv(path, COLUMNS):
        if words not in sentence:
            raise ValueError(f"{path.name}: {words!r} is not in its sentence")
        mentions.append(Mention(style, GoldCoding(words, sentence, "", tuple(names.split(SEPARATOR)))))
    return mentions


def nearest_by_letters(mentions: Sequence[str], terms: Sequence[Term]) -> list[str]:
    """For each mention the preferred term of the name with the greatest cosine of TF-IDF vectors."""
    from sklearn.feature_extraction.text import (  # type: ignore[import-untyped]  # noqa: PLC0415  slow
        TfidfVectorizer,
    )

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True)
    names = letters.fit_transform([t.llt.lower() for t in terms])
    asked = letters.transform([m.lower() for m in mentions])
    return [terms[int(row)].pt for row in np.asarray((asked @ names.T).argmax(axis=1)).ravel()]


def figures(model: Any, mentions: Sequence[Mention]) -> dict[str, Any]:
    """By style the shares of DEFINITIONS for a model with `terms` and `predict`, and an interval of
    `right`.
    """
    by_term = pts_by_term(model.terms)
    good = [right_terms(m.gold, by_term) for m in mentions]
    found = model.predict([query(m.gold) for m in mentions])
    pts = [[c.pt for c in coding.candidates] for coding in found]
    best = [bool(own[:1]) and own[0] in right for own, right in zip(pts, good, strict=True)]
    right = [hit and not coding.nil for hit, coding in zip(best, found, strict=True)]
    letters = nearest_by_letters([m.gold.mention for m in mentions], model.terms)
    columns: dict[str, list[bool]] = {
        "named": [bool(pts) for pts in good],
        "right": right,
        "nil": [coding.nil for coding in found],
        "right, NIL ignored": best,
        "right among 5": [bool(set(own[:5]) & right) for own, right in zip(pts, good, strict=True)],
        "letters": [pt in right for pt, right in zip(letters, good, strict=True)],
    }
    styles = np.array([m.style for m in mentions])
    return {str(style): _shares(columns, styles == style) for style in np.unique(styles)}


def _shares(columns: dict[str, list[bool]], chosen: NDArray[np.bool_]) -> dict[str, Any]:
    own = {name: np.array(column)[chosen] for name, column in columns.items()}
    interval = bootstrap(np.stack([own["right"], np.ones(chosen.sum())], 1), [RIGHT])["right"]
    return {
        "mentions": int(chosen.sum()),
        **{name: round(float(column.mean()), 4) for name, column in own.items()},
        "right, 95 % interval": f"{interval.low:.4f} to {interval.high:.4f}",
    }


def main(
    release: Annotated[list[Path] | None, typer.Option(help="repeatable; by default the bundled one")] = None,
    table: Annotated[
        Path, typer.Option("--mentions", help="the mentions; by default those that nothing is chosen on")
    ] = MENTIONS,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    mentions = read_mentions(table)
    rows: dict[str, Any] = {}
    for path in release or [bundled("normalization")]:
        opened = open_release(path)
        found = figures(NormalizationModel.load(opened), mentions)
        rows |= {f"{opened.version}, {style}": shares for style, shares in found.items()}
    print_and_write({"what": DEFINITIONS, "rows": rows} | provenance("normalization.written"), result)


if __name__ == "__main__":
    run_program(main)
