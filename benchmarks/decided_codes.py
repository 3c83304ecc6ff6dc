"""How many errors of codes do reviewers' decisions mend, on other mentions than those that were decided?

Of PsyTAR's held-out mentions with a known term some are drawn and decided, with the gold term that comes
first by name; wordings with two decided terms decide nothing. All mentions are coded before and after.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.machine import print_and_write, provenance
from models.normalization.known_wordings import KnownWordings
from models.supplement import Decided, Decision
from models.types import Coding, Query
from streams.rollout.loading import load_release
from streams.rollout.supplement import CODES
from streams.settings import Settings
from training.common.codings.split import pts_by_term, query, right_terms
from training.common.program_help import run_program
from training.evaluation.normalization import read

#: Mentions that are coded together.
BATCH = 128
DEFINITIONS = {
    "decided": "mentions that were decided: errors before and after",
    "reached": "other mentions that a decision codes: their number, errors before and after",
    "others": "all other mentions: errors before and after",
    "changed": "other mentions that change although no decision codes them",
}


class Mentions:
    """Mentions with their gold preferred terms, and how a model codes them without decisions."""

    def __init__(self, model: Any, queries: Sequence[Query], gold: Sequence[set[str]]) -> None:
        self.model, self.queries, self.gold = model, queries, gold
        self.before = self.coded(model)
        self.wrong = self.errors(self.before)

    def coded(self, model: Any) -> list[Coding]:
        """The coding of each mention."""
        starts = range(0, len(self.queries), BATCH)
        return [c for i in starts for c in model.predict(self.queries[i : i + BATCH])]

    def errors(self, codings: Sequence[Coding]) -> NDArray[np.bool_]:
        """Which codings, (mentions,), have no gold term; NIL is one."""
        terms = [None if c.term is None else c.term.pt for c in codings]
        return np.array([term not in right for term, right in zip(terms, self.gold, strict=True)])

    def decided(self, rows: Sequence[int]) -> Any:
        """The model with a decision for each wording in these rows that gets one term alone."""
        by_wording: dict[str, dict[str, Query]] = defaultdict(dict)
        for i in rows:
            by_wording[self.queries[i].surface.lower()][min(self.gold[i])] = self.queries[i]
        chosen = [next(iter(terms.items())) for terms in by_wording.values() if len(terms) == 1]
        made = copy.copy(self.model)
        made.wordings = KnownWordings()
        if chosen:
            decisions = [Decision(str(i), i, "", True, "", term) for i, (term, _) in enumerate(chosen)]
            vectors = self.model.embed([asked for _, asked in chosen])
            made.decided = Decided(vectors, decisions, CODES.least_cosine)
        return made

    def counts(self, rows: Sequence[int]) -> dict[str, list[int]]:
        """The counts of DEFINITIONS where the mentions in these rows are decided."""
        after = self.coded(self.decided(rows))
        wrong, others = self.errors(after), np.setdiff1d(np.arange(len(after)), rows)
        first = [c.candidates[0].phrase if c.candidates else "" for c in after]
        is_reached = np.array([(phrase or "").startswith("review ") for phrase in first])
        reached, rest = others[is_reached[others]], others[~is_reached[others]]
        return {
            "decided": [int(self.wrong[rows].sum()), int(wrong[rows].sum())],
            "reached": [len(reached), int(self.wrong[reached].sum()), int(wrong[reached].sum())],
            "others": [int(self.wrong[others].sum()), int(wrong[others].sum())],
            "changed": [sum(after[i] != self.before[i] for i in rest)],
        }


def main(
    data: Annotated[Path, typer.Option(exists=True, help="folder of the corpora")],
    decisions: Annotated[int, typer.Option(min=1, help="decided mentions of a draw")] = 50,
    draws: Annotated[int, typer.Option(min=1)] = 10,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    loaded = load_release("normalization", None, Settings(dtype="float32"))
    model: Any = loaded.model
    by_term = pts_by_term(model.terms)
    known = [(query(g), t) for g in read(data, "heldout", 0).records if (t := right_terms(g, by_term))]
    mentions = Mentions(model, [asked for asked, _ in known], [terms for _, terms in known])
    figures: dict[str, Any] = {"release": loaded.version, "mentions": len(known), "decisions": decisions}
    rng = np.random.default_rng(1)
    for name, pool in {"errors": np.flatnonzero(mentions.wrong), "any": np.arange(len(known))}.items():
        counts = [mentions.counts(rng.choice(pool, decisions, replace=False).tolist()) for _ in range(draws)]
        figures[name] = {key: np.mean([c[key] for c in counts], 0).round(1).tolist() for key in DEFINITIONS}
    figures |= {"draws": draws, "definitions": DEFINITIONS}
    print_and_write(figures | provenance("decided_codes"), result)


if __name__ == "__main__":
    run_program(main)
