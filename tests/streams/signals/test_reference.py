"""Reference sets of known effects and controls, and what the statistics of a store make of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest

from models.drugs import bundled_lexicon
from models.files.row import UnreadableFile
from models.terminology import load as load_terms
from streams.records import CodedReport
from streams.signals.population import Population
from streams.signals.reference import Reference, bundled, compare, read, scores
from streams.signals.statistics.criteria import evaluate
from streams.signals.statistics.fitting import DEFAULT
from streams.signals.statistics.ratios import Counts
from streams.store.database import Database
from tests.streams.cli.command_line import CommandLine
from tests.streams.signals.conftest import Fill
from tests.streams.store.messages import event, report

#: Known effects and controls of each outcome of Ryan et al. 2013, table 2; of Coloma et al. one less in all.
OMOP = {
    "acute kidney injury": (24, 64), "acute liver injury": (81, 37), "acute myocardial infarction": (36, 66),
    "upper gastrointestinal bleeding": (24, 67),
}  # fmt: skip


def test_the_bundled_sets_have_the_published_numbers_and_terms_of_the_terminology() -> None:
    omop, eu_adr = bundled("omop"), bundled("eu-adr")
    numbers = Counter((outcome, known) for (_, outcome), known in omop.pairs.items())
    assert {o: (numbers[o, True], numbers[o, False]) for o, _ in omop.outcomes} == OMOP
    assert (eu_adr.of(True), eu_adr.of(False), len(eu_adr.outcomes)) == (43, 50, 10)
    assert omop.pairs["naproxen", "upper gastrointestinal bleeding"] is True
    assert omop.pairs["mefenamic acid", "acute kidney injury"] is True
    assert omop.pairs["loratadine", "acute myocardial infarction"] is False
    assert eu_adr.pairs["simvastatin", "rhabdomyolysis"] is True
    pts = {term.pt for term in load_terms()}
    for reference in (omop, eu_adr):
        terms = [term for _, names in reference.outcomes for term in names]
        assert len(terms) == len(set(terms)) and set(terms) <= pts
        assert {outcome for _, outcome in reference.pairs} == {outcome for outcome, _ in reference.outcomes}
    drugs = {drug for reference in (omop, eu_adr) for drug, _ in reference.pairs}
    unknown = {drug for drug in drugs if not bundled_lexicon().is_generic(drug)}
    assert len(drugs) - len(unknown) > 200 and len(unknown) == 10


def reports() -> list[CodedReport]:
    """Bleeding beside naproxen under two terms, once copied; of lactulose other effects; and a background."""
    told = [("naproxen", "Melaena")] * 2 + [("naproxen", "Haematemesis")] * 2 + [("lactulose", "Nausea")] * 3
    told += [("lactulose", "Melaena")] + [("sertraline", "Insomnia")] * 20
    made = [report(f"r{i}", i, event(*pair)) for i, pair in enumerate(told)]
    copies = [report(f"c{i}", 90 + i, event("lactulose", "Melaena"), duplicate_of="r7") for i in range(3)]
    return made + copies


def test_terms_of_an_outcome_count_as_one_and_copies_are_merged(stored: Database, fill: Fill) -> None:
    fill(reports())
    rows = compare(stored, bundled("omop"), Population(), 3)["rows"]
    merged, every = (
        {r["criterion"]: r for r in rows if r["counted"] == c} for c in ("unique reports", "reports")
    )
    # Four unique reports of naproxen with a bleeding; with copies also four of lactulose.
    assert merged["ic025"] == {
        "counted": "unique reports", "criterion": "ic025", "known": 1, "known_met": 1, "controls": 0,
        "controls_met": 0, "sensitivity": 1.0, "specificity": None, "statistic": "IC025", "auc": None,
    }  # fmt: skip
    assert (every["ic025"]["controls"], every["ic025"]["controls_met"], every["ic025"]["auc"]) == (1, 0, 1.0)
    least = compare(stored, bundled("omop"), Population(), 1)["rows"]
    assert least[0]["controls"] == 1, "one unique report of lactulose"
    assert compare(stored, Reference({}), Population(), 3)["rows"][0]["auc"] is None


def test_a_tie_is_half_a_right_order() -> None:
    n = np.array([9.0, 5.0, 5.0, 1.0])
    statistics = evaluate(Counts(n, np.full(4, 20.0), np.full(4, 20.0), np.full(4, 100.0)), DEFAULT)
    known = np.array([True, True, False, False])
    for row in scores(statistics, np.arange(4), known).values():
        assert row["auc"] == 0.875
    assert scores(statistics, np.array([2, 1]), ~known[:2])["ic025"]["auc"] is None


LINES = """label,drug,term
known,Aleve,Black stools
control,lactulose,Melaena
known,no such drug,Melaena
known,lactulose,no such term
perhaps,lactulose,Nausea
control,naproxen,Melaena
known,naproxen,Melaena
known
"""


def test_a_file_is_read_with_each_wrong_line_named(
    pvstream: CommandLine, fill: Fill, database_path: str, tmp_path: Path
) -> None:
    fill(reports())
    pvstream.set("PV_DATABASE", database_path)
    file, figures = tmp_path / "pairs.csv", tmp_path / "figures.json"
    file.write_text(LINES)
    answer = pvstream("reference", file, "--least", "1", "--json", figures)
    assert answer.code == 1
    for message in (
        "line 4: unknown drug 'no such drug'", "line 5: unknown term 'no such term'",
        "line 6: label 'perhaps' is neither known nor control", "line 7: 'naproxen' with 'Melaena' has both",
        "line 9: unknown drug ''",
    ):  # fmt: skip
        assert f"left out, {message}" in answer.one_line
    assert "line 8" not in answer.one_line
    assert "1 known effects and 1 controls" in answer.one_line and "1 of 1" in answer.out
    written = orjson.loads(figures.read_bytes())
    assert (written["known"], written["rows"][0]["controls"]) == (1, 1) and "auc" in written["definitions"]
    file.write_text("drug,term\na,b\n")
    answer = pvstream("reference", file)
    assert answer.code == 1 and "the header needs the columns drug, term and label" in answer.error_line
    assert pvstream("reference", "omop").code == pvstream("reference", "eu-adr").code == 0
    with pytest.raises(UnreadableFile, match="none"):
        read(tmp_path / "none.csv", {})
