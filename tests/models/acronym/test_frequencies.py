"""Estimated frequencies of long forms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from models.acronym.frequencies import CLINICAL, UNRATED, WEIGHTS, SenseFrequencies
from models.acronym.model import AcronymModel
from models.releases.store import bundled, open_release

WORDS = {("CT", "computed tomography"): "usual", ("CT", "chest tube"): "occasional"}


def test_shares_add_up_and_are_equal_where_nothing_is_known() -> None:
    frequencies = SenseFrequencies(WORDS)
    forms = ("chest tube", "computed tomography", "clotting time")
    total = WEIGHTS["occasional"] + WEIGHTS["usual"] + UNRATED
    expected = [WEIGHTS["occasional"] / total, WEIGHTS["usual"] / total, UNRATED / total]
    assert frequencies.shares("CT", forms) == pytest.approx(expected)
    assert frequencies.shares("C.T.", forms) == pytest.approx(expected)
    assert frequencies.shares("PE", ("a", "b")) == [0.5, 0.5]
    assert frequencies.rates("CT") and not frequencies.rates("PE")


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "frequencies.tsv"
    SenseFrequencies(WORDS).write(path)
    assert SenseFrequencies.load(path).words == WORDS
    path.write_text("short_form\tlong_form\tfrequency\nCT\tchest tube\toften\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'often' is none of usual, common, occasional, rare"):
        SenseFrequencies.load(path)


def test_every_ambiguous_short_form_of_the_bundled_release_is_rated() -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    rated = SenseFrequencies.load(CLINICAL).words
    ambiguous = {s: forms for s, forms in model.dictionary.items() if len(forms) > 1}
    missing = [(s, form) for s, forms in ambiguous.items() for form in forms if (s, form) not in rated]
    assert missing == []
    assert set(rated) <= {(s, form) for s, forms in ambiguous.items() for form in forms}
    usual = Counter(short for (short, _), word in rated.items() if word == "usual")
    assert len(usual) > 0.9 * len(ambiguous)


def test_the_usual_long_form_is_taken_where_the_sentence_says_nothing() -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    found = model.predict(["LFTs were normal.", "CT was done.", "BP was normal.", "He had s/p CABG."])
    assert [e.long_form for e in found[0]] == ["liver function tests"]
    assert [e.long_form for e in found[1]] == ["computed tomography"]
    assert [e.long_form for e in found[2]] == ["blood pressure"]
    assert found[3][0].long_form == "status post"
