"""Cue words of long forms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from models.acronym import frequencies
from models.acronym.cues import CLINICAL, FAR, MIDDLE, NEAR, PHRASE, CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.model import AcronymModel
from models.releases.store import bundled, open_release

CUES = {
    ("CTA", "CT angiography"): ["chest", "head and neck", "PE", "lung field"],
    ("CTA", "clear to auscultation"): ["lungs", "chest"],
    ("PE", "pulmonary embolism"): ["DVT"],
}
FORMS = ("CT angiography", "clear to auscultation", "cuff tear arthropathy")


@pytest.fixture
def cues() -> CueWords:
    return CueWords(CUES)


def test_near_cues_count_more_than_distant_ones(cues: CueWords) -> None:
    assert cues.scores("", "CTA", " for PE", FORMS) == [NEAR[1], 0, 0]
    assert cues.scores("PE was seen two days later on ", "CTA", "", FORMS) == [MIDDLE[1], 0, 0]
    assert cues.scores("", "CTA", " a b c d e f g h PE", FORMS) == [FAR, 0, 0]
    # Twice the same cue counts once, by its nearest place.
    assert cues.scores("PE: ", "CTA", " a b c d e f g h PE", FORMS) == [NEAR[1], 0, 0]


def test_a_cue_of_several_long_forms_counts_its_share_for_each(cues: CueWords) -> None:
    assert cues.scores("", "CTA", " chest", FORMS) == [0.5, 0.5, 0]
    assert cues.scores("", "CTA", " of the head and neck", FORMS) == [NEAR[1] * PHRASE, 0, 0]
    assert cues.scores("lung fields, chest ", "C.T.A", "", FORMS) == [1.5 + 0.5, 1 + 0.5, 0]


def test_plurals_and_spellings_are_equal_and_abbreviations_are_not_words(cues: CueWords) -> None:
    assert cues.scores("Lung is ", "CTA", "", ("clear to  Auscultation",)) == [1]
    assert cues.scores("pe ", "CTA", "", FORMS) == [0, 0, 0]
    assert cues.scores("chest ", "XYZ", "", FORMS) == [0, 0, 0]
    assert cues.scores("", "CTA", "", FORMS) == [0, 0, 0]
    assert CueWords().scores("chest ", "CTA", "", FORMS) == [0, 0, 0]


def test_a_table_is_read_as_it_was_written(cues: CueWords, tmp_path: Path) -> None:
    path = tmp_path / "cues.tsv"
    cues.write(path)
    assert CueWords.load(path).cues == CUES
    path.write_text("short_form\tlong_form\tcues\nCTA\tCT angiography\t\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: 3 filled columns"):
        CueWords.load(path)


def test_every_long_form_that_is_rated_has_cues_of_its_own() -> None:
    rated = SenseFrequencies.load(frequencies.CLINICAL).words
    cues = CueWords.load(CLINICAL).cues
    assert set(cues) == set(rated)
    assert all(len(set(own)) == len(own) >= 3 for own in cues.values())
    shared = Counter((short, cue) for (short, _), own in cues.items() for cue in own)
    assert sum(n > 1 for n in shared.values()) < 0.2 * len(shared)


@pytest.mark.parametrize(
    ("sentence", "short_form", "long_form"),
    [
        ("A CTA of the chest showed no embolus.", "CTA", "computed tomography angiography"),
        ("Lungs CTA bilaterally, no wheezes.", "CTA", "clear to auscultation"),
        ("A CT of the chest was normal.", "CT", "computed tomography"),
        ("Echo: severe MR and mild TR, EF 40 %.", "MR", "mitral regurgitation"),
        ("The infant had PE tubes for otitis media.", "PE", "pressure equalization"),
        ("DVT and PE after surgery, on heparin.", "PE", "pulmonary embolism"),
        ("BP 120/80, HR 72.", "BP", "blood pressure"),
    ],
)
def test_one_neighbouring_word_decides(sentence: str, short_form: str, long_form: str) -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    (found,) = model.predict([sentence])
    assert [e.long_form for e in found if e.short_form == short_form] == [long_form]
