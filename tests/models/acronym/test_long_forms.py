"""What speaks for a long form: cue words, its frequency, and the surface of its place."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.acronym import frequencies
from models.acronym.cues import CLINICAL, FAR, MIDDLE, NEAR, PHRASE, CueWords
from models.acronym.frequencies import UNRATED, WEIGHTS, SenseFrequencies
from models.acronym.model import AcronymModel
from models.acronym.surface_features import NAMES, features, surroundings, undotted
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


def test_cues_count_by_nearness_and_share_whatever_their_spelling(cues: CueWords) -> None:
    assert cues.scores("", "CTA", " for PE", FORMS) == [NEAR[1], 0, 0]
    assert cues.scores("PE was seen two days later on ", "CTA", "", FORMS) == [MIDDLE[1], 0, 0]
    assert cues.scores("", "CTA", " a b c d e f g h PE", FORMS) == [FAR, 0, 0]
    # Twice the same cue counts once, by its nearest place.
    assert cues.scores("PE: ", "CTA", " a b c d e f g h PE", FORMS) == [NEAR[1], 0, 0]
    assert cues.scores("", "CTA", " chest", FORMS) == [0.5, 0.5, 0]
    assert cues.scores("", "CTA", " of the head and neck", FORMS) == [NEAR[1] * PHRASE, 0, 0]
    assert cues.scores("lung fields, chest ", "C.T.A", "", FORMS) == [1.5 + 0.5, 1 + 0.5, 0]
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


def test_frequencies_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "frequencies.tsv"
    SenseFrequencies(WORDS).write(path)
    assert SenseFrequencies.load(path).words == WORDS
    path.write_text("short_form\tlong_form\tfrequency\nCT\tchest tube\toften\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'often' is none of usual, common, occasional, rare"):
        SenseFrequencies.load(path)


def test_every_ambiguous_short_form_of_the_bundled_release_is_rated() -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    rated = SenseFrequencies.load(frequencies.CLINICAL).words
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


def one_piece_if_known(text: str) -> int:
    return 1 if text.lower() in {"", "translations", "object", "direct", "tables", "acid"} else len(text)


def named(left: str, short: str, right: str, *forms: str) -> list[dict[str, float]]:
    rows = features(surroundings(left, right, short), forms, one_piece_if_known)
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def test_features_are_of_the_letters_case_articles_and_plurals_around_an_acronym() -> None:
    whole, cut = named("the ", "DO", "t constructions", "Direct Object", "Direct Objec")
    assert (whole["joined_is_piece"], cut["joined_is_piece"]) == (0, 1)
    alone, broken = named("the ", "DO", " constructions", "Direct Object", "Direct Objec")
    assert (alone["end_is_piece"], broken["end_is_piece"]) == (1, 0)
    assert (broken["begins_another"], alone["begins_another"]) == (1, 0)
    title, plain = named("A Study Of ", "FST", " Methods", "Finite State", "finite state")
    assert (title["titled_capitals"], plain["titled_capitals"]) == (1.0, 0.0)
    assert title["titled_next_upper"] == 1.0
    assert named("", "FST", " is", "Finite state")[0]["first_only_starts"] == 1.0
    one, many = named("an ", "AT", " is", "acid table", "acid tables")
    assert (one["an"], many["an"], many["one_of_plural"], many["is_plural"]) == (1, 1, 1, 1)
    assert one["plural"] == 0
    assert named("the ", "AT", "s", "acid tables")[0]["plural_twice"] == 1
    right, wrong = named("the ", "AT", " x", "acid table", "direct object")
    assert (right["initials"], right["spelled"], right["same_first"]) == (1, 1, 1)
    assert (wrong["initials"], wrong["same_first"]) == (0, 0)


def test_the_time_of_a_long_word_before_the_acronym_is_bounded() -> None:
    started = time.process_time()
    assert surroundings("a" * 99_000 + " ab", "", "DO").before == "ab"
    assert time.process_time() - started < 1


@given(st.text(max_size=20), st.text(max_size=20), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_gives_a_finite_number_for_each_name(left: str, right: str, forms: list[str]) -> None:
    rows = features(surroundings(left, right, "MS"), forms, one_piece_if_known)
    assert [len(row) for row in rows] == [len(NAMES)] * len(forms)
    assert all(abs(value) < 1e4 for row in rows for value in row)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"), [("P.C.P", "PCP"), ("U.S.", "US"), ("AC.1", "AC.1"), ("MS", "MS")]
)
def test_full_stops_between_single_letters_are_removed(text: str, expected: str) -> None:
    assert undotted(text) == expected
